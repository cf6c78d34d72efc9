"""Reads in context what was put by, where there is room: posts.waiting → posts.embedded.

A consumer of its own beside Faust's: it takes a record of each partition in hand and goes no further until the reader
keeps up with the posts that come (`Pace.room`). What waits lies on the broker, and a record is acknowledged when what
was made of it is. A post that was deleted or edited meanwhile is not read any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import IllegalStateError, KafkaError
from msgspec import Struct

from models.errors import Rejected
from models.records import Frame, Origin
from streams import metrics
from streams.broker.backoff import Good, keep_up
from streams.broker.connect import client_options
from streams.pipeline.frames import decode_frames, split_frame
from streams.pipeline.triage import TURNS, Turns
from streams.view.live import Counts
from streams.worker import careful
from streams.worker.embed import Embed
from streams.worker.outbox import Outbox
from streams.worker.runtime import Runtime
from streams.worker.stage import Events

__all__ = ["Waiting"]

log = logging.getLogger(__name__)

CALL_POSTS = 64  # read in one encoder call: a fifth of a second that new posts may wait
LOOK_S = 0.2
AWAY_S = 15.0  # a broker that changes hands is away for moments
NOTHING_S = 1.0  # with nothing in hand: what comes ends it
NOWHERE = TopicPartition("", -1)


class TakeUp(Embed):
    """What the embed agent does, for frames of posts that were put by."""

    name = "waiting"

    async def __call__(self, events: Events) -> Events:
        frames = await self._decode(events)
        kept = await self._still_said(frames)
        most_bytes = self.runtime.settings.worker.frame_bytes
        for call in _calls([piece for frame in kept for piece in split_frame(frame, most_bytes, CALL_POSTS)]):
            await self._read(call, {})
        told = []
        for frame, left in zip(frames, kept, strict=True):
            counts = {"taken_up": len(frame.posts), "no_match": len(frame.posts) - len(left.posts)}
            told.append((frame.origin, {"counts": counts}))
        new = await self.view.count_all(self.name, told)
        metrics.taken_up.inc(sum(len(frame.posts) for frame, first in zip(frames, new, strict=True) if first))
        return events

    def written_s(self, event: Any) -> float:
        """aiokafka's own records tell milliseconds, where Faust's tell seconds."""
        return event.message.timestamp / 1000

    def given_up(self, value: bytes, origin: Origin) -> list[tuple[Origin, Counts]]:
        """Taken up, and refused: nothing of it waits any more."""
        told = []
        for at, of in super().given_up(value, origin):
            counts = of["counts"] | {"taken_up": of["counts"]["rejected"]}
            told.append((at, {**of, "counts": counts}))
        return told


def _calls(pieces: Sequence[Frame]) -> Iterator[list[Frame]]:
    """Pieces that are read in one encoder call: small frames share it as they share a record."""
    call: list[Frame] = []
    for piece in pieces:
        if call and sum(len(frame.posts) for frame in call) + len(piece.posts) > CALL_POSTS:
            yield call
            call = []
        call.append(piece)
    if call:
        yield call


class Waiting:
    """`run` until cancelled, as one task of the worker's event loop."""

    def __init__(self, runtime: Runtime, outbox: Outbox) -> None:
        self._runtime, self._handler, self._turns = runtime, TakeUp(runtime, outbox), Turns()
        self._held: dict[TopicPartition, _Held] = {}  # the first of each partition that is not done
        self._away: tuple[float, str] | None = None  # since when nothing can be fetched, time.monotonic(), and why

    def waits_s(self, now: float) -> float:
        """How long ago the oldest post in hand was put by; 0 where none waits. now: epoch seconds."""
        since = min((held.put_by_at for held in self._held.values() if held.put_by_at), default=now)
        return max(0.0, now - since)

    @property
    def trouble(self) -> str:
        """Why nothing that waits can be read; empty where it can, or could moments ago."""
        since, why = self._away or (time.monotonic(), "")
        return why if time.monotonic() - since >= AWAY_S else ""

    async def run(self) -> None:
        """Take up what waits; a broker that is away is tried again."""

        def away(error: BaseException, pause_s: float) -> None:
            since = self._away[0] if self._away else time.monotonic()
            self._away = since, f"posts that wait to be read in context are not read: {error!r}"
            log.warning("posts that wait cannot be fetched (%s); again in %.1f s", error, pause_s)

        await keep_up(self._session, (KafkaError,), away, first_s=0.5, longest_s=10.0)

    async def _session(self, good: Good) -> None:
        settings = self._runtime.settings
        consumer = AIOKafkaConsumer(
            settings.topics.name("posts.waiting"),
            **client_options(settings.broker),
            group_id=f"{settings.topics.prefix}crisis-waiting",
            client_id="crisis-waiting",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        try:
            await consumer.start()
            good()
            self._away = None
            while True:
                await self._fetch(consumer)
                if not self._held or not self._runtime.pace.room(time.time()):
                    await asyncio.sleep(LOOK_S)
                    continue
                await self._take_up(consumer)
        finally:
            self._held.clear()
            await consumer.stop()

    async def _fetch(self, consumer: AIOKafkaConsumer) -> None:
        """Have the next record of each of our partitions in hand, as far as they have come."""
        ours = consumer.assignment()
        self._held = {part: held for part, held in self._held.items() if part in ours}
        while free := sorted(ours - self._held.keys()):
            wait_ms = 0 if self._held else int(NOTHING_S * 1000)
            found = await consumer.getmany(*free, timeout_ms=wait_ms, max_records=1)
            if not found:
                break
            for part, (record,) in found.items():
                self._held[part] = _Held(record, await asyncio.to_thread(_put_by_at, record.value or b""))
        else:
            await consumer.getmany(NOWHERE, timeout_ms=0)  # who asks for nothing for five minutes leaves the group
        metrics.waiting_seconds.set(self.waits_s(time.time()))

    async def _take_up(self, consumer: AIOKafkaConsumer) -> None:
        partitions = self._runtime.settings.topics.partitions
        turns = {part: min(TURNS, 1 + part.partition // partitions) for part in self._held}
        turn = self._turns.next_of(turns.values())
        part = min((p for p in self._held if turns[p] == turn), key=lambda p: (self._held[p].put_by_at, p.partition))
        record = self._held.pop(part).record
        with self._runtime.work.on(self._handler.name, ()):
            await careful.handle(self._handler, [SimpleNamespace(message=record, value=record.value)])
        with contextlib.suppress(IllegalStateError):  # the partition has moved: its new owner reads the record again
            try:
                await consumer.commit({part: record.offset + 1})
            except KafkaError as error:
                log.warning("a record of %s may be read once more: %s", part, error)


class _Held(Struct, frozen=True):
    """A record in hand, and when the oldest post in it was put by (epoch seconds): read once, it is asked for often."""

    record: ConsumerRecord
    put_by_at: float


def _put_by_at(value: bytes) -> float:
    """0 where none says. Blocking."""
    with contextlib.suppress(Rejected):
        return min((p.put_by.at for frame in decode_frames(value, Frame) for p in frame.posts if p.put_by), default=0.0)
    return 0.0
