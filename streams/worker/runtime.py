"""What the agents of one worker share: encoder versions, folder, live view, and a thread for each that computes.

The event loop never computes: encoding, matching and clustering run in one worker thread each, so heartbeats go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec
from redis.exceptions import RedisError

from models.bars import Bars
from models.encoders.protocol import Encoder
from models.language import read_models
from models.pseudonyms import Pseudonyms
from models.queries import Query
from models.records import account_of
from streams import metrics
from streams.broker.backoff import end_task, stop_if_cancelled
from streams.broker.labels import Labels, follow_labels, publish_labels
from streams.broker.queries import follow_queries
from streams.broker.topics import require_topics
from streams.config import Settings
from streams.config.secrets import redacted
from streams.releases.serving import Serving
from streams.releases.takeover import Takeover
from streams.releases.topic import follow_release
from streams.releases.trial import Trial
from streams.view.attempts import Attempts
from streams.view.connect import connect, reaching_redis
from streams.view.folder import RedisFolder
from streams.view.live import LiveView
from streams.view.offsets_of import OffsetsOf
from streams.view.pseudonyms import check_key, key_trouble, load_pseudonyms
from streams.view.snapshots import Snapshots
from streams.view.status import WorkerStatus
from streams.view.vault import Vault
from streams.worker.garbage import keep_what_is_loaded
from streams.worker.sending import Sender
from streams.worker.skim import Pace, Skim
from streams.worker.work import Work

__all__ = ["Runtime"]

log = logging.getLogger(__name__)

TOLD_S = 2.0  # how long Redis may take to be told
LOOK_S = 1.0  # between two looks at the vault
AWAY = "the vault does not answer"
VAULT_CURE = "start it, or set CRISIS_PRIVACY__VAULT_URL and CRISIS_PRIVACY__VAULT_PASSWORD_FILE"
T = TypeVar("T")


class Runtime:
    """Opened once per process; after `start()` the current encoder version is warm and the queries are embedded.

    reads_posts: it has the agent that reads raw posts, so it tells languages.
    """

    def __init__(self, settings: Settings, reads_posts: bool = True) -> None:
        self.settings, self._reads_posts = settings, reads_posts
        self.redis = connect(settings.redis, patient=True)
        self.attempts, self.offsets_of = Attempts(self.redis, settings), OffsetsOf(self.redis, settings)
        self.work = Work()
        self.sender = Sender(settings)
        self.view = LiveView(self.redis, settings)
        self.snapshots = Snapshots(self.redis, settings)
        self.folder = RedisFolder(self.redis, settings.key_prefix, settings.redis.fold_h * 3600)
        self.name = f"{os.uname().nodename}-{os.getpid()}"
        self.takeover = Takeover(settings)
        self.bars = Bars(settings.match, settings.topics.partitions)
        self.trial = Trial(settings, self.view, self.takeover, self.bars)
        self.pace, self.skim = Pace(settings.worker.context_within_s), Skim(settings)
        self.queries: dict[str, Query] = {}
        self._labels: Labels = {}  # as the topic has them, learnt from or not yet
        self._asked: set[str] = set()  # keys of those whose posts were looked for among the deleted ones
        self.pseudonyms = Pseudonyms(b"")
        self.vault: Vault | None = None
        self.vault_trouble = ""  # why posts wait for it
        self._threads = {s: ThreadPoolExecutor(1, thread_name_prefix=s) for s in ("encode", "match", "cluster")}
        self._stack = contextlib.AsyncExitStack()

    async def start(self) -> None:
        """Load, warm up, read the queries. Raises EncoderError, ServiceError, or aiokafka's error if Kafka goes."""
        languages = self._threads["encode"].submit(read_models) if self._reads_posts else None  # beside all the rest
        await asyncio.to_thread(require_topics, self.settings)  # before Faust, or the broker, makes them
        with reaching_redis(self.settings.redis):
            async with connect(self.settings.redis) as impatient:  # no Redis at all is said at once
                await impatient.ping()
            self.pseudonyms = load_pseudonyms(self.settings)
            await check_key(self.redis, self.settings, self.pseudonyms)
        await self._reach_vault()
        queries = await self._stack.enter_async_context(follow_queries(self.settings, self._queries_changed))
        self.queries = dict(queries)
        if not self.queries:
            log.warning("the queries topic is empty: nothing can match until `crisis topics` or `crisis query add`")
        metrics.queries.set(len(self.queries))
        self._labels = await self._stack.enter_async_context(follow_labels(self.settings, self._labels_changed))
        metrics.labels.set(len(self._labels))
        release = await self._stack.enter_async_context(follow_release(self.settings, self.takeover.apply))
        await self.takeover.start(release, list(self.queries.values()), list(self._labels.values()))
        await self._forget_late(self._labels)
        await self.sender.start()
        await self.trial.start()
        if languages is not None:
            await asyncio.wrap_future(languages)
        keep_what_is_loaded()
        metrics.ready.set(1)

    async def _reach_vault(self) -> None:
        """One that is away now is said at once; later it is waited for, and watched meanwhile."""
        where, impatient = self.settings.privacy.vault, Vault.of(self.settings)
        if where is None or impatient is None:
            return
        self._stack.push_async_callback(impatient.aclose)
        with reaching_redis(where, "vault", VAULT_CURE):
            await impatient.check()
        self.vault = Vault.of(self.settings, patient=True)
        self._stack.push_async_callback(end_task, asyncio.create_task(self._watch(impatient), name="vault"))

    async def _watch(self, vault: Vault) -> None:
        while True:
            try:
                await vault.check()
            except (RedisError, OSError) as error:
                stop_if_cancelled()
                if not self.vault_trouble:
                    log.error("%s (%s): waiting for it, nothing is lost", AWAY, redacted(error) or "no answer")
                self.vault_trouble = AWAY
            else:
                if self.vault_trouble:
                    log.warning("the vault answers again")
                self.vault_trouble = ""
            await asyncio.sleep(LOOK_S)

    async def stop(self) -> None:
        """Stop following topics, close connections and threads."""
        metrics.ready.set(0)
        await self._stack.aclose()
        await self.trial.stop()
        await self.takeover.stop()
        for thread in self._threads.values():
            thread.shutdown(wait=False, cancel_futures=True)
        await self.sender.stop()
        await self.redis.aclose()
        if self.vault is not None:
            await self.vault.aclose()

    async def compute(self, thread: str, work: Callable[..., T], *args: object) -> T:
        """Run blocking work in its thread: "encode", "match" or "cluster"."""
        with self.work.call():
            return await asyncio.get_running_loop().run_in_executor(self._threads[thread], work, *args)

    async def hold_nothing_against_what_is_in_hand(self) -> None:
        """Before this process ends itself: no record in hand is to blame, whatever stage had it."""
        with contextlib.suppress(TimeoutError, RedisError):
            await asyncio.wait_for(self.attempts.undo(), TOLD_S)

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

    async def forget_labels(self, gone: set[str]) -> None:
        """Take back what people said about posts, or posts of accounts, that are gone: a label holds a text."""
        held = [key for key, said in self._labels.items() if {said.post_id, account_of(said.post_id)} & gone]
        if held:
            await asyncio.to_thread(publish_labels, self.settings, [], held)

    async def _forget_late(self, labels: Labels) -> None:
        """The same for labels that are heard after the deletion of their post: nobody would look for them again."""
        fresh = {key: said.post_id for key, said in labels.items() if key not in self._asked}
        if gone := await self.view.gone(fresh.values()):
            await self.forget_labels(gone)
        self._asked = {*self._asked.intersection(labels), *fresh}

    async def _labels_changed(self, labels: Labels) -> None:
        await self._forget_late(labels)
        await self.takeover.set_labels(list(labels.values()))
        metrics.labels.set(len(labels))

    async def tell(self, status: WorkerStatus) -> None:
        """This worker's word about itself, and which secret it uses."""
        trouble = await key_trouble(self.redis, self.settings, self.pseudonyms)
        await self.view.put_worker(self.name, msgspec.structs.replace(status, message=status.message or trouble))
