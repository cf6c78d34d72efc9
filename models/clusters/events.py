"""Turns changes of clusters into events: which are worth telling, and what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import nsmallest

from models.clusters.cluster import Cluster
from models.clusters.kernel import GRID
from models.clusters.live import LiveClusters
from models.moments import rfc3339
from models.records import ClusterEvent, EventKind, Example

__all__ = ["EventMaker"]

RELABEL_GROWTH = 1.25  # look for a better label after this much growth: making one costs about 0.1 ms
MOST_TOLD = 50  # languages and sources: a source is what a sender says, and an event must fit in a record


def most_frequent(counts: Mapping[str, int], most: int = MOST_TOLD) -> dict[str, int]:
    """The `most` largest counts, largest first, equal ones by name."""
    return dict(nsmallest(most, counts.items(), key=lambda item: (-item[1], item[0])))


def next_step(posts: int) -> int:
    """The next size worth telling: 5, 10, 20, 50, 100, 200, …"""
    unit = 1
    while True:
        for step in (unit, 2 * unit, 5 * unit):
            if step > max(posts, 3):
                return step
        unit *= 10


class EventMaker:
    """Writes the events of the live clusters; versions count up per cluster."""

    def __init__(self, live: LiveClusters, encoder_version: str) -> None:
        self.live_clusters, self.encoder_version = live, encoder_version

    def changed(self, slots: list[int], heirs: set[str]) -> list[ClusterEvent]:
        """News of clusters that were touched. heirs: ids that took in an announced cluster, which must be told."""
        events = []
        config, now = self.live_clusters.config, self.live_clusters.clock
        for cluster in map(self.live_clusters.cluster, slots):
            if not cluster.version:
                if cluster.posts >= config.announce_at or cluster.id in heirs:
                    events.append(self.tell("new", cluster))
            elif cluster.posts >= cluster.step:
                events.append(self.tell("grow", cluster))
            elif now - cluster.event_s >= config.quiet_s:
                if self._level(cluster) != cluster.burst_level:
                    events.append(self.tell("grow", cluster))
                elif cluster.posts >= RELABEL_GROWTH * cluster.label_posts and self._drifted(cluster):
                    events.append(self.tell("relabel", cluster))
        return events

    def calmed(self) -> list[ClusterEvent]:
        """Bursts that ended in clusters nobody touched."""
        live, told = self.live_clusters, []
        for slot in live.oldest(live.ages.calming(live.alive, live.clock, live.config)):
            cluster = live.cluster(slot)
            if slot in live.changed or live.clock - cluster.event_s < live.config.quiet_s:
                continue
            if self._level(cluster) < cluster.burst_level:
                told.append(self.tell("grow", cluster))
                live.ages.note([slot], live.clusters)
        return told

    def redacted(self, cluster: Cluster) -> list[ClusterEvent]:
        """A post that is or was shown was deleted or edited: say at once what may still be shown."""
        return [self.tell("relabel", cluster)] if cluster.version else []

    def merged(self, cluster: Cluster, into: str) -> ClusterEvent:
        return self._event("merge", cluster, into=into)

    def expired(self, cluster: Cluster) -> ClusterEvent:
        return self._event("expire", cluster)

    def tell(self, kind: EventKind, cluster: Cluster) -> ClusterEvent:
        """Describe a live cluster afresh: label, medoid, examples, burst."""
        config = self.live_clusters.config
        self.live_clusters.unsaved.add(cluster.id)
        cluster.label, cluster.label_posts = self._label(cluster), cluster.posts
        cluster.burst_level, cluster.step = self._level(cluster), next_step(cluster.posts)
        shown = self._nearest(cluster, 1 + config.examples_shown)
        cluster.told = tuple(example.post_id for example in shown)
        return self._event(kind, cluster, medoid=shown[0] if shown else None, examples=shown[1:])

    def _event(
        self,
        kind: EventKind,
        cluster: Cluster,
        into: str | None = None,
        medoid: Example | None = None,
        examples: Sequence[Example] = (),
    ) -> ClusterEvent:
        rates, config = self.live_clusters.forward(cluster.rates), self.live_clusters.config
        cluster.version += 1
        cluster.event_s = self.live_clusters.clock
        return ClusterEvent(
            event=kind,
            cluster_id=cluster.id,
            version=cluster.version,
            posts=cluster.posts,
            weight=round(rates.weight, 3),
            first_at=rfc3339(cluster.first_at),
            last_at=rfc3339(cluster.last_at),
            label=cluster.label,
            encoder_version=self.encoder_version,
            burst=round(rates.burst(config.burst_fast_s, config.burst_slow_s), 2),
            categories=dict(cluster.categories),
            languages=most_frequent(cluster.languages),
            sources=most_frequent(cluster.sources),
            into=into,
            medoid=medoid,
            examples=list(examples),
        )

    def _label(self, cluster: Cluster) -> str:
        live, texts = self.live_clusters, {member.text: member.lang for member in cluster.examples}
        return live.vocabulary.label(cluster.terms, len(live.slots), live.config.label_terms, texts)

    def _drifted(self, cluster: Cluster) -> bool:
        """Would a label made now share less than half its words with the one shown?"""
        old, new = set(cluster.label.split()), set(self._label(cluster).split())
        cluster.label_posts = cluster.posts
        self.live_clusters.unsaved.add(cluster.id)
        return 2 * len(old & new) < max(len(new), 1)

    def _level(self, cluster: Cluster) -> int:
        config = self.live_clusters.config
        self.live_clusters.unsaved.add(cluster.id)  # its rates are brought forward
        z = self.live_clusters.forward(cluster.rates).burst(config.burst_fast_s, config.burst_slow_s)
        return sum(z >= level for level in config.burst_levels)

    def _nearest(self, cluster: Cluster, size: int) -> list[Example]:
        """Examples nearest to the mean, nearest (the medoid) first, one per text."""
        live = self.live_clusters
        total = live.kernel.sums[live.slots[cluster.id]] * GRID
        known = [m for m in cluster.examples if m.vector]
        near = live.lexicon.products([m.vector for m in known], total).tolist()
        order = sorted(zip(near, known, strict=True), key=lambda pair: (-pair[0], pair[1].rank, pair[1].post_id))
        texts = {m.text: Example(m.post_id, m.text, m.lang) for _, m in reversed(order)}  # the nearest of equals wins
        return list(reversed(texts.values()))[:size]
