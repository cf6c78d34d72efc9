"""Applying posts, repeats and deletions one by one: when clusters are joined, and what is told of it.

What comes out does not depend on how posts are cut into frames: a block of posts ends where a merge is due or an edited
post must leave first, and the clock that says so is the posts' own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from models.clusters.cluster import Cluster
from models.clusters.events import EventMaker
from models.clusters.live import Due, LiveClusters
from models.clusters.saving import Saver
from models.records import ClusterEvent, MatchedFrame, Post

__all__ = ["Applying"]

BLOCK = 128  # posts multiplied with all clusters at once; results are the same at any size, this one is the fastest


class Applying:
    """One stream's live clusters, the events they give, and when they were settled last.

    merge: the last full merge; quick: the last of either kind; saver: writes ahead after each full merge. block: posts
    that are placed at once.
    """

    def __init__(self, live: LiveClusters, encoder_version: str, saver: Saver, merge: Due, quick: Due) -> None:
        self.live, self.saver, self.merge, self.quick, self.block = live, saver, merge, quick, BLOCK
        self.events = EventMaker(live, encoder_version)

    def apply(self, frames: Sequence[tuple[MatchedFrame, np.ndarray]]) -> list[ClusterEvent]:
        """Of each frame the posts in order, then its repeats, then its deletions. (n, dim) vectors of its posts."""
        events: list[ClusterEvent] = []
        posts: list[Post] = []
        vectors: list[np.ndarray] = []
        queries: dict[str, tuple[str, ...]] = {}
        inside: set[str] = set()

        def place() -> None:
            nonlocal events
            if posts:
                events += self._posts(posts, np.concatenate(vectors), queries)
            for each in (posts, vectors, queries, inside):
                each.clear()

        for frame, rows in frames:
            came = [n for n, post in enumerate(frame.posts) if not self.live.memory.is_gone(post.id)]
            self.live.counters.late += len(frame.posts) - len(came)
            ids = {frame.posts[n].id for n in came}
            if not inside.isdisjoint(ids):  # an edit: its matches are not those of the post before
                place()
            inside |= ids
            posts += [frame.posts[n] for n in came]
            vectors.append(rows[came])
            for match in frame.matches:
                queries[match.post_id] = (*queries.get(match.post_id, ()), match.query_id)
            if frame.repeats or frame.deletions:
                place()
            for repeat in frame.repeats:
                self.live.repeat(repeat)
            events += self._delete([deletion.id for deletion in frame.deletions])
        place()
        return events

    def settle(self, merge: bool = True) -> list[ClusterEvent]:
        """Expire, merge, then tell what is new: the only place where clusters are joined or announced.

        Without `merge` only clusters nearer than t_attach are joined, none expires, and bursts that ended are not
        looked for.
        """
        live, maker = self.live, self.events
        ended = [c for c in live.expire() if c.version] if merge else []
        gone = [c for c in live.merge(merge) if c.version]
        events = [maker.expired(c) for c in ended]
        events += maker.changed(live.oldest(live.changed), {live.memory.find(c.id) for c in gone})
        events += maker.calmed() if merge else []
        events += [maker.merged(c, live.memory.find(c.id)) for c in gone]
        live.settled()
        for due in (self.merge, self.quick) if merge else (self.quick,):
            due.at, due.posts = live.clock, 0
        if len(live.clusters) > 64 + 1.25 * len(live.slots):
            live.compact()
        if merge:
            self.saver.ahead(live, live.config.merge_every_posts)
        return events

    def _merge_due(self) -> bool:
        config, posts, since_s = self.live.config, self.merge.posts, self.live.clock - self.merge.at
        late = since_s >= config.merge_every_s and posts >= config.merge_least_posts
        soon = since_s >= config.merge_soon_s and posts >= config.merge_soon_posts
        return late or soon or posts >= config.merge_every_posts

    def _quick_due(self, at: float, posts: int) -> bool:
        """Before a post of this moment, when so many have been placed since the last time."""
        config, since_s = self.live.config, at - self.quick.at
        return since_s >= config.settle_every_s or (
            since_s >= config.settle_soon_s and posts >= config.settle_soon_posts
        )

    def _posts(
        self, posts: Sequence[Post], vectors: np.ndarray, queries: Mapping[str, tuple[str, ...]]
    ) -> list[ClusterEvent]:
        live, config = self.live, self.live.config
        events: list[ClusterEvent] = []
        start, ahead = 0, live.clock
        inside: set[str] = set()

        def place(end: int) -> None:
            nonlocal start
            if end > start:
                live.place(posts[start:end], vectors[start:end], queries)
                self.merge.posts += end - start
                self.quick.posts += end - start
            start = end
            inside.clear()

        for i, post in enumerate(posts):
            ahead = max(ahead, min(post.created_at, post.seen_at))
            if live.started == -math.inf:
                live.started = self.merge.at = self.quick.at = ahead
            if self._quick_due(ahead, self.quick.posts + i - start):
                place(i)
                live.clock = ahead
                events += self.settle(self._merge_due())
            if post.id in inside or live.memory.knows(post.id):
                place(i)
                live.clock = ahead
                live.unrepeat(post.id)
                events += self._leave([post.id])
            inside.add(post.id)
            waiting = i + 1 - start
            if self.merge.posts + waiting >= config.merge_every_posts or (
                self.quick.posts + waiting >= config.settle_every_posts
            ):
                place(i + 1)
                events += self.settle(self._merge_due())
            elif waiting >= self.block:
                place(i + 1)
        place(len(posts))
        return events

    def _delete(self, deleted: Sequence[str]) -> list[ClusterEvent]:
        live, events = self.live, []
        live.memory.bar(deleted)
        for named in live.memory.named_by(deleted):
            live.counters.deletions += 1
            repeats = sum([live.unrepeat(i) for i in named])
            once = dict.fromkeys(named)  # sent twice: its own repeat too
            placed = [i for i in once if i in live.memory.placed or live.slot_with(i) is not None]
            live.counters.unplaced += not repeats and not placed
            events += self._leave(placed)
        return events

    def _leave(self, post_ids: Sequence[str]) -> list[ClusterEvent]:
        """Take posts out; then, not in between, say what became of their clusters: no event shows any of them."""
        ended: list[Cluster] = []
        shown: dict[str, Cluster] = {}
        for left in map(self.live.leave, post_ids):
            if left is not None:
                cluster, lives, was_shown = left
                if not lives:
                    shown.pop(cluster.id, None)
                    ended.append(cluster)
                elif was_shown:
                    shown[cluster.id] = cluster
        expired = [self.events.expired(c) for c in ended if c.version]
        return expired + [event for c in shown.values() for event in self.events.redacted(c)]
