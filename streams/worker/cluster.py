"""The cluster agent: matched frames in, cluster events and alert updates out; its state is saved before it
acknowledges.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence

from models.audit import propose_merges
from models.clustering import ClusterConfig
from models.encoders.protocol import Encoder
from models.encoders.ready import Loaded
from models.errors import ServiceError, Unreadable
from models.records import ClusterEvent, MatchedFrame, Origin
from streams import metrics
from streams.pipeline.clusters import ClusterStage, place_alerts
from streams.releases.clusters import ClusterVersion
from streams.view.live import Counts
from streams.view.snapshots import Kept
from streams.worker.keeping import keep_alerts
from streams.worker.outbox import Outbox
from streams.worker.runtime import Runtime
from streams.worker.stage import Events, Handler

__all__ = ["Cluster"]

log = logging.getLogger(__name__)

PART = 700  # posts that are told together; by themselves four round trips cost 2 µs a post of them
SAVE_AT = 2_000  # posts: on a fast stream a save is due before its timer, so that none takes long


class Cluster(Handler):
    """posts.matched → clusters, and alert updates once a post's cluster is known.

    The clusterer's state lives in memory; a frame is acknowledged when a snapshot that contains it is saved. After a
    crash or a rebalance the next owner restores the snapshot, reads on from the last acknowledged frame, and skips
    what the snapshot already holds. State that holds what could not be told is dropped: no snapshot is taken of it.
    So is one that another worker has loaded meanwhile, and then the process ends: it has frames in hand that are in no
    snapshot, and would go on behind them.
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
        self._rests_at = math.inf  # when nobody has come for so long that the next would settle (`ClusterStage.rest`)
        self._forgot = 0  # how often the state was given up
        self._turn = asyncio.Lock()  # a snapshot holds whole batches: what is in it has been told

    def given_up(self, value: bytes, origin: Origin) -> list[tuple[Origin, Counts]]:
        """Nothing: its posts have their outcomes, it is their clusters that are not known."""
        return []

    def forget(self) -> None:
        """The partition moved to another worker: the next frames start from the saved snapshot."""
        self.stage, self._held, self._posts, self._compares = None, [], 0, None
        self._forgot += 1
        self.applied.clear()
        metrics.clusters.set(0)  # its new owner shows them
        metrics.biggest_cluster_share.set(0)

    async def __call__(self, events: Events) -> Events:
        async with self._turn:
            await self._apply(events)
            if self._posts >= SAVE_AT:
                await self._save()
        return []

    async def _apply(self, events: Events) -> None:
        if self.stage is None:
            before, restored = self._forgot, await self._restore()
            if self._forgot != before:  # the partition moved meanwhile: whoever has it reads these frames again
                return
            self.stage = restored
        stage = self.stage
        await self._version.follow(stage, *await self._current())
        frames = await self._version.bring(await self._decode(events))
        try:
            await self._place(stage, frames)
            await self.outbox.delivered()  # of what was refused, if nothing else came of it
        except BaseException:
            self.forget()
            raise
        self._rests_at = time.monotonic() + stage.clusterer.config.settle_every_s
        if self.stage is stage:  # else the partition moved meanwhile: whoever has it reads these frames again
            self._held += events
            for event in events:
                self.applied[event.message.topic, event.message.partition] = event.message.offset + 1
            self._posts += sum(len(frame.posts) for frame in frames)

    async def _place(self, stage: ClusterStage, frames: list[MatchedFrame]) -> None:
        """Apply frames and tell of it, part by part: while one is told (a dozen answers of Redis and the broker) the
        next is computed."""
        telling: asyncio.Task[None] | None = None
        try:
            parts = list(parts_of(frames))
            for part in parts:
                before = stage.clusterer.counters.posts
                changed = await self.runtime.compute("cluster", apply, stage, part, part is parts[-1])
                number = stage.clusterer.counters.posts - before
                if telling is not None:
                    await telling
                telling = asyncio.create_task(self._tell(*changed, number))
            if telling is not None:
                await telling
        finally:
            if telling is not None:
                telling.cancel()
                await asyncio.gather(telling, return_exceptions=True)

    async def _tell(
        self,
        changes: list[ClusterEvent],
        placed: Mapping[str, str],
        likely: Mapping[str, str | None],
        number: int,
    ) -> None:
        """Of what so many posts changed."""
        alerts = await place_alerts(placed, self.view, likely)
        changes_told = await self.outbox.send_cluster_events(changes)
        alerts_told = await self.outbox.send_alerts(alerts)
        await self.outbox.delivered()
        await self.view.put_clusters(changes, changes_told)
        await keep_alerts(self.outbox, self.view, alerts, told=alerts_told)
        metrics.posts.labels(self.name, "clustered").inc(number)
        for change in changes:
            metrics.cluster_events.labels(change.event).inc()

    async def rest(self) -> None:
        """Once after each time that posts came, when none has come for long: tell what waits for the next one."""
        async with self._turn:
            if self.stage is None or time.monotonic() < self._rests_at:
                return
            self._rests_at = math.inf
            try:
                await self._tell(*await self.runtime.compute("cluster", self.stage.rest), 0)
            except BaseException:
                self.forget()
                raise
            await self._save()  # at once: who went on from before would tell other states as the same versions

    async def save(self) -> None:
        """Save what changed in the state, then acknowledge the frames it contains."""
        async with self._turn:
            if self._held:
                await self._save()

    async def _save(self) -> None:
        stage = self.stage
        if stage is None:
            return
        held, self._held, self._posts = self._held, [], 0
        try:
            kept = await self._keep(stage)
            if kept is Kept.LOST:
                stage.start_over()
                kept = await self._keep(stage)
        except BaseException:
            stage.start_over()
            self._held = held + self._held
            raise
        if kept is None:  # it moved meanwhile: its new owner's snapshots are the ones that count
            return
        if kept is Kept.MOVED:
            self.forget()
            raise ServiceError("another worker has loaded the clusters meanwhile: beginning anew, with what is saved")
        for event in held:
            event.ack()
        metrics.clusters.set(stage.clusterer.size)
        metrics.biggest_cluster_share.set(stage.clusterer.biggest_share())

    async def _keep(self, stage: ClusterStage) -> Kept | None:
        changes = await self.runtime.compute("cluster", stage.changes)
        return await self.runtime.snapshots.save(changes) if self.stage is stage else None

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
        if saved is not None:
            try:
                return await self.runtime.compute("cluster", ClusterStage.restore, saved, config, encoder, time.time())
            except Unreadable as error:  # the stream goes on: clusters come again, and no worker could ever read it
                log.critical("the saved clusters are lost, they begin anew: %s", error)
        return ClusterStage.new(config, encoder.dim, encoder.version)

    async def _current(self) -> tuple[Encoder, ClusterConfig]:
        """What the version that serves compares posts by, and the settings with its thresholds.

        Asked once a version, in the clusters' thread: it may load the static encoder.
        """
        current = self.runtime.serving.current
        if self._compares is None or self._compares[0] is not current:
            encoder = await self.runtime.compute("cluster", getattr, current, "clustered_by")
            self._compares = current, encoder
        return self._compares[1], self.runtime.settings.clusters_under(current.clusters)


def apply(
    stage: ClusterStage, frames: Sequence[MatchedFrame], ends: bool
) -> tuple[list[ClusterEvent], dict[str, str], dict[str, str | None]]:
    """What the frames changed, and where posts with alerts are; where they likely are once a batch ends. Blocking."""
    return *stage.add_all(frames), stage.likely() if ends else {}


def parts_of(frames: Sequence[MatchedFrame]) -> Iterator[list[MatchedFrame]]:
    """Runs of frames that hold PART posts, the last of them fewer."""
    part: list[MatchedFrame] = []
    for frame in frames:
        part.append(frame)
        if sum(len(one.posts) for one in part) >= PART:
            yield part
            part = []
    if part:
        yield part
