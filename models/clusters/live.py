"""The live clusters and everything that can happen to one: found, join, repeat, leave, merge, expire.

Each operation happens to the vectors (kernel), the bookkeeping (cluster), the words (labels) and the memory at once,
and never elsewhere: that they agree is what this file is for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from models.clusters.ages import Ages
from models.clusters.cluster import MAX_TEXT, Cluster, Member, Rates, member_of
from models.clusters.config import ClusterConfig
from models.clusters.kernel import GRID, Kernel
from models.clusters.labels import Vocabulary, terms_of
from models.clusters.lexicon import Lexicon
from models.clusters.memory import Memory, cluster_id
from models.records import Post, Repeat

__all__ = ["Counters", "Due", "LiveClusters"]


OUTLIVED = 32_768  # ids of posts that may be only shown any more, 5 MB: beyond these, those that are not go (30 ms)


class Counters(Struct):
    """What happened so far; monotonic, for metrics."""

    posts: int = 0
    repeats: int = 0
    deletions: int = 0
    unplaced: int = 0  # repeats and deletions of posts not (or no longer) remembered
    late: int = 0  # posts and repeats that came after their own deletion, or that of their account: ignored
    redelivered: int = 0  # frames seen before, ignored
    founded: int = 0
    merged: int = 0
    expired: int = 0
    evicted: int = 0  # expired early because there were more than max_clusters


class Due(Struct):
    """When something was last done, in stream time, and the posts placed since."""

    at: float = -math.inf
    posts: int = 0


class LiveClusters:
    """State of one stream's clusters. Slots number the clusters as in the kernel, and are used again."""

    def __init__(self, config: ClusterConfig, dim: int) -> None:
        self.config = config
        self.lexicon = Lexicon(dim, config.lexical)
        self.kernel = self._kernel()
        self.clusters: list[Cluster | None] = []  # by slot; None where it ended
        self.slots: dict[str, int] = {}  # live cluster id → slot, oldest first
        self.changed: set[int] = set()  # slots touched since the last merge: only they can have news
        self.ages = Ages()  # of all slots but the changed ones
        self.unsaved: set[str] = set()  # ids of live clusters that are not as they were last saved
        self.memory = Memory(config.remember_posts, config.remember_members, config.remember_ids)
        self.vocabulary = Vocabulary(config.half_life_s)
        self.counters = Counters()
        self.clock = self.started = -math.inf  # stream time, epoch seconds
        self.stream = Rates(at=-math.inf)  # of all posts: what a new cluster's slow rate starts from
        self._most_outlived = OUTLIVED

    def cluster(self, slot: int) -> Cluster:
        """The cluster of a slot. Asking for one that has ended is a mistake of ours, and stops here."""
        found = self.clusters[slot]
        assert found is not None, f"slot {slot} has ended"
        return found

    def living(self) -> list[Cluster]:
        """All live clusters, oldest first."""
        return [self.cluster(slot) for slot in self.slots.values()]

    def oldest(self, slots: Iterable[int]) -> list[int]:
        """These slots by the age of their clusters: whatever is told or done one by one is so in this order."""
        return sorted(slots, key=self.kernel.born.__getitem__)

    def _kernel(self) -> Kernel:
        """An empty one, with room for all that can live: to grow means to copy, a pause of 0.1 s at 8,000 clusters."""
        config, most = self.config, min(self.config.max_clusters, 20_000) * 3 // 2
        return Kernel(self.lexicon.width, config.t_attach, config.t_merge, self.lexicon.dim, capacity=most)

    def forward(self, rates: Rates) -> Rates:
        if rates.at != self.clock:
            config = self.config
            rates.forward(self.clock, config.half_life_s, config.burst_fast_s, config.burst_slow_s)
        return rates

    def place(self, posts: Sequence[Post], vectors: np.ndarray, queries: Mapping[str, tuple[str, ...]]) -> None:
        """Put posts into clusters, in order. vectors: (n, d) unit; queries: post id → queries it matched."""
        terms = [terms_of(post.text[:MAX_TEXT]) for post in posts]
        rows, packed = self.lexicon.rows(vectors, terms)
        for post, words, slot, vector in zip(posts, terms, self.kernel.place(rows), packed, strict=True):
            member = member_of(post, queries.get(post.id, ()), vector)
            self.clock = max(self.clock, member.at)
            self.counters.posts += 1
            if slot == len(self.clusters):
                self.clusters.append(None)
            if self.clusters[slot] is None:
                self._found(slot, post, member.at)
            self._join(slot, member, words, post.author)

    def _found(self, slot: int, post: Post, at: float) -> None:
        """Open a cluster. Its slow rate starts at the stream's mean per cluster, so that one post is no burst."""
        config, name = self.config, self._free_id(post)
        share_seen = -math.expm1(-max(self.clock - self.started, config.burst_fast_s) / config.burst_slow_s)
        rates = Rates(at=self.clock, slow=self.forward(self.stream).slow / share_seen / max(len(self.slots), 1))
        self.slots[name] = slot
        self.clusters[slot] = Cluster(name, rates, at, at, self.counters.posts, self.clock)
        self.counters.founded += 1

    def _free_id(self, post: Post) -> str:
        """The first of the post's ids that was not given yet. Which were given is found in ever longer steps, then by
        halves: a post that is edited or deleted and sent again thousands of times has used as many."""

        def is_given(attempt: int) -> bool:
            name = cluster_id(post, attempt, self.config.salt)
            return name in self.slots or self.memory.is_taken(name)

        given, free = -1, 0
        while is_given(free):
            given, free = free, 2 * free + 1
        while free - given > 1:
            middle = (given + free) // 2
            given, free = (middle, free) if is_given(middle) else (given, middle)
        return cluster_id(post, free, self.config.salt)

    def _join(self, slot: int, member: Member, terms: list[str], author: str | None) -> None:
        cluster, config = self.cluster(slot), self.config
        age = self.clock - member.at
        weight, fast, slow = 1.0, 1.0, 1.0
        if age > 0:
            weight = 2.0 ** (-age / config.half_life_s)
            fast, slow = math.exp(-age / config.burst_fast_s), math.exp(-age / config.burst_slow_s)
        heard = author is None or cluster.is_new_author(author)
        for rates, counts in ((cluster.rates, heard), (self.stream, True)):
            self.forward(rates).weight += weight
            if counts:
                rates.fast += fast
                rates.slow += slow
        cluster.count(member)
        cluster.touched_post, cluster.touched_s = self.counters.posts, self.clock
        if self.vocabulary.due(self.clock):
            self.vocabulary.rescale(self.clock, [c.terms for c in self.living()])
            self.unsaved.update(self.slots)
        self.vocabulary.add(terms, self.vocabulary.scale(member.at), cluster.terms)
        cluster.keep_example(member, config.examples_kept)
        for forgotten, place in self.memory.remember(member, cluster.id):
            self._outlive(forgotten, place)
        self._touched(slot, cluster)

    def _outlive(self, post_id: str, place: str) -> None:
        """Where a post was put is forgotten: while its cluster lives, it may still be shown there. Whether it is, is
        looked up when one is asked for, and now and then for all, not for each."""
        name = self.memory.find(place)
        if name in self.slots:
            self.memory.outlived[post_id] = name
            if len(self.memory.outlived) > self._most_outlived:
                self.find_outlived()

    def find_outlived(self) -> None:
        """Start over from what clusters may show."""
        placed = self.memory.placed
        self.memory.outlived = {
            post_id: cluster.id
            for cluster in self.living()
            for post_id in (*cluster.told, *(m.post_id for m in cluster.examples))
            if post_id not in placed
        }
        self._most_outlived = OUTLIVED + 2 * len(self.memory.outlived)

    def _touched(self, slot: int, cluster: Cluster) -> None:
        self.changed.add(slot)
        self.unsaved.add(cluster.id)

    def slot_of(self, post_id: str) -> int | None:
        """The live cluster a post is in, or a repeat was counted in."""
        placed = self.memory.cluster_of(post_id)
        return None if placed is None else self.slots.get(placed)

    def slot_with(self, post_id: str) -> int | None:
        """The live cluster that has a post of its own, were it so old that it is only shown any more."""
        if (placed := self.memory.placed.get(post_id)) is not None:
            return self.slots.get(self.memory.find(placed))
        slot = self.slots.get(self.memory.outlived.get(post_id, ""))
        return slot if slot is not None and self.cluster(slot).shows(post_id) else None

    def repeat(self, repeat: Repeat) -> None:
        """Count a repeat with its original's cluster; it has no vector of its own. The same repeat counts once."""
        if repeat.id in self.memory.repeats:
            return
        if self.memory.is_gone(repeat.id):
            self.counters.late += 1
            return
        self.counters.repeats += 1
        slot = self.slot_of(repeat.of)
        if slot is None:
            self.counters.unplaced += 1
            return
        cluster = self.cluster(slot)
        self.memory.repeat(repeat.id, cluster.id)
        self.forward(cluster.rates).add(Rates(self.clock, 1.0, 1.0, 1.0))
        cluster.posts += 1
        cluster.touched_post, cluster.touched_s = self.counters.posts, self.clock
        self._touched(slot, cluster)

    def unrepeat(self, repeat_id: str) -> bool:
        """Take a repeat back from where it was counted: its original may be elsewhere by now, or gone. Returns False
        if it is not known as one."""
        if repeat_id not in self.memory.repeats:
            return False
        slot = self.slot_of(repeat_id)
        self.memory.repeats.forget(repeat_id)
        if slot is not None:
            cluster = self.cluster(slot)
            cluster.posts -= 1
            self._touched(slot, cluster)
        return True

    def leave(self, post_id: str) -> tuple[Cluster, bool, bool] | None:
        """Take a placed post out of its cluster: vector, count, weight, words, examples.

        Returns the cluster, whether it lives on, and whether it may have shown the post; None if the cluster had ended
        before.
        """
        slot = self.slot_with(post_id)
        member = self.memory.forget(post_id)
        if slot is None:
            return None
        cluster = self.cluster(slot)
        shown = cluster.shows(post_id)
        example = next((m for m in cluster.examples if m.post_id == post_id), None)
        member = member or example
        cluster.posts -= 1
        if member is not None:
            gone = 2.0 ** (-(self.clock - member.at) / self.config.half_life_s)
            rates = self.forward(cluster.rates)
            rates.weight = max(rates.weight - gone, 0.0)
            self.vocabulary.remove(terms_of(member.text), self.vocabulary.scale(member.at), cluster.terms)
            cluster.forget(member)
        self._touched(slot, cluster)
        row = self.lexicon.unpack([member.vector])[0] if member is not None and member.vector else None
        lives = self.kernel.remove(slot, row)
        if not lives:
            self.close(slot)
        return cluster, lives, shown

    def merge(self, full: bool = True) -> list[Cluster]:
        """Join all clusters that are near enough. Returns those that went into another, in order."""
        gone = []
        for winner, loser in self.kernel.merge(full):
            mine, other = self.cluster(winner), self.cluster(loser)
            self.forward(mine.rates)
            self.forward(other.rates)
            mine.absorb(other, self.config.examples_kept)
            self.memory.redirect(other.id, mine.id)
            if outlived := self.memory.outlived:
                outlived.update({m.post_id: mine.id for m in other.examples if m.post_id in outlived})
            self._vacate(loser)
            self._touched(winner, mine)
            self.counters.merged += 1
            gone.append(other)
        return gone

    def likely(self, post_ids: Iterable[str]) -> dict[str, str]:
        """Post → the told cluster that its own, which was never told, would be merged into as things are."""
        asked = {p: slot for p in post_ids if (slot := self.slot_of(p)) is not None and not self.cluster(slot).version}
        if not asked:
            return {}
        self.ages.note(self.changed, self.clusters)
        found = self.kernel.likely(asked.values(), self.ages.told(self.alive))
        return {p: self.cluster(found[slot]).id for p, slot in asked.items() if slot in found}

    def expire(self) -> list[Cluster]:
        """Close clusters that got nothing for long enough, then the stalest beyond `max_clusters`. Returns them.

        Posts of a file without times all share one: while the clock stands at its start, posts alone are counted.
        """
        config, timed = self.config, self.clock > self.started
        self.ages.note(self.changed, self.clusters)
        wait_s = (config.ttl_s, config.ttl_single_s) if timed else (-math.inf, -math.inf)
        many, single = zip((config.ttl_posts, config.ttl_single_posts), wait_s, strict=True)
        quiet = self.ages.quiet(self.alive, self.counters.posts, self.clock, many, single, config.ttl_most_s)
        ended = [self.close(slot) for slot in self.oldest(quiet)]
        if (excess := len(self.slots) - config.max_clusters) > 0:
            ended += [self.close(slot) for slot in self.ages.stalest(self.alive, self.kernel.born, excess)]
            self.counters.evicted += excess
        return ended

    @property
    def alive(self) -> np.ndarray:
        """(slots,) bool: which of them live."""
        counts: np.ndarray = self.kernel.counts[: len(self.clusters)]
        return counts > 0

    def settled(self) -> None:
        """What changed has been looked at and told."""
        self.ages.note(self.changed, self.clusters)
        self.changed.clear()

    def close(self, slot: int) -> Cluster:
        cluster = self.cluster(slot)
        self.memory.retire(cluster.id)
        self.kernel.drop(slot)
        self._vacate(slot)
        self.counters.expired += 1
        return cluster

    def _vacate(self, slot: int) -> None:
        name = self.cluster(slot).id
        del self.slots[name]
        self.unsaved.discard(name)
        self.clusters[slot] = None
        self.changed.discard(slot)

    def compact(self) -> None:
        """Close the gaps that ended clusters left. Changes no result."""
        self._renumber(self.kernel.compact())

    def _renumber(self, kept: list[int]) -> None:
        """Slots got new numbers: kept[new] is the old one."""
        self.ages.note(self.changed, self.clusters)
        self.ages.move(kept)
        moved = {old: new for new, old in enumerate(kept)}
        self.clusters = [self.clusters[slot] for slot in kept]
        self.changed = {moved[slot] for slot in self.changed}
        self.slots = {name: moved[slot] for name, slot in self.slots.items()}

    def rebase(self, config: ClusterConfig, dim: int, vectors: np.ndarray) -> None:
        """Give every cluster new vectors. vectors: (n, dim) unit, of all examples in cluster order.

        Nothing counts as changed: a new encoder alone joins no clusters, they are compared again as posts touch them.
        """
        living = self.living()
        before, counts = self.lexicon, self.kernel.counts[list(self.slots.values())]
        self.config, self.lexicon = config, Lexicon(dim, config.lexical)
        self.lexicon.seen, self.lexicon.table = before.seen, before.table
        self.kernel = self._kernel()
        examples = [member for cluster in living for member in cluster.examples]
        packed = self.lexicon.repack(vectors, [member.vector for member in examples], before)
        rows, moved = self.lexicon.unpack(packed), [m.with_vector(v) for m, v in zip(examples, packed, strict=True)]
        sums, start = np.zeros((len(counts), self.lexicon.width)), 0
        for slot, cluster in enumerate(living):
            end = start + len(cluster.examples)
            cluster.examples = moved[start:end]
            if end > start:
                sums[slot] = np.rint(counts[slot] * rows[start:end].mean(axis=0) * GRID) / GRID
            start = end
        members, by_id = self.memory.members, {member.post_id: member for member in moved}
        for post_id, member in members.items():
            members[post_id] = by_id.get(post_id) or member.with_vector(b"")
        self.kernel.load(sums, counts, set(), set(), strange=set(range(len(counts))))
        self._renumber(list(self.slots.values()))
