"""Takes what has come from a stream: at once if nobody works, and all that came meanwhile after a batch.

Faust's `noack_take` waits for a full batch or a tick: at every stage a post waits for the tick, an idle worker ticks
two hundred times a second, and under load a batch is as small as always. The rest is as there: a passive stream fills
a buffer, and who takes acknowledges.

A batch of one post costs as much of the event loop as one of fifty, at four stages: so what comes right behind a batch
waits until PACE_S after that was taken. The first after a pause waits for nothing, and neither does who is behind: what
a batch had no room for, or fills one, is taken at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable

import faust

__all__ = ["take"]

BATCH_BYTES = 262_144  # of large frames a batch holds few: some 800 posts of text, which the reader reads in seconds
PACE_S = 0.05  # as long as a source lets a post wait for company


async def take(
    stream: faust.Stream, most: int, pause: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> AsyncIterator[list[faust.Event]]:
    """Batches of events, in order, each of at most `most`, none that is not full within PACE_S of the one before;
    nothing is acknowledged.

    pause: waits so many seconds.
    What was fetched before a rebalance is left to whoever has the partition now, as Faust does with what it buffers.
    """
    buffer: deque[faust.Event] = deque()
    there, room = asyncio.Event(), asyncio.Event()
    enabled, stream.enable_acks = stream.enable_acks, False

    async def keep(value: bytes) -> bytes:
        buffer.append(stream.current_event)
        there.set()
        while len(buffer) >= most:
            room.clear()
            await room.wait()
        return value

    stream.add_processor(keep)
    stream._enable_passive(aiter(stream.channel))  # as noack_take does: no public way in 0.15.3
    clock, due_s = asyncio.get_running_loop().time, 0.0
    try:
        while not stream.should_stop:
            if not there.is_set():
                await stream.wait_for_stopped(there)
            if len(buffer) < most and (early_s := due_s - clock()) > 0:
                await pause(early_s)
            due_s = clock() + PACE_S
            events = _next(buffer, stream.app.consumer_generation_id)
            if buffer:
                due_s = 0.0
            else:
                there.clear()
            room.set()
            if events:
                yield events
    finally:
        stream.enable_acks = enabled
        stream._processors.remove(keep)


def _next(buffer: deque[faust.Event], generation: int) -> list[faust.Event]:
    """The events to work on now, of this generation of the consumer group."""
    events: list[faust.Event] = []
    size = 0
    while buffer and (not events or size + len(buffer[0].value or b"") <= BATCH_BYTES):
        event = buffer.popleft()
        if event.message.generation_id == generation:
            events.append(event)
            size += len(event.value or b"")
    return events
