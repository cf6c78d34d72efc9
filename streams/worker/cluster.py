"""The cluster agent: matched frames in, cluster events and alert updates out; its state is saved before it
acknowledges.
"""

from __future__ import annotations

import asyncio
import logging

from models.audit import propose_merges
from models.clustering import ClusterConfig
from models.clusters.state import Changes
from models.encoders.protocol import Encoder
from models.encoders.ready import Loaded
from models.records import ClusterEvent, MatchedFrame, Origin
from streams import metrics
from streams.pipeline.clusters import ClusterStage, place_alerts
from streams.releases.clusters import ClusterVersion
from streams.view.live import Counts
from streams.view.snapshots import Kept
from streams.worker.outbox import Outbox
from streams.worker.runtime import Runtime
from streams.worker.stage import Events, Handler

__all__ = ["Cluster"]

log = logging.getLogger(__name__)

SAVE_AT = 2_000  # posts: on a fast stream a save is due before its timer, so that none takes long


class Cluster(Handler):
    """posts.matched → clusters, and alert updates once a post's cluster is known.

    The clusterer's state lives in memory; a frame is acknowledged when a snapshot that contains it is saved. After a
    crash or a rebalance the next owner restores the snapshot, reads on from the last acknowledged frame, and skips
    what the snapshot already holds.

    While one batch is told (a dozen answers of Redis and the broker) the next one is computed, and no more than one.
    """

    name = "cluster"
    kind = MatchedFrame

    def __init__(self, runtime: Runtime, outbox: Outbox) -> None:
        super().__init__(runtime, outbox)
        self.stage: ClusterStage | None = None
        self._version = ClusterVersion(runtime.compute)
        self._compares: tuple[Loaded, Encoder] | None = None  # a version, and what it compares posts by
        self._held: Events = []
        self._posts = 0  # applied since the last save
        self._whole = False  # what was saved is lost: the next save is of everything
        self._turn = asyncio.Lock()  # a snapshot holds whole batches: what is in it has been told
        self._telling: asyncio.Task[None] | None = None

    def given_up(self, value: bytes, origin: Origin) -> list[tuple[Origin, Counts]]:
        """Nothing: its posts have their outcomes, it is their clusters that are not known."""
        return []

    def forget(self) -> None:
        """The partition moved to another worker: the next frames start from the saved snapshot."""
        self.stage, self._held, self._posts, self._compares, self._whole = None, [], 0, None, False
        self.applied.clear()

    async def __call__(self, events: Events) -> Events:
        async with self._turn:
            await self._apply(events)
        return []

    async def _apply(self, events: Events) -> None:
        if self.stage is None:
            await self.told()
            self.stage = await self._restore()
        stage = self.stage
        await self._version.follow(stage, *await self._current())
        frames = await self._version.bring(await self._decode(events))
        before = stage.clusterer.counters.posts
        changes, placed = await self.runtime.compute("cluster", stage.add_all, frames)
        metrics.posts.labels(self.name, "clustered").inc(stage.clusterer.counters.posts - before)
        await self.told()
        if self.stage is not stage:  # the partition moved meanwhile: whoever has it reads these frames again
            return
        self._posts += sum(len(frame.posts) for frame in frames)
        saved = await self._changes(stage) if self._posts >= SAVE_AT else None
        self._telling = asyncio.create_task(self._tell(stage, events, changes, placed, saved))

    async def told(self) -> None:
        """Wait for the batch that is being told. Raises what kept it from being so."""
        telling, self._telling = self._telling, None
        if telling is not None:
            await telling

    async def _tell(
        self,
        stage: ClusterStage,
        events: Events,
        changes: list[ClusterEvent],
        placed: dict[str, str],
        saved: Changes | None,
    ) -> None:
        """Tell of a batch, then keep what holds it, if that is due."""
        alerts = await place_alerts(placed, self.view)
        await self.outbox.send_cluster_events(changes)
        await self.outbox.send_alerts(alerts)
        await self.outbox.delivered()
        await self.view.put_clusters(changes)
        await self.view.put_alerts(alerts)
        for change in changes:
            metrics.cluster_events.labels(change.event).inc()
        if self.stage is stage:
            self._held += events
            for event in events:
                self.applied[event.message.topic, event.message.partition] = event.message.offset + 1
            if saved is not None:
                await self._keep(stage, saved)

    async def save(self) -> None:
        """Save what changed in the state, then acknowledge the frames it contains."""
        async with self._turn:
            await self.told()
            for _ in range(2):  # what was lost is saved again whole
                if (stage := self.stage) is None or not self._held:
                    break
                if await self._keep(stage, await self._changes(stage)) is not Kept.LOST:
                    break

    async def _changes(self, stage: ClusterStage) -> Changes:
        """What a save has to keep. Of a state that counts as saved with it: `_keep` says if it was not."""
        whole, self._whole, self._posts = self._whole, False, 0
        changes: Changes
        changes, size, biggest = await self.runtime.compute("cluster", changes_of, stage, whole)
        metrics.clusters.set(size)
        metrics.biggest_cluster_share.set(biggest)
        return changes

    async def _keep(self, stage: ClusterStage, changes: Changes) -> Kept | None:
        """Save them, then acknowledge what they hold: all that was told so far."""
        if self.stage is not stage:  # it moved meanwhile: its new owner's snapshots are the ones that count
            return None
        held, self._held = self._held, []
        try:
            kept: Kept = await self.runtime.snapshots.save(changes)
        except BaseException:
            self._whole, self._held = True, held + self._held
            raise
        if self.stage is not stage:
            return kept
        if kept is Kept.LOST:
            self._whole, self._held, self._posts = True, held + self._held, SAVE_AT
        elif kept is Kept.MOVED:
            log.warning("another worker has taken over the clusters: giving them up here")
            self.forget()
        else:
            for event in held:
                event.ack()
        return kept

    async def audit(self) -> None:
        """Let HDBSCAN look over the clusters; what it would merge is shown to people, never done."""
        if self.stage is not None:
            clusterer = self.stage.clusterer
            clusters, means = await self.runtime.compute("cluster", clusterer.means)
            t_merge = clusterer.config.t_merge
            # In a thread of its own: it may take seconds, and the stream goes on.
            await self.view.put_proposals(await asyncio.to_thread(propose_merges, clusters, means, t_merge))

    async def _restore(self) -> ClusterStage:
        saved = await self.runtime.snapshots.load()
        encoder, config = await self._current()
        self._version.begin(encoder)
        if saved is None:
            return ClusterStage.new(config, encoder.dim, encoder.version)
        return await self.runtime.compute("cluster", ClusterStage.restore, saved, config, encoder)

    async def _current(self) -> tuple[Encoder, ClusterConfig]:
        """What the version that serves compares posts by, and the settings with its thresholds.

        Asked once a version, in the clusters' thread: it may load the static encoder.
        """
        current = self.runtime.serving.current
        if self._compares is None or self._compares[0] is not current:
            encoder = await self.runtime.compute("cluster", getattr, current, "clustered_by")
            self._compares = current, encoder
        return self._compares[1], self.runtime.settings.clusters_under(current.clusters)


def changes_of(stage: ClusterStage, whole: bool) -> tuple[Changes, int, float]:
    """What changed since the last save, or everything; how many clusters live, and the share of the biggest one.

    Blocking. In the clusters' thread: the next batch changes them.
    """
    if whole:
        stage.start_over()
    return stage.changes(), stage.clusterer.size, stage.clusterer.biggest_share()
