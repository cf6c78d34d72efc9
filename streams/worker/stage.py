"""What the handlers of the agents share."""

from __future__ import annotations

import time

import faust

from models.errors import Rejected
from models.moments import rfc3339
from models.records import Frame, Origin, Reject
from streams import metrics
from streams.pipeline import stages
from streams.pipeline.frames import decode_frames
from streams.worker.outbox import Outbox
from streams.worker.runtime import Runtime

Events = list[faust.Event]


def origin_of(event: faust.Event) -> Origin:
    return Origin(event.message.partition, event.message.offset)


class Handler:
    """What the handlers share: the runtime, where they send, and how a frame that cannot be read is refused."""

    name: str

    def __init__(self, runtime: Runtime, outbox: Outbox) -> None:
        self.runtime, self.outbox = runtime, outbox
        self.view = runtime.view

    async def _decode(self, events: Events, kind: type[Frame]) -> list[Frame]:
        frames = []
        for event in events:
            try:
                frames += decode_frames(event.value or b"", kind)
            except Rejected as why:  # somebody else wrote to our inner topic
                await self._refuse(origin_of(event), why.reason, str(why), event.value or b"", 0)
        return frames

    async def give_up(self, event: faust.Event, detail: str) -> None:
        """Refuse a record as it came."""
        origin, value = origin_of(event), event.value or b""
        await self._refuse(origin, "worker_died", detail, value, 0)
        await self.outbox.delivered()
        counts = {"rejected": self.without_outcome(value)}
        await self.view.count(f"given-up:{self.name}", origin, {"counts": counts, "reasons": {"worker_died": 1}})

    def without_outcome(self, value: bytes) -> int:
        """Posts that are counted nowhere else where this record is refused."""
        return 1

    async def _refuse(self, origin: Origin, reason: str, detail: str, raw: bytes, line: int) -> None:
        reject = Reject(reason, detail, self.name, origin, line, rfc3339(time.time()), raw[: stages.KEPT_OF_REJECT])
        await self.outbox.send_rejects([reject])
        metrics.rejects.labels(reason).inc()
