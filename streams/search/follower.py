"""Semantic search over the recent posts, in the encoder version that is current; lives in the dashboard's process.

It follows the `encoders` topic as workers do. When another version becomes current, a second window is filled with it
beside the first, which goes on answering and taking in posts; once the new one has caught up it answers instead, and
the old one is dropped. A version that cannot be loaded changes nothing: it is told, and tried again. Loading, indexing
and searching each run in a thread, never on the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from aiokafka.errors import KafkaError
from msgspec import Struct

from models.encoders.ready import Loaded
from models.encoders.registry import OWN
from models.errors import CrisisError, EncoderError, ServiceError
from models.feedback.records import Label
from models.moving_words import Moved
from models.queries import Query
from models.records import Post
from streams.broker.backoff import Good, end_task, keep_up
from streams.broker.topics import partitions_of
from streams.config import Settings
from streams.config.secrets import redacted
from streams.releases.release import Release
from streams.releases.topic import follow_release
from streams.releases.versions import load_version
from streams.search.rehearsal import Rehearsal
from streams.search.window import SearchConfig, Window

if TYPE_CHECKING:
    from models.search import Found

__all__ = ["SearchStatus", "Searcher"]

log = logging.getLogger(__name__)

MOST_WAIT_S = 60.0  # between two tries to load a version


class SearchStatus(Struct, frozen=True):
    """What the page shows about search."""

    state: str  # loading | reading (filling up, already usable) | ready | failed
    posts: int = 0
    skipped: dict[str, int] = {}  # frames by why they were not used
    message: str = ""
    encoder_version: str = ""  # that answers
    restated: int = 0  # posts embedded again, because their vectors were of another version


class Searcher:
    """Owns the window that answers, and the task that keeps it on the current version. `await start()` returns at once.

    load: how a version is loaded; blocking, raises CrisisError.
    """

    def __init__(
        self,
        settings: Settings,
        config: SearchConfig | None = None,
        load: Callable[[Settings, str], Loaded] = load_version,
    ) -> None:
        self.settings, self.config = settings, config or SearchConfig()
        self.window: Window | None = None  # answers
        self.coming: Window | None = None  # of the version that becomes current, while it fills
        self._load = load
        self._release = Release()
        self._wake = asyncio.Event()  # another release was announced
        self._loading = ThreadPoolExecutor(1, thread_name_prefix="load")
        self._searching = ThreadPoolExecutor(1, thread_name_prefix="search")
        self._rehearsing = ThreadPoolExecutor(1, thread_name_prefix="rehearse")
        self._tasks: set[asyncio.Task] = set()
        self._state, self._message = "loading", ""

    @property
    def status(self) -> SearchStatus:
        """How far it is."""
        window, coming, state = self.window, self.coming, self._state
        if window is None:
            return SearchStatus(state, message=self._message)
        if state != "failed":
            state = "ready" if window.caught_up.is_set() else "reading"
        moving = coming and f"search moves to encoder {coming.encoder.version}: {len(coming.index)} posts so far"
        return SearchStatus(
            state,
            len(window.index),
            dict(window.skipped),
            self._message or window.message or moving or "",
            window.encoder.version,
            window.restated,
        )

    async def start(self) -> None:
        """Start loading and reading in the background; `status` tells how it goes."""
        self._watch(asyncio.create_task(self._run(), name="searcher"))

    def _watch(self, task: asyncio.Task) -> None:
        def ended(task: asyncio.Task) -> None:
            self._tasks.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                self._state, self._message = "failed", f"search stopped: {redacted(error)}"
                log.critical("search stopped", exc_info=error)

        self._tasks.add(task)
        task.add_done_callback(ended)

    async def stop(self) -> None:
        """Stop reading and drop the index."""
        await asyncio.gather(*map(end_task, self._tasks))
        for window in (self.window, self.coming):
            if window is not None:
                await window.close()
        for thread in (self._loading, self._searching, self._rehearsing):
            thread.shutdown(wait=False, cancel_futures=True)

    async def search(self, text: str, k: int = 10, lang: str | None = None, last_s: float | None = None) -> list[Found]:
        """The k posts nearest in meaning, best first. `last_s` counts back from the newest post.

        Raises ServiceError while no encoder is loaded.
        """
        if self.window is None:
            raise ServiceError(self._message or "search is still loading its encoder: try again in a few seconds")
        return await asyncio.get_running_loop().run_in_executor(
            self._searching, self.window.search, text, k, lang, last_s
        )

    async def rehearse(
        self, query: Query, queries: Sequence[Query], labels: Sequence[Label], last_s: float
    ) -> Rehearsal:
        """What a query would have alerted among the posts kept here (`Window.rehearse`); one after the other.

        Raises ServiceError while no encoder is loaded.
        """
        if self.window is None:
            raise ServiceError(self._message or "search is still loading its encoder: try again in a few seconds")
        return await asyncio.get_running_loop().run_in_executor(
            self._rehearsing, self.window.rehearse, query, queries, labels, last_s
        )

    async def moved(self, post: Post, query_id: str, queries: Sequence[Query], labels: Sequence[Label]) -> Moved:
        """Which words of a post move its reading by a query (`Window.moved`); one after the other.

        Raises ServiceError while no encoder is loaded, QueryError where there is no such query.
        """
        if self.window is None:
            raise ServiceError(self._message or "search is still loading its encoder: try again in a few seconds")
        return await asyncio.get_running_loop().run_in_executor(
            self._rehearsing, self.window.moved, post, query_id, queries, labels
        )

    # -- in the background

    async def _run(self) -> None:
        def broken(error: BaseException, pause_s: float) -> None:
            self._message = (
                f"search cannot ask {self.settings.broker.bootstrap} which encoder is current: {redacted(error)}"
            )
            log.warning("%s; again in %.0f s", self._message, pause_s)

        await keep_up(self._session, (KafkaError, OSError), broken, longest_s=MOST_WAIT_S)

    async def _session(self, good: Good) -> None:
        while not await partitions_of(self.settings, ["encoders"]):
            topic = self.settings.topics.name("encoders")
            self._message = f"search waits for the topic {topic}: `crisis topics` makes it"
            await asyncio.sleep(2.0)
        async with follow_release(self.settings, self._announced) as self._release:
            good()
            self._wake.set()
            await self._follow()

    async def _announced(self, release: Release) -> None:
        before, self._release = self._release, release
        if release.current != before.current:  # a trial that begins or ends is nothing to us
            self._wake.set()

    async def _follow(self) -> None:
        wait_s: float | None = None  # until the next try; None: nothing to try before the next release
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()
                    wait_s = None
            self._wake.clear()
            trouble = await self._move(self._release)
            if self.window is None:
                self._state = "failed"
            self._message = trouble
            if trouble:
                log.error("%s", trouble)
            wait_s = min(MOST_WAIT_S, 2 * (wait_s or 0.5)) if trouble else None

    async def _move(self, release: Release) -> str:
        """Answer with the release's version; where that cannot be had, with what we have, or else an earlier one.

        Returns what is wrong, or "". Gives up half-way when another release is announced.
        """
        failed = []
        earlier = () if self.window else (*reversed(release.earlier), OWN)
        for name in dict.fromkeys((release.current, *earlier)):
            try:
                window = await asyncio.get_running_loop().run_in_executor(self._loading, self._make, name)
                break
            except CrisisError as error:
                failed.append(f"cannot load {name}: {redacted(error)}")
        else:
            kept = f"search keeps encoder {self.window.encoder.version}" if self.window else "search has no encoder"
            return f"{kept}: {'; '.join(failed)}"
        if self.window is None:
            self._watch(window.start())
            self.window, self._state = window, "reading"
        elif self.window.encoder.version != window.encoder.version:
            await self._replace(window)
        else:
            await window.close()
        return f"search answers with {name}: {'; '.join(failed)}" if failed else ""

    def _make(self, name: str) -> Window:
        try:
            loaded = self._load(self.settings, name)
            loaded.encoder.encode(["warm-up"])
        except CrisisError:
            raise
        except Exception as error:  # a version from outside fails as its libraries like; search keeps what it has
            raise EncoderError(f"{type(error).__name__}: {error}") from error
        return Window(self.settings, self.config, loaded.encoder, loaded)

    async def _replace(self, window: Window) -> None:
        """Fill the new window, then let it answer; drop it if another release is announced first."""
        self.coming, self._message = window, ""
        self._watch(filling := window.start())
        waits = [asyncio.create_task(event.wait()) for event in (window.caught_up, self._wake)]
        try:
            await asyncio.wait([*waits, filling], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if window.caught_up.is_set():
            log.info("search moved from encoder %s to %s", self.window.encoder.version, window.encoder.version)
            self.window, window = window, self.window
        self.coming = None
        await window.close()
