"""The Faust application: `crisis worker`, or `faust -A streams.app worker`."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import tempfile
import threading
from collections import ChainMap
from collections.abc import Sequence

import faust
from aiokafka.errors import KafkaError
from faust.app import BootStrategy
from faust.tables import TableManager
from faust.types import TP
from redis.exceptions import RedisError

from models.errors import CrisisError
from streams.broker.connect import METADATA_MS
from streams.broker.topics import AGENTS, INPUTS
from streams.config import Settings, load_settings
from streams.worker.cluster import Cluster
from streams.worker.consuming import Consumer
from streams.worker.credentials import faust_credentials
from streams.worker.health import Heart, serve_health
from streams.worker.loop import add_agents
from streams.worker.outbox import Outbox
from streams.worker.quiet import quieten
from streams.worker.renewed import TopicIds, begin_with_others, end_when_renewed
from streams.worker.report import TOLD_S, report_forever
from streams.worker.runtime import Runtime
from streams.worker.threads import limit_native_threads
from streams.worker.waiting import Waiting
from streams.worker.watchdog import STALLED

__all__ = ["__getattr__", "run_worker"]

log = logging.getLogger(__name__)

STOP_S = 20.0  # an orderly end waits for commits; a broker that lost the topics refuses them for ever
REST_LOOK_S = 2.0  # how often to look whether the stream is quiet
CRASHED_S = 5.0  # one that crashed holds partitions that others could read; what it had begun is read again anyway


class WithoutWeb(BootStrategy):
    """No web server of Faust's: its command line turns one on for 0.0.0.0:6066, whatever the app is set to."""

    enable_web = False


class CrisisApp(faust.App):
    """Opens the runtime before it joins the consumer group: no partition waits for an encoder to load."""

    BootStrategy = WithoutWeb
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
        last = threading.Timer(CRASHED_S if self.crashed else STOP_S, _end_anyway, [self.crash_reason])
        last.daemon = True
        last.start()
        await super().stop()

    async def on_shutdown(self) -> None:
        await super().on_shutdown()
        await self.runtime.stop()


class NoTables(TableManager):
    """Faust waits a second for tables to be made; we have none."""

    async def on_start(self) -> None:
        await self._update_channels()
        await self.recovery.start()


def create_app(settings: Settings, agents: Sequence[str] = AGENTS) -> faust.App:
    """A worker with the named agents. All workers of one prefix are one consumer group and share the partitions."""
    limit_native_threads(settings.worker.native_threads)
    logging.getLogger().setLevel(logging.WARNING)  # mode leaves the root at DEBUG: measured 15 % of the CPU
    logging.getLogger("streams").setLevel(logging.INFO)
    logging.getLogger("kafka").setLevel(logging.WARNING)  # every connection of the admin client would be told
    logging.getLogger("kafka.net").setLevel(logging.ERROR)  # it tells of each tenth of a second on a busy machine
    quieten("aiokafka")
    logging.getLogger("mode.timers").setLevel(logging.ERROR)  # a busy second would hide what a worker said last
    app = CrisisApp(
        f"{settings.topics.prefix}crisis",
        broker=[f"kafka://{host}" for host in settings.broker.bootstrap.split(",")],
        broker_credentials=faust_credentials(settings.broker),
        store="memory://",
        TableManager=NoTables,
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
    app.runtime, app.topic_ids = Runtime(settings, "normalise" in agents), TopicIds(settings)
    handlers = add_agents(app, app.runtime, agents)
    heart = Heart()
    told = settings.worker
    serve_health(told.web_host, told.web_port, heart, told.metrics_token_file, told.allowed_hosts)
    waiting = Waiting(app.runtime, Outbox(app.runtime.sender, settings)) if "embed" in handlers else None
    applied = ChainMap(*(handler.applied for handler in handlers.values()))  # each reads a topic of its own
    if "cluster" in handlers:
        _keep_clusters(app, settings, handlers["cluster"])
    _hold_nothing_against_moved_records(app, settings, agents)

    @app.task
    async def report() -> None:
        await report_forever(app, settings, agents, heart, waiting, applied)

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


def _end_anyway(crash_reason: BaseException | None) -> None:
    """From a thread of its own: the event loop waits for something that does not come."""
    why = f"it crashed: {crash_reason!r}" if crash_reason is not None else "it was told to end"
    log.critical("the worker did not end in order in time (%s): ending the process", why)
    os._exit(STALLED)


def _keep_clusters(app: faust.App, settings: Settings, cluster: Cluster) -> None:
    """Save snapshots and look for a rest on timers; give the state up when the partition moves to another worker."""

    @app.timer(interval=settings.worker.snapshot_s)
    async def save_clusters() -> None:
        await cluster.save()

    @app.timer(interval=REST_LOOK_S)
    async def rest_clusters() -> None:
        await cluster.rest()

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


@functools.cache
def _app() -> faust.App:
    return create_app(load_settings())


def __getattr__(name: str) -> faust.App:
    """`streams.app.app`, made when Faust's own command line first asks for it: it asks more than once."""
    if name == "app":
        return _app()
    raise AttributeError(name)
