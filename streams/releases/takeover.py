"""Taking over encoder versions in a running worker: load beside the stream, then switch between two frames.

    release changes ─► fetch, verify, load, warm up, embed the queries   (its own thread; the old version serves on)
                   ─► one assignment: `serving` is the new one           (handlers read it once per batch)

Frames under way finish on the version that began them: it stays loaded until nothing asked for it for `keep_s`. A frame
of a version that is not loaded here (another worker was faster, or we cannot load it at all) is embedded again by
what is: its alerts are right, and its vectors were never compared with others.
A version that cannot be loaded changes nothing: the old one serves, the trouble is told, and it is tried again with
back-off until it works or another release is announced.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from models.encoders.query_vectors import Known
from models.encoders.ready import Loaded, Ready
from models.encoders.registry import OWN
from models.errors import CrisisError, EncoderError
from models.feedback.records import Label
from models.feedback.teach import teach
from models.queries import Query
from streams import metrics
from streams.broker.backoff import end_task, until_done
from streams.config import Settings
from streams.config.secrets import redacted
from streams.releases.release import Release, Staged, canary_partitions, trial_of
from streams.releases.serving import Serving
from streams.releases.versions import load_version, make_ready

__all__ = ["Takeover"]

log = logging.getLogger(__name__)
T = TypeVar("T")
VERSION = "version"  # what a trouble is about


class _Superseded(Exception):
    """Another release was announced while we waited to try again."""


class Takeover:
    """Keeps `serving` what the release says, as far as it can be had. One event loop; compute runs in its
    own thread.
    """

    def __init__(
        self,
        settings: Settings,
        load: Callable[[Settings, str], Loaded] = load_version,
        clock: Callable[[], float] = time.monotonic,
        keep_s: float = 300.0,
        most_wait_s: float = 60.0,
    ) -> None:
        self.settings = settings
        self._troubles: dict[str, str] = {}  # by what they are about
        self.release = Release()
        self.serving: Serving
        self._load, self._clock, self._keep_s, self._most_wait_s = load, clock, keep_s, most_wait_s
        self._queries: Sequence[Query] = ()
        self.labels: Sequence[Label] = ()  # what people said, as every loaded version has learnt it or is about to
        self._label_vectors: dict[str, Known] = {}
        self._loaded: dict[str, Ready] = {}
        self._used_at: dict[str, float] = {}
        self._building = asyncio.Lock()  # a change of queries and a new version must not miss each other
        self._wake = asyncio.Event()
        self._switched = asyncio.Condition()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="takeover")
        self._task: asyncio.Task | None = None
        self._learning: asyncio.Task | None = None
        self._unlearnt = asyncio.Event()  # a version serves without what people taught

    @property
    def trouble(self) -> str:
        """Why we do not serve what we should; for the worker's status."""
        return "; ".join(self._troubles.values())

    async def start(self, release: Release, queries: Sequence[Query], labels: Sequence[Label] = ()) -> None:
        """Load what is current, and what was just before it for the frames it began. Then follow in the background:
        what people taught is learnt there, so that no alert waits until thousands of labelled texts are embedded.

        If the current version cannot be had, the newest earlier one that can serves, and in the end the worker's own.
        Raises EncoderError if there is nothing at all.
        """
        if release.revision >= self.release.revision:
            self.release = release
        self._queries = self._queries or queries
        failed = []
        for name in dict.fromkeys((self.release.current, *reversed(self.release.earlier), OWN)):
            try:
                await self._make(name)
                break
            except CrisisError as error:
                failed.append(f"cannot load {name}: {error}")
        else:
            raise EncoderError("; ".join(failed))
        if failed:
            self._tell(f"serves {name}: {'; '.join(failed)}")
        first = next(iter(self._loaded))
        previous = self.release.previous
        if previous is not None and time.time() - self.release.changed_at < self._keep_s:
            with contextlib.suppress(CrisisError):
                await self._make(previous)
        await self._switch(self._loaded[first])
        self.labels = self.labels or labels
        self._wake.set()
        self._unlearnt.set()
        self._task = asyncio.create_task(self._follow(), name="takeover")
        self._learning = asyncio.create_task(self._learn_what_is_not(), name="learning")

    async def stop(self) -> None:
        """End the background tasks and their thread."""
        for task in (self._task, self._learning):
            if task is not None:
                await end_task(task)
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def apply(self, release: Release) -> None:
        """A new release was announced. Returns at once; the take-over goes on in the background."""
        self.release = release
        self._wake.set()

    async def set_queries(self, queries: Sequence[Query]) -> None:
        """Embed changed queries with every version loaded, then use them all at once. Raises, and tells, what went
        wrong: then those of before are used still."""
        with self._telling("changed queries are not taken in"):
            async with self._building:
                self._queries = queries
                known = list(self._loaded.items())
                made = {name: await self._ready(ready, queries) for name, ready in known}
                self._loaded.update(made)
        if self._loaded and self._task is not None:
            await self._switch()

    async def set_labels(self, labels: Sequence[Label]) -> None:
        """Let every version loaded learn from these labels alone, then use them all at once. Raises as
        `set_queries`."""
        self.labels = labels
        await self._learn()

    async def _learn(self) -> None:
        with self._telling("what people taught is not learnt"):
            async with self._building:
                known = list(self._loaded.items())
                made = {name: await self._compute(self._taught, ready) for name, ready in known}
                self._loaded.update(made)
        if self._loaded and self._task is not None:
            await self._switch()

    def _taught(self, ready: Ready) -> Ready:
        """Blocking, in the thread of take-overs."""
        if not self.labels and ready.matcher.feedback is None:
            return ready
        taught, self._label_vectors[ready.name] = teach(ready, self.labels, self._label_vectors.get(ready.name))
        return taught

    async def _ready(self, loaded: Loaded, queries: Sequence[Query]) -> Ready:
        """With these queries, and taught; where that fails it serves meanwhile: a text that cannot be learnt from must
        not keep workers from the next version, or from the one before."""
        made = await self._compute(make_ready, self.settings, loaded, queries)
        try:
            return await self._compute(self._taught, made)
        except Exception:
            self._unlearnt.set()  # tried again there, and told
            return made

    async def until(self, done: Callable[[Serving], bool]) -> Serving:
        """Wait for a state of `serving`."""
        async with self._switched:
            await self._switched.wait_for(lambda: done(self.serving))
        return self.serving

    @property
    def languages(self) -> set[str]:
        """Of the queries: a closed set, fit for a metric's label."""
        return {lang for query in self._queries for lang in query.sentences}

    def used(self, ready: Ready) -> None:
        """A frame was begun by this version: keep it loaded."""
        self._used_at[ready.name] = self._clock()

    # -- in the background

    async def _follow(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):  # looks now and then whether an old version may go
                async with asyncio.timeout(self._keep_s / 4):  # not wait_for: in 3.11 it may swallow a cancellation
                    await self._wake.wait()
            self._wake.clear()
            release = self.release
            wanted = [release.current, *([release.staged.version] if release.staged else [])]
            with contextlib.suppress(_Superseded):
                for name in wanted:
                    await self._try_until_loaded(name)
                    await self._switch()  # the current version first; it does not wait for the staged one
                self._well(VERSION)

    async def _learn_what_is_not(self) -> None:
        def again(error: BaseException, pause_s: float) -> None:
            log.error("what people taught is learnt again in %.0f s", pause_s)

        while True:
            await self._unlearnt.wait()
            self._unlearnt.clear()
            await until_done(self._learn, (Exception,), again, longest_s=self._most_wait_s, pause=asyncio.sleep)

    async def _try_until_loaded(self, name: str) -> None:
        if name in self._loaded:
            return
        tries = itertools.count(1)

        async def load() -> None:
            started = self._clock()
            await self._make(name)
            metrics.takeover_seconds.observe(self._clock() - started)
            log.info("version %s is ready after %.2f s", name, self._clock() - started)

        def told(error: BaseException, pause_s: float) -> None:
            self._tell(
                f"keeps {self.serving.current.name}: cannot load {name}: {error} "
                f"(try {next(tries)}, next in {pause_s:.0f} s)"
            )

        await until_done(load, (Exception,), told, longest_s=self._most_wait_s, pause=self._pause)

    async def _pause(self, seconds: float) -> None:
        """Sleep, but not past the next release."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
            raise _Superseded

    @contextlib.contextmanager
    def _telling(self, wrong: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._tell(f"{wrong}: {error!r}", wrong)
            raise
        self._well(wrong)

    def _tell(self, trouble: str, about: str = VERSION) -> None:
        self._troubles[about] = trouble = redacted(trouble)
        log.error("%s", trouble)
        metrics.takeover_failures.inc()
        metrics.takeover_trouble.set(1)

    def _well(self, about: str) -> None:
        self._troubles.pop(about, None)
        metrics.takeover_trouble.set(bool(self._troubles))

    async def _make(self, name: str) -> None:
        loaded = await self._compute(self._load, self.settings, name)
        async with self._building:
            self._loaded[name] = await self._ready(loaded, self._queries)
            self._used_at[name] = self._clock()

    async def _switch(self, fallback: Ready | None = None) -> None:
        """Make `serving` what the release says with what is loaded: one assignment, seen from the next batch on."""
        release, loaded = self.release, self._loaded
        before = getattr(self, "serving", None)
        current = loaded.get(release.current) or fallback or (loaded[before.current.name] if before else None)
        assert current is not None  # start() loads one before anything else
        staged: Staged | None = release.staged
        on_trial = loaded.get(staged.version) if staged else None
        self._forget({release.current, current.name, staged.version if staged else ""})
        known = (current, on_trial)
        self.serving = Serving(
            current=current,
            canary=on_trial if staged and staged.canary > 0 else None,
            canary_partitions=canary_partitions(staged.canary, self.settings.topics.partitions) if staged else range(0),
            shadow=on_trial if staged and staged.shadow > 0 else None,
            shadow_share=staged.shadow if staged else 0.0,
            trial=trial_of(release) if on_trial is not None else "",
            others=tuple(r for r in loaded.values() if r not in known),
        )
        if before is None or before.current.name != current.name:
            log.info("encoder version %s (%s) serves from the next frame on", current.encoder.version, current.name)
        metrics.show_versions(
            (current.encoder.version, current.name), (on_trial.encoder.version, on_trial.name) if on_trial else None
        )
        async with self._switched:
            self._switched.notify_all()

    def _forget(self, wanted: set[str]) -> None:
        """Let go of versions nobody wants and no frame asked for lately."""
        for name in list(self._loaded):
            if name not in wanted and self._clock() - self._used_at[name] >= self._keep_s:
                del self._loaded[name]
                self._label_vectors.pop(name, None)

    async def _compute(self, work: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)
