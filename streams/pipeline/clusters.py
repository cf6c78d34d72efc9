"""The cluster stage: the clusterer, plus the alerts that wait to learn which cluster their post is in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from models.alerts import place_in_cluster
from models.clustering import ClusterConfig, Clusterer
from models.clusters.state import Changes
from models.encoders.protocol import Encoder
from models.records import Alert, ClusterEvent, MatchedFrame
from streams.pipeline.ports import Alerts

__all__ = ["ClusterStage", "place_alerts"]

MOST_WAITING = 50_000  # posts; the oldest are given up first: they stayed alone
# Seconds of the stream since a post came in which a likely cluster is looked for: before, it may have its own at once.
LIKELY_AFTER_S, LIKELY_UNTIL_S = 0.5, 10.0
SETTLED = math.inf  # of a post that waits: none is looked for any more
NONE = msgspec.msgpack.encode([])
WAITING, GUESSED = "waiting", "guessed"  # the parts of the saved state that are ours


class ClusterStage:
    """Frames in, cluster events out; the same in an agent and in replay. Not thread-safe: one thread calls it."""

    def __init__(self, clusterer: Clusterer, waiting: Iterable[str] = (), guessed: Iterable[str] = ()) -> None:
        self._clusterer = clusterer
        # posts with alerts whose cluster is not announced yet, oldest first → when they came, by the stream's clock
        self._waiting = dict.fromkeys(waiting, SETTLED)
        self._guessed = set(guessed)  # those that were told a likely cluster
        self._unmerged, self._posts = clusterer.unmerged_posts, clusterer.counters.posts  # as `likely` last saw them

    @classmethod
    def new(cls, config: ClusterConfig, dim: int, encoder_version: str) -> ClusterStage:
        """An empty one."""
        return cls(Clusterer(config, dim, encoder_version))

    @classmethod
    def restore(cls, parts: Mapping[str, bytes], config: ClusterConfig, encoder: Encoder) -> ClusterStage:
        """The state that was saved, re-embedded if it was of another encoder version (cluster ids are kept)."""
        clusterer = Clusterer.resume(parts, config)
        if clusterer.encoder_version != encoder.version:
            clusterer.rebase(encoder.version, encoder.dim, encoder.encode)
        ours = (msgspec.msgpack.decode(parts.get(name, NONE), type=list[str]) for name in (WAITING, GUESSED))
        return cls(clusterer, *ours)

    def changes(self) -> Changes:
        """What changed since the last call, in parts for `restore`; everything at the first."""
        changes = self._clusterer.changes()
        for name, posts in ((WAITING, self._waiting), (GUESSED, self._guessed)):
            changes.put[name] = msgspec.msgpack.encode(list(posts))
        return changes

    def start_over(self) -> None:
        """What was saved is lost: the next `changes` gives everything."""
        self._clusterer.start_over()

    def retune(self, config: ClusterConfig) -> None:
        """Go on with another config, from here on."""
        self._clusterer = Clusterer.restore(self._clusterer.snapshot(), config)

    @property
    def clusterer(self) -> Clusterer:
        """For views and audits."""
        return self._clusterer

    def add_all(self, frames: Sequence[MatchedFrame]) -> tuple[list[ClusterEvent], dict[str, str]]:
        """Apply frames in order. Returns what changed, and post id → cluster id of posts whose cluster is now known."""
        events = self._clusterer.add_all(frames)
        for frame in frames:
            self._waiting |= dict.fromkeys((m.post_id for m in frame.matches), self._clusterer.clock)
            for deletion in frame.deletions:
                self._waiting.pop(deletion.id, None)
        return events, self._placed()

    def likely(self) -> dict[str, str | None]:
        """After a batch, where the stream is slow: likely clusters of posts that wait for a merge, and None for
        those whose likely cluster did not take them in. Nobody who reads a file needs it.
        """
        clusterer = self._clusterer
        came = clusterer.counters.posts - self._posts  # since the last call
        merged = clusterer.unmerged_posts < self._unmerged + came
        self._posts, self._unmerged = clusterer.counters.posts, clusterer.unmerged_posts
        self._guessed.intersection_update(self._waiting)  # the others are where they belong
        if merged:
            told: dict[str, str | None] = dict.fromkeys(self._guessed)
            self._guessed.clear()
            return told
        if came >= clusterer.config.merge_soon_posts:  # the next merge is as soon
            return {}
        asked = []
        for post_id, at in self._waiting.items():
            if clusterer.clock - at > LIKELY_UNTIL_S:
                self._waiting[post_id] = SETTLED
            elif clusterer.clock - at >= LIKELY_AFTER_S:
                asked.append(post_id)
        likely = clusterer.likely_clusters_of(asked)
        self._waiting |= dict.fromkeys(likely, SETTLED)
        self._guessed.update(likely)
        return dict(likely)

    def finish(self) -> tuple[list[ClusterEvent], dict[str, str]]:
        """At the end of a file: merge once more, so that the last posts settle too."""
        return self._clusterer.settle(), self._placed()

    def _placed(self) -> dict[str, str]:
        placed = {p: c for p in self._waiting if (c := self._clusterer.announced_cluster_of(p)) is not None}
        for post_id in placed:
            del self._waiting[post_id]
        for post_id in list(self._waiting)[: max(0, len(self._waiting) - MOST_WAITING)]:
            del self._waiting[post_id]
        return placed


async def place_alerts(placed: Mapping[str, str | None], known: Alerts) -> list[Alert]:
    """The alerts of these posts, with their cluster filled in; None where it is unknown again."""
    alerts = await known.alerts_of(placed) if placed else []
    return [
        place_in_cluster(a, placed[a.post.id])
        for a in alerts
        if a.status == "active" and a.cluster_id != placed[a.post.id]
    ]
