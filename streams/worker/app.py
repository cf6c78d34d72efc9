"""The Faust application: `crisis worker`, or `faust -A streams.app worker`."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence

import faust
from aiokafka.errors import KafkaError
from faust.exceptions import ConsumerNotStarted
from faust.types import TP
from redis.exceptions import RedisError

from models.errors import CrisisError
from streams import metrics
from streams.broker.connect import METADATA_MS, reach
from streams.broker.topics import AGENTS, INPUTS
from streams.config import Settings, load_settings
from streams.view.status import WorkerStatus
from streams.worker.cluster import Cluster
from streams.worker.consuming import Consumer
from streams.worker.credentials import faust_credentials
from streams.worker.health import Heart, serve_health
from streams.worker.loop import add_agents
from streams.worker.outbox import Outbox
from streams.worker.renewed import Beyond, TopicIds, begin_anew, begin_with_others, end_when_renewed
from streams.worker.runtime import Runtime
from streams.worker.threads import limit_native_threads
from streams.worker.waiting import Waiting
from streams.worker.watchdog import STALLED, Partition, Watchdog

__all__ = ["__getattr__", "run_worker"]

log = logging.getLogger(__name__)

STOP_S = 20.0  # an orderly end waits for commits; a broker that lost the topics refuses them for ever
TOLD_S = 2.0  # how long Redis may take to be told of this worker
ANSWER_S = 5.0  # how long the consumer may take to say where its partitions end


class CrisisApp(faust.App):
    """Opens the runtime before it joins the consumer group: no partition waits for an encoder to load."""

    runtime: Runtime
    topic_ids: TopicIds

    async def _on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        # The signal of this name comes after the consumer went to its offsets.
        await begin_with_others(self, assigned, self.topic_ids, self.runtime.offsets_of)
        await super()._on_partitions_assigned(assigned, generation_id)

    async def on_start(self) -> None:
        try:
            await self.runtime.start()
        except (
            CrisisError,
            KafkaError,
        ) as error:  # what somebody must mend: a sentence at the end, not Faust's tracebacks
            raise SystemExit(f"crisis: the worker cannot start: {error}") from None
        log.info("ready: encoder %s, %d queries", self.runtime.encoder.version, len(self.runtime.queries))
        await super().on_start()

    async def stop(self) -> None:
        """In order, but not for ever: what was not committed by then is read again."""
        last = threading.Timer(STOP_S, os._exit, [STALLED])
        last.daemon = True
        last.start()
        await super().stop()

    async def on_shutdown(self) -> None:
        await super().on_shutdown()
        await self.runtime.stop()


def create_app(settings: Settings, agents: Sequence[str] = AGENTS) -> faust.App:
    """A worker with the named agents. All workers of one prefix are one consumer group and share the partitions."""
    limit_native_threads(settings.worker.native_threads)
    logging.getLogger().setLevel(logging.WARNING)  # mode leaves the root at DEBUG: measured 15 % of the CPU
    logging.getLogger("streams").setLevel(logging.INFO)
    logging.getLogger("kafka").setLevel(logging.WARNING)  # every connection of the admin client would be told
    logging.getLogger("kafka.net").setLevel(logging.ERROR)  # it tells of each tenth of a second on a busy machine
    logging.getLogger("mode.timers").setLevel(logging.ERROR)  # a busy second would hide what a worker said last
    app = CrisisApp(
        f"{settings.topics.prefix}crisis",
        broker=[f"kafka://{host}" for host in settings.broker.bootstrap.split(",")],
        broker_credentials=faust_credentials(settings.broker),
        store="memory://",
        topic_partitions=settings.topics.partitions,
        topic_allow_declare=False,  # `crisis topics` makes them
        topic_disable_leader=True,
        broker_session_timeout=settings.worker.session_s,
        broker_heartbeat_interval=settings.worker.session_s / 5,
        broker_rebalance_timeout=30.0,  # the default 60 s leaves a dead worker's partitions idle for a minute
        broker_commit_interval=0.5,
        stream_buffer_maxsize=256,  # records are frames: keep few in memory
        stream_wait_empty=False,  # frames under way are read again: every effect can be repeated
        consumer_max_fetch_size=4_194_304,
        consumer_metadata_max_age_ms=METADATA_MS,
        consumer_auto_offset_reset="earliest",
        web_enabled=False,  # streams/worker/health.py serves /metrics, /healthz and /readyz
        agent_supervisor="mode.supervisors.CrashingSupervisor",
        autodiscover=False,
    )
    app.transport.Consumer = Consumer
    app.runtime, app.topic_ids = Runtime(settings), TopicIds(settings)
    handlers = add_agents(app, app.runtime, agents)
    heart = Heart()
    told = settings.worker
    serve_health(told.web_host, told.web_port, heart, told.metrics_token_file)
    waiting = Waiting(app.runtime, Outbox(app.runtime.sender, settings)) if "embed" in handlers else None
    if "cluster" in handlers:
        _keep_clusters(app, settings, handlers["cluster"])
    _hold_nothing_against_moved_records(app, settings, agents)

    @app.task
    async def report() -> None:
        await _report_forever(app, settings, agents, heart, waiting)

    @app.task
    async def look_for_new_topics() -> None:
        await end_when_renewed(app, app.topic_ids)

    if waiting is not None:
        app.task(waiting.run)
    return app


def run_worker(settings: Settings, agents: Sequence[str] = AGENTS) -> None:
    """Run until stopped, as Faust's own command line would."""
    app = create_app(settings, agents)
    with tempfile.TemporaryDirectory(prefix="crisis-worker-") as scratch:  # Faust insists on a data directory
        app.conf.datadir = scratch
        faust.Worker(
            app,
            loglevel="INFO",
            quiet=False,
            redirect_stdouts=False,
            blocking_timeout=0.0,  # Faust's detector: a pause of 0.4 s at the wrong moment ended the worker
            debug=bool(os.environ.get("CRISIS_DEBUG")),
        ).execute_from_commandline()


