"""A pipeline of real processes against a real broker and Redis, for the end-to-end tests."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import os
import secrets
import signal
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path
from typing import TypeVar

import msgspec
from kafka import KafkaConsumer, TopicPartition

from models.records import Alert, EmbeddedFrame, Frame, MatchedFrame
from streams.commands.topics import prepare
from streams.config import Settings, load_settings
from streams.embedded.children import Children
from streams.ingest.lines import head_of, key_of
from streams.ingest.writer import WriterConfig, open_writer
from streams.pipeline.frames import decode_frames
from streams.pipeline.outcomes import through
from streams.view.connect import connect
from streams.view.live import LiveView
from streams.view.status import WorkerStatus
from streams.worker.watchdog import STALLED
from tests.waiting import until

T = TypeVar("T")
F = TypeVar("F", Frame, EmbeddedFrame, MatchedFrame)

SILENT_S = 15.0  # a worker that has not spoken for so long was killed
DEMO = Path(__file__).parents[2] / "streams" / "data" / "demo.jsonl"


def lines_of(path: Path) -> list[bytes]:
    opened = gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")
    with opened as lines:
        return [line.rstrip(b"\n") for line in lines if line.strip()]


class Pipeline:
    """Topics of its own (a random prefix), any number of workers, and what came out."""

    def __init__(self, settings: Settings, children: Children) -> None:
        self.settings, self.children = settings, children
        self.redis = connect(settings.redis)
        self.view = LiveView(self.redis, settings)
        self.started = 0
        self.running: list[str] = []
        self._counted: dict[str, int] = {}  # before `anew`
        self._begin: dict[TopicPartition, int] = {}

    @property
    def env(self) -> dict[str, str]:
        s = self.settings
        return {
            "CRISIS_BROKER__BOOTSTRAP": s.broker.bootstrap,
            "CRISIS_REDIS__URL": s.redis.url,
            "CRISIS_REDIS__PREFIX": s.redis.prefix,
            "CRISIS_TOPICS__PREFIX": s.topics.prefix,
            "CRISIS_TOPICS__PARTITIONS": str(s.topics.partitions),
            "CRISIS_PRIVACY__KEY_FILE": str(s.privacy.key_file),
            "CRISIS_PRIVACY__KEEP_IDS": str(s.privacy.keep_ids),
            "CRISIS_PRIVACY__VAULT_URL": s.privacy.vault_url or "",
            "CRISIS_WORKER__WEB_PORT": "0",
            "CRISIS_WORKER__STALL_S": "120",  # a call that returns late on a busy machine is no stall
            "CRISIS_WORKER__SESSION_S": "4",  # what a killed one held is taken over after so long
            "CRISIS_WORKER__SNAPSHOT_S": "0.5",  # frames are acknowledged with a snapshot: nothing waits for its timer
            "OMP_NUM_THREADS": "1",
        }

    async def start_worker(self, *args: str) -> str:
        self.started += 1
        name = f"worker-{self.started}"
        await self.children.start(name, ["streams.cli", "worker", *args], self.env, restart_on=STALLED)
        self.running.append(name)
        return name

    async def kill(self, name: str) -> None:
        """kill -9, as the kernel would."""
        self.running.remove(name)
        child = self.children.expect_end(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        await child.wait()

    async def send(self, lines: Iterable[bytes], frame_posts: int | None = None) -> int:
        """Write lines to posts.raw and wait for the broker. frame_posts: at most so many in a record."""
        settings = self.settings
        if frame_posts is not None:
            ingest = settings.ingest.model_copy(update={"writer": WriterConfig(frame_posts=frame_posts)})
            settings = settings.model_copy(update={"ingest": ingest})

        def write() -> int:
            with open_writer(settings) as writer:
                n = 0
                for line in lines:
                    writer.write(line, key=key_of(head_of(line)))
                    n += 1
            return n

        return await asyncio.to_thread(write)

    async def anew(self) -> None:
        """What was counted and written so far is no longer told: for tests that share a pipeline."""
        self._counted = await self.view.counts()
        with self._consumer() as consumer:
            topics = [
                self.settings.topics.name(t) for t in ("posts.rejected", "posts.clean", "posts.matched", "alerts")
            ]
            self._begin = consumer.end_offsets(
                [TopicPartition(t, p) for t in topics for p in consumer.partitions_for_topic(t)]
            )

    async def counts(self) -> dict[str, int]:
        """The view's counters."""
        return {name: n - self._counted.get(name, 0) for name, n in (await self.view.counts()).items()}

    async def until(self, done: Callable[[dict[str, int]], bool]) -> dict[str, int]:
        """Wait until the counters satisfy `done`. Patience ends where they stand still, with however many posts."""
        counts = await self.counts()

        async def changed() -> bool:
            nonlocal counts
            before, counts = counts, await self.counts()
            return counts != before

        def told() -> dict[str, int]:
            return counts

        while not done(counts):
            await self.become(changed, told)
        return counts

    async def become(self, so: Callable[[], Awaitable[T]], told: Callable[[], object] = lambda: "") -> T:
        """Wait until it is; fails with what is told and the workers' last words otherwise."""
        return await until(so, lambda: f"{told()}\n{self.logs()}")

    async def until_through(self, posts: int) -> dict[str, int]:
        """Wait until this many posts are accounted for, each by exactly one outcome."""
        return await self.until(lambda c: through(c) >= posts)

    async def until_more(self, posts: int) -> None:
        """Wait until so many more posts are accounted for."""
        before = await self.counts()
        await self.until_through(through(before) + posts)

    async def speaking(self) -> list[WorkerStatus]:
        """What workers said lately: not the killed ones."""
        return [w for w in (await self.view.workers()).values() if time.time() - w.at < 3]

    async def until_placed(self) -> None:
        """Wait until the clusterer has saved a snapshot of everything: its lag is zero, by figures taken from now on.

        The first word that comes from now on may tell of figures taken before: the second counts.
        """
        began, words = time.time(), dict[str, list[WorkerStatus]]()

        async def none_lags() -> bool:
            alive = {name: w for name, w in (await self.view.workers()).items() if time.time() - w.at < SILENT_S}
            for name, word in alive.items():
                mine = words.setdefault(name, [])
                if word.at > began and (not mine or word.at > mine[-1].at):
                    mine.append(word)
            told = [words[name][-1].lag.get("posts.matched", 0) for name in alive if len(words[name]) > 1]
            return bool(told) and len(told) == len(alive) and sum(told) == 0

        await self.become(none_lags, lambda: f"clusterers' words: {words}")

    def _consumer(self) -> contextlib.closing[KafkaConsumer]:
        return contextlib.closing(
            KafkaConsumer(bootstrap_servers=self.settings.broker.bootstrap, enable_auto_commit=False)
        )

    def read(self, topic: str) -> list:
        """Every record of a topic, by partition and offset."""
        name = self.settings.topics.name(topic)
        with self._consumer() as consumer:
            parts = [TopicPartition(name, p) for p in consumer.partitions_for_topic(name)]
            consumer.assign(parts)
            ends = consumer.end_offsets(parts)
            for part in parts:
                consumer.seek(part, self._begin.get(part, 0))
            found = []
            while any(consumer.position(p) < ends[p] for p in parts):
                for records in consumer.poll(timeout_ms=500).values():
                    found += records
            return found

    def frames(self, topic: str, kind: type[F]) -> list[F]:
        """Every frame of an inner topic, by partition and order."""
        return [frame for record in self.read(topic) for frame in decode_frames(record.value, kind)]

    def alerts(self) -> list[dict]:
        """Every record of the alerts topic, decoded."""
        return [json.loads(r.value) for r in self.read("alerts")]

    def logs(self) -> str:
        return "\n".join(
            f"--- {p.name}\n" + "\n".join(p.read_text("utf-8", "replace").splitlines()[-25:])
            for p in sorted(self.children.log_dir.glob("*.log"))
        )


