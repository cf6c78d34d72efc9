"""The recent posts as one encoder version sees them: an index in memory, and the task that fills it from
posts.embedded.

It reads the topic without a consumer group, from the start of the window, so a restart, or another encoder version,
builds it anew and nothing has to be saved. Posts whose vectors are of another version are embedded again from their
text: vectors of two versions are never compared. All of that happens in a thread of its own. What it cannot use is
counted, not hidden.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from msgspec import Struct

from models.bars import Bars
from models.cutting import count_items, cut
from models.encoders.protocol import Encoder
from models.encoders.query_vectors import Known
from models.encoders.ready import Loaded, ready
from models.encoders.registry import OWN
from models.errors import CrisisError, Rejected
from models.feedback.records import Label
from models.feedback.teach import teach
from models.moving_words import Moved, moving_words
from models.queries import Query
from models.records import EmbeddedFrame, Origin, Post
from streams.broker.backoff import Good, end_task, keep_up
from streams.broker.connect import client_options
from streams.broker.reading import kafka_ms
from streams.broker.topics import partitions_of
from streams.config import Settings
from streams.config.secrets import redacted
from streams.pipeline.frames import decode_frames, pack_vectors, unpack_vectors
from streams.releases.serving import restate
from streams.search.rehearsal import Rehearsal, rehearse
from streams.search.varied import varied

if TYPE_CHECKING:
    from models.search import Found

__all__ = ["SearchConfig", "Window"]

log = logging.getLogger(__name__)

TRIED_ON = 20_000  # posts a query is tried on, the newest: a few seconds of CPU
FRAME = 500


class SearchConfig(Struct, frozen=True):
    """How the index is kept."""

    segment_s: float = 1_800.0  # a segment is dropped whole, so the window is exact to this much
    max_posts: int = 500_000  # about 0.5 GB at 256 dims; the oldest segment goes first
    batch_frames: int = 64  # frames indexed in one go: 64 × 200 posts keep the thread busy for tens of milliseconds


class Window:
    """`start()` fills it until `close()`; `add` and `search` block: one thread may add while another searches."""

    def __init__(
        self, settings: Settings, config: SearchConfig, encoder: Encoder, loaded: Loaded | None = None
    ) -> None:
        from models.search import SearchIndex  # faiss: only who searches pays for it

        self.settings, self.config, self.encoder = settings, config, encoder
        self.index = SearchIndex(
            dim=encoder.dim,
            encoder_version=encoder.version,
            segment_s=config.segment_s,
            window_s=settings.dashboard.search_h * 3600,
            max_posts=config.max_posts,
        )
        self.newest = float("-inf")  # stream time: created_at of the newest post
        self.skipped: dict[str, int] = {}  # frames by why they were not used
        self.restated = 0  # posts embedded again, because their vectors were of another version
        self.message = ""
        self.caught_up = asyncio.Event()  # all that was on the topic when it began is in
        self._version: Loaded = loaded or Loaded(OWN, encoder)  # from the first trial of a query on: one that is ready
        self._taught: Known = {}
        self._encoding = threading.Lock()  # tokenizers of transformers fail when two threads share one
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="index")
        self._closed = False
        self._task: asyncio.Task | None = None

    def search(self, text: str, k: int, lang: str | None = None, last_s: float | None = None) -> list[Found]:
        """The k posts nearest in meaning, varied, best first. `last_s` counts back from the newest post. Blocking."""
        with self._encoding:
            vector = self.encoder.encode([text])[0]
        since = None if last_s is None else self.newest - last_s
        return varied(lambda most: self.index.search(vector, most, lang=lang, since=since), k)

    def rehearse(self, query: Query, queries: Sequence[Query], labels: Sequence[Label], last_s: float) -> Rehearsal:
        """What a query would have alerted in the last `last_s` of stream time, beside these queries and with what
        people taught. It takes the place of one of its id. One at a time; blocking, seconds.
        """
        with self._encoding:
            beside = [other for other in queries if other.id != query.id]
            self._version = made = ready(self._version, [*beside, query], self.settings.match)
            taught, self._taught = teach(made, labels, self._taught)
        return rehearse(self._frames(self.newest - last_s), taught, query.id, Bars(self.settings.match))

    def moved(self, post: Post, query_id: str, queries: Sequence[Query], labels: Sequence[Label]) -> Moved:
        """Which words of a post move its reading by a query, among these and with what people taught. One at a time;
        blocking, as many texts are read as the post has words. Raises QueryError where the query is not among them.
        """
        with self._encoding:
            self._version = made = ready(self._version, list(queries), self.settings.match)
            taught, self._taught = teach(made, labels, self._taught)
            return moving_words(taught.matcher, self.encoder, post, query_id)

    def _frames(self, since: float) -> Iterator[EmbeddedFrame]:
        """The newest posts in the order they were seen, as the match stage gets them."""
        number = 0
        for posts, vectors in self.index.recent(since, TRIED_ON):
            for start in range(0, len(posts), FRAME):
                number += 1
                yield EmbeddedFrame(
                    Origin(0, number),
                    posts[start : start + FRAME],
                    encoder_version=self.encoder.version,
                    dim=self.encoder.dim,
                    vectors=pack_vectors(vectors[start : start + FRAME]),
                )

    def add(self, values: Iterable[bytes | None]) -> None:
        """Index frames. Blocking."""
        for value in values:
            if self._closed:
                return
            try:
                frames = decode_frames(value or b"", EmbeddedFrame)
            except Rejected:
                self._skip("bad_frame")
                continue
            for frame in frames:
                self._add(frame)

    def _add(self, frame: EmbeddedFrame) -> None:
        try:
            if frame.posts and frame.encoder_version != self.encoder.version:
                with self._encoding:
                    frame = restate(frame, self.encoder)
                self.restated += len(frame.posts)
            vectors = unpack_vectors(frame)
        except Rejected:
            self._skip("bad_frame")
            return
        except CrisisError:
            self._skip("bad_vectors")
            return
        except Exception:  # an encoder fails as its libraries like; one post that it does not survive ends no search
            if len(frame.posts) > 1:
                half = len(frame.posts) // 2
                self._add(cut(frame, 0, half))
                self._add(cut(frame, half, count_items(frame)))
                return
            log.exception("search leaves out a post that %s cannot read", self.encoder.version)
            self._skip("unread")
            frame, vectors = cut(frame, 1, count_items(frame)), unpack_vectors(cut(frame, 1, 1))
        if frame.posts:
            self.index.add(frame.posts, vectors)
            self.newest = max(self.newest, *(min(p.created_at, p.seen_at) for p in frame.posts))
        if frame.deletions:
            self.index.hide(d.id for d in frame.deletions)

    def _skip(self, why: str) -> None:
        self.skipped[why] = self.skipped.get(why, 0) + 1

    # -- filling it from Kafka

    def start(self) -> asyncio.Task:
        """Read in the background; the task ends only by an error that is a bug, or by `close`."""
        self._task = asyncio.create_task(self._fill(), name=f"search-{self.encoder.version}")
        return self._task

    async def close(self) -> None:
        """Stop reading."""
        self._closed = True
        if self._task is not None:
            await end_task(self._task)
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _fill(self) -> None:
        def broken(error: BaseException, pause_s: float) -> None:
            self.message = f"search cannot read {self.settings.topics.name('posts.embedded')}: {redacted(error)}"
            log.warning("%s; again in %.0f s", self.message, pause_s)

        await keep_up(self._read, (KafkaError, OSError), broken, longest_s=30.0)

    async def _read(self, good: Good) -> None:
        """Fill the index until the connection breaks; what it holds already is read over again and replaced."""
        parts = await self._partitions()
        consumer = AIOKafkaConsumer(
            **client_options(self.settings.broker),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=8 * 1024 * 1024,
        )
        loop = asyncio.get_running_loop()
        try:
            await consumer.start()
            consumer.assign(parts)
            ends = await self._to_window(consumer, parts)
            good()
            while True:
                batches = await consumer.getmany(timeout_ms=500, max_records=self.config.batch_frames)
                values = [r.value for records in batches.values() for r in records]
                if values:
                    await loop.run_in_executor(self._thread, self.add, values)
                if not self.caught_up.is_set() and all([await consumer.position(p) >= ends[p] for p in parts]):
                    self.caught_up.set()
        finally:
            await consumer.stop()

    async def _partitions(self) -> list[TopicPartition]:
        while not (parts := await partitions_of(self.settings, ["posts.embedded"])):
            self.message = (
                f"search waits for the topic {self.settings.topics.name('posts.embedded')}: `crisis topics` makes it"
            )
            await asyncio.sleep(2.0)
        self.message = ""
        return parts

    async def _to_window(self, consumer: AIOKafkaConsumer, parts: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Stand at the start of the window in every partition; returns where the partitions end now."""
        since = kafka_ms(time.time() - self.settings.dashboard.search_h * 3600)
        ends = await consumer.end_offsets(parts)  # first: what comes between the two questions lies beyond and is read
        starts = await consumer.offsets_for_times(dict.fromkeys(parts, since))
        for part in parts:
            consumer.seek(part, starts[part].offset if starts.get(part) else ends[part])
        return ends
