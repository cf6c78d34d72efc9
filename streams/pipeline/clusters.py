"""The cluster stage: the clusterer, plus the alerts that wait to learn which cluster their post is in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from models.alerts import place_in_cluster
from models.clustering import ClusterConfig, Clusterer
from models.clusters.state import Changes
from models.clusters.unsettled import Unsettled
from models.encoders.protocol import Encoder
from models.errors import Unreadable
from models.records import Alert, ClusterEvent, MatchedFrame
from models.undecodable import UNDECODABLE
from streams.pipeline.ports import Alerts

__all__ = ["UNSETTLED", "ClusterStage", "place_alerts"]

UNSETTLED = "waiting"  # the part of the saved state that is ours


class Saved(Struct):
    """What `Unsettled.saved` gives."""

    posts: list[str]
    guessed: list[str]
    fresh: dict[str, float]


class ClusterStage:
    """Frames in, cluster events out; the same in an agent and in replay. Not thread-safe: one thread calls it."""

    def __init__(self, clusterer: Clusterer, unsettled: Unsettled) -> None:
        self._clusterer, self._unsettled = clusterer, unsettled

    @classmethod
    def new(cls, config: ClusterConfig, dim: int, encoder_version: str) -> ClusterStage:
        """An empty one."""
        return cls(Clusterer(config, dim, encoder_version), Unsettled())

    @classmethod
    def restore(
        cls, parts: Mapping[str, bytes], config: ClusterConfig, encoder: Encoder, now_s: float = -math.inf
    ) -> ClusterStage:
        """The state that was saved, re-embedded if it was of another encoder version (cluster ids are kept). Raises as
        `Clusterer.resume`.

        now_s: epoch seconds; what was seen before may have been read, and told of, by another worker.
        """
        clusterer = Clusterer.resume(parts, config)
        if clusterer.encoder_version != encoder.version:
            clusterer.rebase(encoder.version, encoder.dim, encoder.encode)
        try:
            saved = msgspec.msgpack.decode(parts[UNSETTLED], type=Saved | list[str])
        except (KeyError, *UNDECODABLE) as error:
            raise Unreadable(f"what waits for its cluster cannot be read: {error!r}") from error
        if not isinstance(saved, Saved):  # as an earlier version saved it
            saved = Saved(saved, [], {})
        seen = clusterer.counters.posts, clusterer.unmerged_posts
        return cls(clusterer, Unsettled(saved.posts, saved.guessed, saved.fresh, now_s, seen))

    def changes(self) -> Changes:
        """What changed since the last call, in parts for `restore`; everything at the first."""
        changes = self._clusterer.changes()
        changes.put[UNSETTLED] = msgspec.msgpack.encode(Saved(*self._unsettled.saved()))
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
            self._unsettled.add(frame, self._clusterer.clock)
        return events, self._unsettled.settled(self._clusterer)

    def likely(self) -> dict[str, str | None]:
        """After a batch: likely clusters of posts that would wait for seconds, None where one is taken back.

        Nobody who reads a file needs it.
        """
        return self._unsettled.likely(self._clusterer)

    def rest(self) -> tuple[list[ClusterEvent], dict[str, str], dict[str, str | None]]:
        """Where no batch has come for so long that the next post would settle first: do that now, and guess the rest.

        Only the next post's own clock would tell it, and on a quiet stream that comes when it comes. Without a full
        merge, which at every pause would be of too little evidence. Returns what `add_all` and `likely` do.
        """
        events = self._clusterer.settle(merge=False)
        return events, self._unsettled.settled(self._clusterer), self._unsettled.likely(self._clusterer, at_rest=True)

    def finish(self) -> tuple[list[ClusterEvent], dict[str, str]]:
        """At the end of a file: merge once more, so that the last posts settle too."""
        return self._clusterer.settle(), self._unsettled.settled(self._clusterer)


async def place_alerts(
    placed: Mapping[str, str], known: Alerts, likely: Mapping[str, str | None] | None = None
) -> list[Alert]:
    """The alerts of these posts, with their cluster filled in.

    likely: what else is told, but for alerts that name a cluster already; None clears what was told so.
    """
    guessed = likely or {}
    told, asked = [], {**guessed, **placed}
    for alert in await known.alerts_of(asked) if asked else []:
        post_id, now = alert.post.id, alert.cluster_id
        if alert.status != "active" or post_id not in asked:  # an id may be that of an account: asked for, all of its
            continue
        if post_id in placed:
            told += [place_in_cluster(alert, placed[post_id])] if now != placed[post_id] else []
        elif (now is None) != (guessed[post_id] is None):
            told.append(place_in_cluster(alert, guessed[post_id], settled=False))
    return told