@contextlib.asynccontextmanager
async def pipeline(
    bootstrap: str, redis_url: str, logs: Path, partitions: int = 4, keep_ids: bool = True
) -> AsyncIterator[Pipeline]:
    """Topics made, queries loaded, no worker yet. keep_ids: else posts go by pseudonyms, and there is a vault."""
    prefix = f"t{uuid.uuid4().hex[:8]}."
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "key").write_text(secrets.token_urlsafe(32))
    settings = load_settings(
        broker={"bootstrap": bootstrap},
        privacy={
            "key_file": logs / "key",
            "keep_ids": keep_ids,
            "vault_url": redis_url.removesuffix("/0") + "/1",
        },
        redis={"url": redis_url, "prefix": prefix},
        topics={"prefix": prefix, "partitions": partitions},
    )
    await asyncio.to_thread(prepare, settings)
    async with Children(logs) as children:
        made = Pipeline(settings, children)
        try:
            yield made
        finally:  # how a worker stops in order is shown in tests/worker and by the demo
            for name in list(made.running):
                await made.kill(name)
            await made.redis.aclose()


def newest(alerts: Iterable[dict]) -> dict[str, dict]:
    """The newest revision of each alert, as a subscriber keeps them."""
    kept: dict[str, dict] = {}
    for alert in alerts:
        if alert["alert_id"] not in kept or kept[alert["alert_id"]]["revision"] < alert["revision"]:
            kept[alert["alert_id"]] = alert
    return kept


def gist(alert: Alert | dict) -> tuple:
    """What must be equal between the live path and replay: everything but times and the cluster it settled in."""
    a = alert if isinstance(alert, dict) else msgspec.to_builtins(alert)
    return (a["alert_id"], a["status"], a["level"], a["query_id"], a["score"], a["threshold"], a["post"]["text"])
