"""What the agents of one worker share: encoder versions, folder, live view, and a thread for each that computes.

The event loop never computes: encoding, matching and clustering run in one worker thread each, so heartbeats go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from models.bundle import CALIBRATION, MANIFEST, read_bundle
from models.calibration import Calibration, read_calibration
from models.encoder import BUNDLED, Encoder
from models.matching import Matcher
from models.queries import Query, background_texts
from streams import metrics
from streams.config import Settings, secret
from streams.control import follow_queries
from streams.folding import RedisFolder
from streams.kafka import require_topics
from streams.releases import follow_release
from streams.state import LiveView, connect, reaching_redis
from streams.takeover import Takeover
from streams.trial import Trial
from streams.versions import Serving

log = logging.getLogger(__name__)
T = TypeVar("T")


class Runtime:
    """Opened once per process; after `start()` the current encoder version is warm and the queries are embedded."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.redis = connect(settings.redis)
        self.view = LiveView(self.redis, settings)
        self.folder = RedisFolder(self.redis, settings.key_prefix, settings.redis.fold_h * 3600)
        self.name = f"{os.uname().nodename}-{os.getpid()}"
        self.takeover = Takeover(settings)
        self.trial = Trial(settings, self.view, self.takeover)
        self.queries: dict[str, Query] = {}
        self.author_key = b""
        self._threads = {s: ThreadPoolExecutor(1, thread_name_prefix=s) for s in ("encode", "match", "cluster")}
        self._stack = contextlib.AsyncExitStack()

    async def start(self) -> None:
        """Load, warm up, read the queries. Raises EncoderError, ServiceError, or aiokafka's error if Kafka goes."""
        await asyncio.to_thread(require_topics, self.settings)  # before Faust, or the broker, makes them
        with reaching_redis(self.settings.redis):
            self.author_key = await self._read_author_key()
        self.queries = await self._stack.enter_async_context(follow_queries(self.settings, self._queries_changed))
        if not self.queries:
            log.warning("the queries topic is empty: nothing can match until `crisis topics` or `crisis query add`")
        metrics.queries.set(len(self.queries))
        release = await self._stack.enter_async_context(follow_release(self.settings, self.takeover.apply))
        await self.takeover.start(release, list(self.queries.values()))
        await self.trial.start()
        metrics.ready.set(1)

    async def stop(self) -> None:
        """Stop following topics, close connections and threads."""
        metrics.ready.set(0)
        await self._stack.aclose()
        await self.trial.stop()
        await self.takeover.stop()
        for thread in self._threads.values():
            thread.shutdown(wait=False, cancel_futures=True)
        await self.redis.aclose()

    async def compute(self, thread: str, work: Callable[..., T], *args: object) -> T:
        """Run blocking work in its thread: "encode", "match" or "cluster"."""
        return await asyncio.get_running_loop().run_in_executor(self._threads[thread], work, *args)

    @property
    def serving(self) -> Serving:
        """The encoder versions in use. Read it once per batch: it is swapped between frames."""
        return self.takeover.serving

    @property
    def encoder(self) -> Encoder:
        """The current version's."""
        return self.serving.current.encoder

    async def _queries_changed(self, queries: dict[str, Query]) -> None:
        await self.takeover.set_queries(list(queries.values()))
        self.queries = queries
        metrics.queries.set(len(queries))

    async def _read_author_key(self) -> bytes:
        """The secret of the pseudonyms: from its file, or one that all workers share through Redis."""
        if key := secret(self.settings.worker.author_key_file):
            return key.encode()
        await self.redis.set(self.view.key("author-key"), secrets.token_bytes(32), nx=True)
        return await self.redis.get(self.view.key("author-key"))


def build_matcher(settings: Settings, queries: list[Query], encoder: Encoder) -> Matcher:
    """A matcher with the calibration of the settings' own encoder. Blocking: encodes every query sentence."""
    return Matcher(settings.match, queries, encoder, background_texts(), calibration_of(encoder, settings.encoder.ref))


def calibration_of(encoder: Encoder, ref: str | None = None) -> Calibration | None:
    """The calibration stored beside the bundle at `ref` (None: the bundled one), if this encoder was loaded from there."""
    folder = BUNDLED if ref is None else Path(ref)
    if not (folder / MANIFEST).is_file() or read_bundle(folder).id != encoder.version:
        return None
    return read_calibration(folder / CALIBRATION, encoder.version)