def _keep_clusters(app: faust.App, settings: Settings, cluster: Cluster) -> None:
    """Save snapshots on a timer, and give the state up when the partition moves to another worker."""

    @app.timer(interval=settings.worker.snapshot_s)
    async def save_clusters() -> None:
        await cluster.save()

    @app.timer(interval=settings.worker.audit_s)
    async def audit_clusters() -> None:
        await cluster.audit()

    async def revoked(app: faust.App, revoked: set, **_: object) -> None:
        if any(tp.topic == settings.topics.name("posts.matched") for tp in revoked):
            cluster.forget()

    app.on_partitions_revoked.connect(revoked, weak=False)


def _hold_nothing_against_moved_records(app: CrisisApp, settings: Settings, agents: Sequence[str]) -> None:
    """Records in hand whose partition moves are begun anew elsewhere: unless a call computes, it is not their doing."""
    stages = {settings.topics.name(INPUTS[a]): a for a in agents}

    async def revoked(app: CrisisApp, revoked: set, **_: object) -> None:
        with contextlib.suppress(TimeoutError, RedisError):
            for tp in revoked if not app.runtime.work.computing else ():
                if stage := stages.get(tp.topic):
                    undone = app.runtime.attempts.undo(partition=(stage, tp.partition))
                    await asyncio.wait_for(undone, TOLD_S)

    app.on_partitions_revoked.connect(revoked, weak=False)


async def _report_forever(
    app: CrisisApp, settings: Settings, agents: Sequence[str], heart: Heart, waiting: Waiting | None
) -> None:
    """Once a second: lag, the worker's own status for the dashboard, and the watchdog."""
    watchdog, beyond, work = Watchdog(settings.worker.stall_s), Beyond(), app.runtime.work
    redis_answers = True
    topics = {settings.topics.name(INPUTS[a]): INPUTS[a] for a in agents}
    ends: dict[Partition, int] = {}
    late = time.monotonic()  # the first word at once: who starts a worker waits for it
    while not app.should_stop:
        await asyncio.sleep(max(0.0, late - time.monotonic()))
        heart.beat()
        metrics.loop_lag_seconds.set(max(0.0, time.monotonic() - late))
        late = time.monotonic() + 1.0
        at = _positions(app, topics)
        told = await _ends(app, at)
        if short := beyond.those(at, told):
            await begin_anew(app, [TP(*part) for part in short], {topic for topic, _ in short})
        ends = told or ends
        lag = dict.fromkeys(topics.values(), 0)
        for (topic, partition), end in ends.items():
            lag[topics[topic]] += max(0, end - at.get((topic, partition), end))
        for topic, frames in lag.items():
            metrics.lag.labels(topic).set(frames)
        app.runtime.pace.told(lag)
        excused = not redis_answers and not work.computing
        stalled = watchdog.stalled(at, ends, time.monotonic(), work.returned(), excused, work.turns())
        if stalled and not app.rebalancing and (work.computing or await _broker_answers(settings)):
            await _end_stalled(app, settings, stalled)
        status = WorkerStatus(
            time.time(),
            list(agents),
            app.runtime.encoder.version,
            lag,
            "ready",
            app.runtime.takeover.trouble or app.runtime.sender.trouble,
            app.runtime.serving.current.name,
            waiting.since if waiting else 0.0,
            round(work.longest_s(time.monotonic()), 1),
        )
        redis_answers = await _told(app, status, redis_answers)


async def _broker_answers(settings: Settings) -> bool:
    """Else a new worker could not even start: waiting is better."""
    try:
        await asyncio.to_thread(reach, settings.broker.bootstrap.split(","))
    except (OSError, ValueError):
        return False
    return True


async def _told(app: CrisisApp, status: WorkerStatus, answered: bool) -> bool:
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


async def _end_stalled(app: CrisisApp, settings: Settings, stalled: list[Partition]) -> None:
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


def _positions(app: CrisisApp, topics: Mapping[str, str]) -> dict[Partition, int]:
    """The next offset to process of each partition this worker owns."""
    committed = app.consumer._committed_offset  # no public getter in 0.15.3
    return {(tp.topic, tp.partition): committed[tp] or 0 for tp in app.consumer.assignment() if tp.topic in topics}


async def _ends(app: CrisisApp, positions: Mapping[Partition, int]) -> dict[Partition, int]:
    """Where the partitions end, by the broker's word: a fetcher that has died knows only where they once ended.

    Empty if the consumer does not answer; the ends known before then hold, and the watchdog counts on.
    """
    try:
        found = await asyncio.wait_for(app.consumer.highwaters(*(TP(*part) for part in positions)), ANSWER_S)
    except (TimeoutError, KafkaError, ConsumerNotStarted):
        return {}
    return {(tp.topic, tp.partition): end for tp, end in found.items()}


@functools.cache
def _app() -> faust.App:
    return create_app(load_settings())


def __getattr__(name: str) -> faust.App:
    """`streams.app.app`, made when Faust's own command line first asks for it: it asks more than once."""
    if name == "app":
        return _app()
    raise AttributeError(name)
