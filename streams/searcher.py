"""Semantic search over the recent posts: an index in memory, filled from posts.embedded; and `crisis search`.

The index lives in the dashboard's process. It reads the topic without a consumer group, from the start of the window,
so a restart rebuilds it and nothing has to be saved. Indexing runs in one thread, searching in another, neither on the
event loop. What it cannot use (another encoder version, a frame that cannot be read) is counted, not hidden.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import click
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from msgspec import Struct

from models.errors import CrisisError, Rejected, ServiceError, VersionMismatch
from models.records import EmbeddedFrame
from streams.config import Settings
from streams.dashboard.lag import partitions_of
from streams.frames import decode_frame, unpack_vectors
from streams.kafka import client_options
from streams.outputs import Span

if TYPE_CHECKING:
    from models.encoder import Encoder
    from models.search import Found, SearchIndex

log = logging.getLogger(__name__)
T = TypeVar("T")


class SearchConfig(Struct, frozen=True):
    """How the index is kept."""

    segment_s: float = 1_800.0  # a segment is dropped whole, so the window is exact to this much
    max_posts: int = 500_000  # about 0.5 GB at 256 dims; the oldest segment goes first
    batch_frames: int = 64  # frames indexed in one go: 64 × 200 posts keep the thread busy for tens of milliseconds


class SearchStatus(Struct, frozen=True):
    """What the page shows about search."""

    state: str  # loading | reading (filling up, already usable) | ready | failed
    posts: int = 0
    skipped: dict[str, int] = {}  # frames by why they were not used
    message: str = ""


class Searcher:
    """Owns the encoder, the index and the task that fills it. `await start()` returns at once."""

    def __init__(self, settings: Settings, config: SearchConfig | None = None, encoder: Encoder | None = None) -> None:
        self.settings, self.config = settings, config or SearchConfig()
        self.encoder = encoder
        self.index: SearchIndex | None = None
        self.skipped: dict[str, int] = {}
        self._newest = float("-inf")  # stream time: created_at of the newest post
        self._indexing = ThreadPoolExecutor(1, thread_name_prefix="index")
        self._searching = ThreadPoolExecutor(1, thread_name_prefix="search")
        self._task: asyncio.Task | None = None
        self._state, self._message = "loading", ""

    @property
    def status(self) -> SearchStatus:
        """How far it is."""
        return SearchStatus(self._state, len(self.index) if self.index is not None else 0, dict(self.skipped), self._message)

    async def start(self) -> None:
        """Start loading and reading in the background; `status` tells how it goes."""
        self._task = asyncio.create_task(self._run(), name="searcher")
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._state, self._message = "failed", f"search stopped: {error}"
            log.critical("search stopped", exc_info=error)

    async def stop(self) -> None:
        """Stop reading and drop the index."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        for thread in (self._indexing, self._searching):
            thread.shutdown(wait=False, cancel_futures=True)

    async def search(self, text: str, k: int = 10, lang: str | None = None, last_s: float | None = None) -> list[Found]:
        """The k posts nearest in meaning, best first. `last_s` counts back from the newest post.

        Raises ServiceError while the encoder is loading.
        """
        if self.index is None:
            raise ServiceError(self._message or "search is still loading its encoder: try again in a few seconds")
        since = None if last_s is None else self._newest - last_s
        return await _in(self._searching, self._search, text, k, lang, since)

    def _search(self, text: str, k: int, lang: str | None, since: float | None) -> list[Found]:
        return self.index.search(self.encoder.encode([text])[0], k, lang=lang, since=since)

    def _load(self) -> None:
        from models.encoder import load_encoder
        from models.search import SearchIndex

        if self.encoder is None:
            self.encoder = load_encoder(self.settings.encoder.ref)
        self.encoder.encode(["warm-up"])
        self.index = SearchIndex(
            dim=self.encoder.dim, encoder_version=self.encoder.version, segment_s=self.config.segment_s,
            window_s=self.settings.dashboard.search_h * 3600, max_posts=self.config.max_posts,
        )  # fmt: skip

    async def _run(self) -> None:
        try:
            await _in(self._indexing, self._load)
        except CrisisError as error:
            self._state, self._message = "failed", f"search has no encoder: {error}"
            log.error("%s", self._message)
            return
        wait_s = 1.0
        while True:
            self._state = "reading"
            try:
                await self._read()
            except (KafkaError, OSError) as error:
                self._message = f"search cannot read {self.settings.topics.name('posts.embedded')}: {error}"
                log.warning("%s; again in %.0f s", self._message, wait_s)
            await asyncio.sleep(wait_s)
            wait_s = min(30.0, wait_s * 2)

    async def _read(self) -> None:
        """Fill the index until the connection breaks; what it holds already is read over again and replaced."""
        topic = self.settings.topics.name("posts.embedded")
        while not (parts := await partitions_of(self.settings, ["posts.embedded"])):
            self._message = f"search waits for the topic {topic}: `crisis topics` makes it"
            await asyncio.sleep(2.0)
        self._message = ""
        consumer = AIOKafkaConsumer(
            **client_options(self.settings.broker), group_id=None, enable_auto_commit=False,
            auto_offset_reset="earliest", max_partition_fetch_bytes=8 * 1024 * 1024,
        )  # fmt: skip
        try:
            await consumer.start()
            consumer.assign(parts)
            ends = await self._to_window(consumer, parts)
            while True:
                batches = await consumer.getmany(timeout_ms=500, max_records=self.config.batch_frames)
                values = [r.value for records in batches.values() for r in records]
                if values:
                    await _in(self._indexing, self.add, values)
                if self._state != "ready" and all([await consumer.position(p) >= ends[p] for p in parts]):
                    self._state, self._message = "ready", ""
        finally:
            await consumer.stop()

    async def _to_window(self, consumer: AIOKafkaConsumer, parts: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Stand at the start of the window in every partition; returns where the partitions end now."""
        since = int((time.time() - self.settings.dashboard.search_h * 3600) * 1000)
        starts = await consumer.offsets_for_times(dict.fromkeys(parts, since))
        ends = await consumer.end_offsets(parts)
        for part in parts:
            consumer.seek(part, starts[part].offset if starts.get(part) else ends[part])
        return ends

    def add(self, values: Iterable[bytes | None]) -> None:
        """Index frames. Blocking: call it in the thread."""
        for value in values:
            try:
                frame = decode_frame(value or b"", EmbeddedFrame)
                if frame.encoder_version != self.encoder.version:
                    self._skip("other_encoder_version")
                    continue
                vectors = unpack_vectors(frame)
            except Rejected:
                self._skip("bad_frame")
                continue
            except VersionMismatch:
                self._skip("bad_vectors")
                continue
            if frame.posts:
                self.index.add(frame.posts, vectors)
                self._newest = max(self._newest, *(min(p.created_at, p.seen_at) for p in frame.posts))
            if frame.deletions:
                self.index.hide(d.id for d in frame.deletions)

    def _skip(self, why: str) -> None:
        self.skipped[why] = self.skipped.get(why, 0) + 1


async def _in(thread: ThreadPoolExecutor, work: Callable[..., T], *args: object) -> T:
    return await asyncio.get_running_loop().run_in_executor(thread, work, *args)


@click.command()
@click.argument("text")
@click.option("--lang", help="Only posts in this language, such as ar.")
@click.option("--last", "last_s", type=Span(), help="Only the last 15m, 6h, 1d … Default: all that is kept.")
@click.option("-k", default=10, show_default=True, type=click.IntRange(1, 100), help="Posts to show.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--url", help="Where the dashboard runs. Default: as in the settings.")
@click.pass_obj
def search(settings: Settings, text: str, lang: str | None, last_s: float | None, k: int, form: str, url: str | None) -> None:
    """Find recent posts that mean TEXT, written in any language.

    Asks the running dashboard, which keeps the recent posts in memory.

    \b
    crisis search "people trapped under a roof" --last 6h
    crisis search "agua potable" --lang ar -k 20 --format json
    """
    from streams.dashboard.client import ask_search

    found = ask_search(settings, text, lang=lang, last_s=last_s, k=k, url=url)
    if form == "json":
        import msgspec

        from streams.outputs.printable import safe_json

        for one in found:
            click.echo(safe_json(msgspec.json.encode(one)))
        return
    from rich.console import Console
    from rich.text import Text

    from streams.outputs.printable import printable, shorten, web_link

    console = Console(highlight=False, soft_wrap=True)
    if not found:
        console.print("No post found in the window that is kept.", style="dim")
    for one in found:
        line = Text(f"{one.score:.3f}  ", style="bold")
        line.append(shorten(printable(one.text), 400))
        facts = [one.created_at.replace("T", " ")[:19], printable(one.lang), printable(one.source)]
        facts += [web_link(one.url)] if web_link(one.url) else []
        console.print(line.append(f"\n       {' · '.join(facts)}", style="dim"))
