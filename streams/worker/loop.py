"""The loop every agent runs: take frames, check that none was skipped, let the handler work, then acknowledge.

Delivery: an input is acknowledged after everything made from it was acknowledged by the broker and counted in
Redis. An exception that escapes crashes the worker (CrashingSupervisor); the frame is read again after the restart,
and every effect can be repeated without harm. Agents have concurrency 1 and ack in order. A record that workers died on
twice is refused (streams/worker/careful.py).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence

import faust

from models.errors import ServiceError
from streams import metrics
from streams.broker.topics import INPUTS
from streams.worker import careful
from streams.worker.cluster import Cluster
from streams.worker.embed import Embed
from streams.worker.lost_offsets import Gaps, check
from streams.worker.match import Match
from streams.worker.normalise import Normalise
from streams.worker.outbox import Outbox
from streams.worker.runtime import Runtime
from streams.worker.stage import Handler
from streams.worker.taking import FROM_SOURCES, TO_CLUSTER, TO_ENCODER, TO_MATCH, take
from streams.worker.watchdog import STALLED

__all__ = ["add_agents"]

log = logging.getLogger(__name__)

HANDLERS = {"normalise": Normalise, "embed": Embed, "match": Match, "cluster": Cluster}
RHYTHMS = {"normalise": FROM_SOURCES, "embed": TO_ENCODER, "match": TO_MATCH, "cluster": TO_CLUSTER}


def add_agents(app: faust.App, runtime: Runtime, names: Sequence[str]) -> dict[str, Handler]:
    """Attach the named agents to the app; returns their handlers by name."""
    attached: dict[str, Handler] = {}
    for name in names:
        topic = app.topic(
            runtime.settings.topics.name(INPUTS[name]), key_type=bytes, value_type=bytes, value_serializer="raw"
        )
        outbox = Outbox(runtime.sender, runtime.settings)
        handler = attached[name] = HANDLERS[name](runtime, outbox)
        app.agent(topic, name=name, concurrency=1)(_loop(name, runtime, handler))
    return attached


def _loop(name: str, runtime: Runtime, handler: Handler) -> Callable:
    rhythm = RHYTHMS[name]

    async def agent(stream: faust.Stream) -> None:
        gaps = Gaps()
        async for events in take(stream, runtime.settings.worker.frames_in_flight, rhythm):
            for event in events:
                await _check_gap(gaps, runtime, event)
            partitions = {(event.message.topic, event.message.partition) for event in events}
            with runtime.work.on(name, partitions), metrics.stage_seconds.labels(name).time():
                done = await careful.handle(handler, events)
            for event in done:
                await stream.ack(event)
            metrics.frames.labels(name).inc(len(events))

    agent.__name__ = agent.__qualname__ = name
    return agent


async def _check_gap(gaps: Gaps, runtime: Runtime, event: faust.Event) -> None:
    message = event.message
    known = event.app.consumer._committed_offset.get(message.tp)  # no public getter in 0.15.3
    place = message.topic, message.partition, message.generation_id
    try:
        await check(gaps, runtime.settings, event.app.conf.id, place, message.offset, known)
    except ServiceError as error:
        log.critical("%s", error)
        await runtime.hold_nothing_against_what_is_in_hand()
        os._exit(STALLED)  # an orderly end would commit on its way
