"""The cluster stage: the clusterer, plus the alerts that wait to learn which cluster their post is in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from models.alerts import place_in_cluster
from models.clustering import ClusterConfig, Clusterer
from models.clusters.state import Changes
from models.encoders.protocol import Encoder
from models.records import Alert, ClusterEvent, MatchedFrame
from streams.pipeline.ports import Alerts

__all__ = ["ClusterStage", "place_alerts"]

MOST_WAITING = 50_000  # posts; the oldest are given up first: they stayed alone
WAITING = "waiting"  # the part of the saved state that is ours


class ClusterStage:
    """Frames in, cluster events out; the same in an agent and in replay. Not thread-safe: one thread calls it."""

    def __init__(self, clusterer: Clusterer, waiting: dict[str, None]) -> None:
        self._clusterer = clusterer
        self._waiting = waiting  # ids of posts with alerts whose cluster is not announced yet, oldest first

    @classmethod
    def new(cls, config: ClusterConfig, dim: int, encoder_version: str) -> ClusterStage:
        """An empty one."""
        return cls(Clusterer(config, dim, encoder_version), {})

    @classmethod
    def restore(cls, parts: Mapping[str, bytes], config: ClusterConfig, encoder: Encoder) -> ClusterStage:
        """The state that was saved, re-embedded if it was of another encoder version (cluster ids are kept)."""
        clusterer = Clusterer.resume(parts, config)
        if clusterer.encoder_version != encoder.version:
            clusterer.rebase(encoder.version, encoder.dim, encoder.encode)
        return cls(clusterer, dict.fromkeys(msgspec.msgpack.decode(parts[WAITING], type=list[str])))

    def changes(self) -> Changes:
        """What changed since the last call, in parts for `restore`; everything at the first."""
        changes = self._clusterer.changes()
        changes.put[WAITING] = msgspec.msgpack.encode(list(self._waiting))
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
            self._waiting |= dict.fromkeys(m.post_id for m in frame.matches)
            for deletion in frame.deletions:
                self._waiting.pop(deletion.id, None)
        return events, self._placed()

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


async def place_alerts(placed: dict[str, str], known: Alerts) -> list[Alert]:
    """The alerts of these posts, with their cluster filled in."""
    alerts = await known.alerts_of(placed) if placed else []
    return [
        place_in_cluster(a, placed[a.post.id])
        for a in alerts
        if a.status == "active" and a.cluster_id != placed[a.post.id]
    ]
