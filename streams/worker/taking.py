"""Takes what has come from a stream: at once if nobody works, and all that came meanwhile after a batch.

Faust's `noack_take` waits for a full batch or a tick: at every stage a post waits for the tick, an idle worker ticks
two hundred times a second, and under load a batch is as small as always. The rest is as there: a passive stream fills
a buffer, and who takes acknowledges.

A batch costs 5 to 10 ms before it has a post in it (a dozen round trips to Redis and the broker), at four stages. The
first stage begins no batch right behind another, still later behind one of few posts; and what it sent together comes
to the next ones together, as they wait a moment for company. The first post after a pause waits for nothing else, and
who is behind for nothing at all: what a batch had no room for is taken at once, and so is what fills one, as soon as it
does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine

import faust
from msgspec import Struct

__all__ = ["FROM_SOURCES", "TO_CLUSTER", "TO_ENCODER", "TO_MATCH", "Rhythm", "take"]

FEW_BYTES = 7_168  # some thirty posts


class Rhythm(Struct, frozen=True):
    """How batches follow on one another.

    apart_s, after_few_s: seconds from one to the next, until that is full, and from one of few bytes; company_s: that
    each waits for more records; most_bytes: of their values in one batch, which holds one record whatever it takes.
    """

    apart_s: float = 0.0
    after_few_s: float = 0.0
    company_s: float = 0.0
    most_bytes: int = 262_144  # some 800 posts of text, which the reader reads in seconds


# At 4,000 posts a second of two workers a post costs 441 µs of all processes a tenth of a second apart, 363 at .3.
FROM_SOURCES, TO_ENCODER = Rhythm(apart_s=0.2, after_few_s=0.45), Rhythm(company_s=0.01)
# A thousand posts with their vectors: a tenth of a second for who matches them.
TO_MATCH = Rhythm(company_s=0.01, most_bytes=1_048_576)
# No alert waits for clusters. There is one clusterer, which waits a dozen times a batch for somebody to answer: on busy
# cores, a thousand posts at a time, it had four tenths of one and fell behind. Behind few posts it waits for company
# alone.
TO_CLUSTER = Rhythm(apart_s=0.4, company_s=0.1, most_bytes=2_097_152)


async def take(
    stream: faust.Stream,
    most: int,
    rhythm: Rhythm,
    pause: Callable[[float], Coroutine[object, object, None]] = asyncio.sleep,
) -> AsyncIterator[list[faust.Event]]:
    """Batches of events, in order, each of at most `most`; nothing is acknowledged.

    pause: waits so many seconds.
    What was fetched before a rebalance is left to whoever has the partition now, as Faust does with what it buffers.
    """
    buffer: deque[faust.Event] = deque()
    there, full, room = asyncio.Event(), asyncio.Event(), asyncio.Event()
    enabled, stream.enable_acks = stream.enable_acks, False
    waiting_bytes = 0  # in the buffer

    async def keep(value: bytes) -> bytes:
        nonlocal waiting_bytes
        event = stream.current_event
        buffer.append(event)
        waiting_bytes += _size(event)
        there.set()
        if len(buffer) >= most or waiting_bytes >= rhythm.most_bytes:
            full.set()
        while len(buffer) >= most:
            room.clear()
            await room.wait()
        return value

    stream.add_processor(keep)
    stream._enable_passive(aiter(stream.channel))  # as noack_take does: no public way in 0.15.3
    clock, due_s, behind = asyncio.get_running_loop().time, 0.0, False
    try:
        while not stream.should_stop:
            if not there.is_set():
                await stream.wait_for_stopped(there)
            early_s = max(due_s - clock(), rhythm.company_s)
            held = due_s > clock()
            if not full.is_set() and not behind and early_s > 0:
                await _first_of(pause(early_s), full.wait())
            events = _next(buffer, stream.app.consumer_generation_id, rhythm.most_bytes)
            waiting_bytes = sum(map(_size, buffer))
            full.clear()
            few = held and sum(map(_size, events)) <= FEW_BYTES  # the first after a pause says nothing of the next
            due_s = clock() + (rhythm.after_few_s if few else rhythm.apart_s) if events else 0.0
            behind = bool(buffer)
            if not behind:
                there.clear()
            room.set()
            if events:
                yield events
    finally:
        stream.enable_acks = enabled
        stream._processors.remove(keep)


async def _first_of(*waits: Coroutine[object, object, object]) -> None:
    """Until one of them has ended. Raises what it did."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()


def _next(buffer: deque[faust.Event], generation: int, most_bytes: int) -> list[faust.Event]:
    """The events to work on now, of this generation of the consumer group."""
    events: list[faust.Event] = []
    size = 0
    while buffer and (not events or size + _size(buffer[0]) <= most_bytes):
        event = buffer.popleft()
        if event.message.generation_id == generation:
            events.append(event)
            size += _size(event)
    return events


def _size(event: faust.Event) -> int:
    return len(event.value or b"")
