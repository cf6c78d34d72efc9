"""A record that workers died on twice is refused unread: no record can stop the stream for ever.

Each record is marked in Redis while it is in hand (streams/view/attempts.py). Whoever finds one that was begun before
and never finished takes the records of its batch one by one, so that the next death is put down to the right one. What
a broker, Redis or somebody who stops the worker interrupts is not held against the record.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from aiokafka.errors import KafkaError
from redis.exceptions import RedisError

from models.errors import CrisisError
from streams.view.attempts import Place
from streams.worker.stage import Events, Handler

__all__ = ["handle"]

log = logging.getLogger(__name__)

DEATHS = 2
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
        if attempt <= DEATHS:
            done += await _marked(handler, [event], [place])
        else:
            log.critical("%s, partition %d, offset %d: workers died on it %d times; refused unread", *place, DEATHS)
            await handler.give_up(event, f"workers died on this record {DEATHS} times; it was not read again")
            await attempts.finish([place])
            done.append(event)
    return done


async def _marked(handler: Handler, events: Events, places: list[Place]) -> Events:
    try:
        done = await handler(events)
    except OTHERS:
        with contextlib.suppress(RedisError, TimeoutError):
            await asyncio.wait_for(handler.runtime.attempts.undo(places), UNDO_S)
        raise
    await handler.runtime.attempts.finish(places)
    return done


def _place(handler: Handler, event: object) -> Place:
    return handler.name, event.message.partition, event.message.offset
