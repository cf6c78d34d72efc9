"""What a worker says of itself once a second: where it stands, what it cannot do; and the watchdog that ends it."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence

import faust
from aiokafka.errors import KafkaError
from faust.exceptions import ConsumerNotStarted
from faust.types import TP
from redis.exceptions import RedisError

from streams import metrics
from streams.broker.connect import reach
from streams.broker.topics import INPUTS
from streams.config import Settings
from streams.view.status import WorkerStatus
from streams.worker.health import Heart
from streams.worker.renewed import Beyond, begin_anew
from streams.worker.runtime import Runtime
from streams.worker.waiting import Waiting
from streams.worker.watchdog import STALLED, Partition, Watchdog

__all__ = ["TOLD_S", "report_forever"]

log = logging.getLogger(__name__)

EVERY_S = 1.0
TOLD_S = 2.0  # how long Redis may take to be told of this worker
ANSWER_S = 5.0  # how long the consumer may take to say where its partitions end
SILENT_S = 2.9  # unanswered for so long, and the page is told: an idle consumer asks for records first, and waits 1.5 s


class Ends:
    """Where the partitions end, by the broker's word: a fetcher that has died knows only where they once ended.

    Asked on and on, and waited for a moment at a time: a worker whose broker is frozen goes on to speak.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked: asyncio.Task[dict[Partition, int] | None] | None = None
        self._at: dict[Partition, int] = {}
        self._since: float | None = None  # when the first question was asked that was not answered since
        self.known: dict[Partition, int] = {}  # the last that was told; the watchdog counts on with it

    @property
    def silent_s(self) -> float:
        """Since the consumer was asked, while it has not been told: nobody is silent who was not asked."""
        return 0.0 if self._since is None else self._clock() - self._since

    async def look(self, app: faust.App, at: dict[Partition, int]) -> tuple[dict[Partition, int], dict[Partition, int]]:
        """Positions and the ends asked for after them, if they were told by now; else nothing."""
        if self._asked is None:
            self._since = self._clock() if self._since is None else self._since
            self._at, self._asked = at, asyncio.create_task(_ends(app, at), name="ends")
        done, _ = await asyncio.wait({self._asked}, timeout=EVERY_S)
        if not done:
            return {}, {}
        told, self._asked = self._asked.result(), None
        if told is None:
            return {}, {}
        self._since, self.known = None, told or self.known
        return self._at, told


async def report_forever(
    app: faust.App,
    settings: Settings,
    agents: Sequence[str],
    heart: Heart,
    waiting: Waiting | None,
    applied: Mapping[Partition, int],
) -> None:
    """Once a second: lag, the worker's own status for the dashboard, and the watchdog.

    applied: next offset after what had its effects and is acknowledged later.
    """
    watchdog, beyond, ends, work = Watchdog(settings.worker.stall_s), Beyond(), Ends(), app.runtime.work
    redis_answers, told_once = True, False
    topics = {settings.topics.name(INPUTS[a]): INPUTS[a] for a in agents}
    late = time.monotonic()  # the first word at once: who starts a worker waits for it
    while not app.should_stop:
        wakes = max(late, time.monotonic())
        await asyncio.sleep(wakes - time.monotonic())
        heart.beat()
        metrics.loop_lag_seconds.set(max(0.0, time.monotonic() - wakes))
        late = time.monotonic() + EVERY_S
        at = _positions(app, topics)
        asked, told = await ends.look(app, at) if told_once else ({}, {})  # a new worker says first that it is there
        if told and (short := beyond.those(asked, told)):
            await begin_anew(app, [TP(*part) for part in short], {topic for topic, _ in short})
        lag = dict.fromkeys(topics.values(), 0)
        for (topic, partition), end in ends.known.items():
            lag[topics[topic]] += max(0, end - at.get((topic, partition), end))
        for topic, frames in lag.items():
            metrics.lag.labels(topic).set(frames)
        app.runtime.pace.told(lag)
        away = app.runtime.vault_trouble  # posts wait for it, and would under a new worker
        excused = (not redis_answers or bool(away)) and not work.computing
        stalled = watchdog.stalled(at, ends.known, time.monotonic(), work.returned(), excused, work.turns(), applied)
        if stalled and not app.rebalancing and (work.computing or await _broker_answers(settings)):
            await _end_stalled(app, settings, stalled)
        status = WorkerStatus(
            0.0,  # LiveView says when
            list(agents),
            app.runtime.encoder.version,
            lag,
            "failed" if away else "ready",
            _trouble(app.runtime, ends, waiting),
            app.runtime.serving.current.name,
            round(waiting.waits_s(time.time()), 1) if waiting else 0.0,
            round(work.longest_s(time.monotonic()), 1),
            _holds(at, topics) if not app.rebalancing else {},
            round(watchdog.standing_s, 1),
            app.runtime.bars.held_at(time.time()),
        )
        redis_answers, told_once = await _told(app, status, redis_answers), True


def _trouble(runtime: Runtime, ends: Ends, waiting: Waiting | None) -> str:
    broker = "the broker does not answer it" if ends.silent_s > SILENT_S else ""
    told = (runtime.vault_trouble, runtime.takeover.trouble, runtime.sender.trouble, broker)
    return next(filter(None, told), waiting.trouble if waiting else "")


def _holds(at: Mapping[Partition, int], topics: Mapping[str, str]) -> dict[str, list[int]]:
    held: dict[str, list[int]] = {}
    for topic, partition in sorted(at):
        held.setdefault(topics[topic], []).append(partition)
    return held


async def _broker_answers(settings: Settings) -> bool:
    """Else a new worker could not even start: waiting is better."""
    try:
        await asyncio.to_thread(reach, settings.broker.bootstrap.split(","))
    except (OSError, ValueError):
        return False
    return True


async def _told(app: faust.App, status: WorkerStatus, answered: bool) -> bool:
    """Did Redis take the status? Not for ever: while Redis is away the loop goes on, and says so once."""
    try:
        await asyncio.wait_for(app.runtime.tell(status), TOLD_S)
    except (TimeoutError, RedisError, OSError) as error:
        if answered:
            log.error("Redis does not answer (%s): waiting for it, nothing is lost", error or f"{TOLD_S:g} s")
        return False
    if not answered:
        log.warning("Redis answers again")
    return True


async def _end_stalled(app: faust.App, settings: Settings, stalled: list[Partition]) -> None:
    """End the process. What it computes with is to blame if a call computes; if none does, no record is."""
    doing = "a call that does not return" if app.runtime.work.computing else "the consumer gets nothing, or waits"
    if not app.runtime.work.computing:
        await app.runtime.hold_nothing_against_what_is_in_hand()
    log.critical(
        "no progress for %.0f s with work waiting in %s (%s): ending the process",
        settings.worker.stall_s,
        stalled,
        doing,
    )
    os._exit(STALLED)


def _positions(app: faust.App, topics: Mapping[str, str]) -> dict[Partition, int]:
    """The next offset to process of each partition this worker owns."""
    return {(tp.topic, tp.partition): at for tp, at in app.consumer.stands().items() if tp.topic in topics}


async def _ends(app: faust.App, positions: Mapping[Partition, int]) -> dict[Partition, int] | None:
    """None if the consumer does not answer."""
    try:
        found = await asyncio.wait_for(app.consumer.highwaters(*(TP(*part) for part in positions)), ANSWER_S)
    except ConsumerNotStarted:
        return {}
    except (TimeoutError, KafkaError):
        return None
    return {(tp.topic, tp.partition): end for tp, end in found.items()}
