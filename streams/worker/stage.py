"""What the handlers of the agents share."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time

import faust

from models.errors import Rejected
from models.moments import rfc3339
from models.records import EmbeddedFrame, Frame, Origin, Reject
from streams import metrics
from streams.pipeline import stages
from streams.pipeline.frames import decode_frames
from streams.view.live import Counts
from streams.worker.outbox import Outbox
from streams.worker.runtime import Runtime
from streams.worker.sent_on import lies_in
from streams.worker.watchdog import Partition

__all__ = ["Events", "Handler", "origin_of", "refused"]

Events = list[faust.Event]
log = logging.getLogger(__name__)


def origin_of(event: faust.Event) -> Origin:
    return Origin(event.message.partition, event.message.offset)


def refused(posts: int) -> dict[str, dict[str, int]]:
    """Counters of the live view for posts of a record that was given up."""
    return {"counts": {"rejected": posts}, "reasons": {"worker_died": posts}}


def posts_of(frame: Frame) -> int:
    """Posts of the frame that have no outcome yet: those that were put by too."""
    return len(frame.posts) + (len(frame.waiting) if isinstance(frame, EmbeddedFrame) else 0)


class Handler:
    """What the handlers share: the runtime, where they send, and how a frame that cannot be read is refused."""

    name: str
    kind: type[Frame] = Frame  # what it reads
    gives = ""  # the topic of its frames

    def __init__(self, runtime: Runtime, outbox: Outbox) -> None:
        self.runtime, self.outbox = runtime, outbox
        self.view = runtime.view
        self.applied: dict[Partition, int] = {}  # next offset after what had its effects, for who acknowledges later

    async def _decode(self, events: Events) -> list[Frame]:
        frames = []
        for event in events:
            try:
                frames += decode_frames(event.value or b"", self.kind)
            except Rejected as why:  # somebody else wrote to our inner topic
                await self._refuse(origin_of(event), why.reason, str(why), event.value or b"", 0)
        return frames

    async def was_sent_on(self, event: faust.Event) -> bool:
        """Does what it makes of this record lie on the broker? Raises ServiceError if that cannot be asked."""
        with contextlib.suppress(Rejected):
            origins = self.origins(event.value or b"", origin_of(event))
            written_s = self.written_s(event)
            return bool(self.gives) and await asyncio.to_thread(
                lies_in, self.runtime.settings, self.gives, origins, written_s
            )
        return False

    def origins(self, value: bytes, origin: Origin) -> set[tuple[int, int, int]]:
        """Partition, offset and turn of the frames it makes of a record. Raises Rejected if that is no frame."""
        frames = decode_frames(value, self.kind)
        return {(frame.origin.partition, frame.origin.offset, frame.origin.turn) for frame in frames}

    def written_s(self, event: faust.Event) -> float:
        """When the record was written, in epoch seconds."""
        return event.message.timestamp

    async def give_up(self, event: faust.Event, detail: str) -> None:
        """Refuse a record as it came, but for one whose frames were all counted before: what they gave was sent on.

        Workers that are killed from outside die on records that they were done with too: refused, those posts would be
        told twice, as a match and as a reject. Each frame counts once, whoever dies while refusing it.
        """
        origin, value = origin_of(event), event.value or b""
        try:
            held = self.given_up(value, origin)
        except Rejected:  # no frame, so of no place in posts.raw
            await self._refuse(origin, "worker_died", detail, value, 0)
            await self.outbox.delivered()
            await self.view.count(f"given-up:{self.name}", origin, refused(1))
            return
        left = [(at, counts) for at, counts in held if not await self.view.was_counted(self.name, at)]
        if held and not left:
            log.warning("%s, record %d/%d: done before its worker died", self.name, origin.partition, origin.offset)
            return
        await self._refuse(origin, "worker_died", detail, value, 0)
        await self.outbox.delivered()
        await self.view.count_all(self.name, left)

    def given_up(self, value: bytes, origin: Origin) -> list[tuple[Origin, Counts]]:
        """What the posts of a record count as when it is refused. Raises Rejected if it is no frame."""
        return [(frame.origin, refused(posts_of(frame))) for frame in decode_frames(value, self.kind)]

    async def _refuse(self, origin: Origin, reason: str, detail: str, raw: bytes, line: int) -> None:
        reject = Reject(reason, detail, self.name, origin, line, rfc3339(time.time()), raw[: stages.KEPT_OF_REJECT])
        await self.outbox.send_rejects([reject])
        metrics.rejects.labels(reason).inc()
