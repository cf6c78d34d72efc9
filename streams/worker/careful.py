"""A record that workers died on twice is refused unread: no record can stop the stream for ever.

Each record is marked in Redis while it is in hand (streams/view/attempts.py). Whoever finds one that was begun before
and never finished takes the records of its batch one by one, so that the next death is put down to the right one. What
a broker, Redis or somebody who stops the worker interrupts is not held against the record, and one whose frames went on
is not what workers died on: it is done again, as any effect can be.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence

from aiokafka.errors import KafkaError
from redis.exceptions import RedisError

from models.errors import CrisisError
from streams.view.attempts import Place
from streams.worker.stage import Events, Handler

__all__ = ["handle"]

log = logging.getLogger(__name__)

DEATHS = 2
DEATHS_AFTER = 4  # for a record that was sent on, should what follows on that end a worker
OTHERS = (CrisisError, KafkaError, RedisError, OSError, asyncio.CancelledError, GeneratorExit)  # no fault of the record
UNDO_S = 2.0


async def handle(handler: Handler, events: Events) -> Events:
    """The handler's work on these events; returns those to acknowledge."""
    places = [_place(handler, event) for event in events]
    attempts = handler.runtime.attempts
    if max(await attempts.begin(places)) == 1:
        return await _marked(handler, events, places)
    await attempts.undo(places)
    done: Events = []
    for event, place in zip(events, places, strict=True):
        (attempt,) = await attempts.begin([place])
        async with _undone_by_others(handler, [place]):
            innocent = attempt <= DEATHS or attempt <= DEATHS_AFTER and await handler.was_sent_on(event)
        if innocent:
            done += await _marked(handler, [event], [place])
        else:
            log.critical("%s, partition %d, offset %d: %d workers died on it; refused unread", *place, attempt - 1)
            await handler.give_up(event, f"workers died on this record {attempt - 1} times; it was not read again")
            await attempts.finish([place])
            done.append(event)
    return done


async def _marked(handler: Handler, events: Events, places: list[Place]) -> Events:
    async with _undone_by_others(handler, places):
        done = await handler(events)
    await handler.runtime.attempts.finish(places)
    return done


@contextlib.asynccontextmanager
async def _undone_by_others(handler: Handler, places: Sequence[Place]) -> AsyncIterator[None]:
    """What is no fault of the records takes the attempt back."""
    try:
        yield
    except OTHERS:
        with contextlib.suppress(RedisError, TimeoutError):
            await asyncio.wait_for(handler.runtime.attempts.undo(places), UNDO_S)
        raise


def _place(handler: Handler, event: object) -> Place:
    return handler.name, event.message.partition, event.message.offset
