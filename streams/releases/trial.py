"""A version on trial: what it would say (shadow), what it says (canary), counted beside the current one, and its end.

Counters lie in one Redis hash per trial, named by the release's revision, so all workers add to the same ones:

    current:… staged:…   frames served by either version; canaries are judged by these two
    shadow:… beside:…    frames scored unseen by the staged version, and the current version on exactly those
    <arm>:posts, :errors, :encode_us    and by language <arm>:posts:<lang>, <arm>:alerts:<lang> (posts that alerted)
    shadow:gained, shadow:lost, shadow:both    alerts only the one, only the other, or both would give
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from typing import TypeVar

import numpy as np
from kafka.errors import KafkaError
from redis.exceptions import RedisError

from models.bars import Bars
from models.encoders.ready import Ready
from models.errors import CrisisError, EncoderError
from models.records import EmbeddedFrame, Frame, MatchedFrame, Origin
from streams import metrics
from streams.config import Settings
from streams.pipeline import stages
from streams.pipeline.frames import unpack_vectors
from streams.releases.bands import judge_all
from streams.releases.release import trial_of
from streams.releases.serving import Serving, restate
from streams.releases.takeover import Takeover
from streams.releases.topic import change_release
from streams.view.live import LiveView

__all__ = ["Trial", "embed_canary", "timed"]

log = logging.getLogger(__name__)
T = TypeVar("T")

KEPT_S = 14 * 86_400  # a trial's counters are looked at after it ended, too
LOOK_S = 1.0


def alert_posts(frame: MatchedFrame) -> set[str]:
    """Posts of the frame with at least one alert (not a mere suggestion)."""
    return {m.post_id for m in frame.matches if m.level == "alert"}


def alert_pairs(frame: MatchedFrame) -> set[tuple[str, str]]:
    """(post, query) of the frame's alerts."""
    return {(m.post_id, m.query_id) for m in frame.matches if m.level == "alert"}


def by_language(arm: str, frame: MatchedFrame) -> Counter[str]:
    """Posts, and posts that alerted, by language."""
    alerted = alert_posts(frame)
    counts = Counter(f"{arm}:posts:{p.lang}" for p in frame.posts)
    counts.update(f"{arm}:alerts:{p.lang}" for p in frame.posts if p.id in alerted)
    return counts


def timed(work: Callable[..., T], *args: object) -> tuple[T, float]:
    """What the work returned, and the seconds it took. To be called in the thread: waiting for it is no version's
    fault.
    """
    started = time.perf_counter()
    return work(*args), time.perf_counter() - started


def embed_canary(frames: list[Frame], staged: Ready, current: Ready) -> tuple[list[EmbeddedFrame], list[int]]:
    """Embed with the version on trial; a frame it fails on is embedded by the current one. Returns frames, errors of
    each.

    A version on trial costs no post: whatever it raises, and vectors that are not finite, count as errors.
    """
    embedded, errors = [], []
    for frame in frames:
        try:
            made = stages.embed(frame, staged.encoder)
            if not np.isfinite(unpack_vectors(made)).all():
                raise EncoderError(f"{staged.name} gave vectors that are not finite")
            errors.append(0)
        except Exception:  # the rim of a version nobody vouches for yet
            log.exception("version %s failed on a frame of %d posts", staged.name, len(frame.posts))
            made = stages.embed(frame, current.encoder)
            errors.append(len(frame.posts))
        embedded.append(made)
    return embedded, errors


def score_unseen(frame: MatchedFrame, ready: Ready, bars: Bars | None = None) -> Counter[str]:
    """The counters of one frame scored by the version in the shadow, and by the current one beside it. Blocking.

    bars: those of this moment; the shadow moves none.
    """
    counts = by_language("beside", frame)
    counts["shadow:posts"] = len(frame.posts)
    try:
        started = time.perf_counter()
        fresh = restate(frame, ready.encoder)
        counts["shadow:encode_us"] = round((time.perf_counter() - started) * 1e6)
        seen = stages.match(fresh, ready.matcher, bars, learn=False)
    except Exception:  # the rim: nothing a version in the shadow does may reach the stream
        log.exception("version %s failed on a frame of %d posts in the shadow", ready.name, len(frame.posts))
        counts["shadow:errors"] = len(frame.posts)
        return counts
    counts.update(by_language("shadow", seen))
    mine, theirs = alert_pairs(seen), alert_pairs(frame)
    counts.update(
        {"shadow:gained": len(mine - theirs), "shadow:lost": len(theirs - mine), "shadow:both": len(mine & theirs)}
    )
    return counts


def in_share(origin: Origin, share: float) -> bool:
    """Is this frame in the share? By a hash of its place, so every worker and every redelivery agrees."""
    digest = blake2b(f"{origin.partition}:{origin.offset}".encode(), digest_size=4).digest()
    return int.from_bytes(digest) < share * 2**32


class Trial:
    """Counts what the versions do, scores the shadow's share, and ends a canary that leaves its band."""

    def __init__(
        self,
        settings: Settings,
        view: LiveView,
        takeover: Takeover,
        bars: Bars | None = None,
        most_waiting: int = 32,
    ) -> None:
        self.settings, self.view, self.takeover, self._bars = settings, view, takeover, bars
        self._waiting: asyncio.Queue[tuple[MatchedFrame, Ready, str]] = asyncio.Queue(most_waiting)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="shadow")
        self._tasks: list[asyncio.Task] = []

    async def start(self) -> None:
        """Begin scoring and watching in the background."""
        self._tasks = [asyncio.create_task(w(), name=w.__name__) for w in (self._score, self._watch)]

    async def stop(self) -> None:
        """End both; frames still waiting in the shadow are dropped."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def embedded(
        self, serving: Serving, frame: EmbeddedFrame, ready: Ready, errors: int, encode_s: float
    ) -> None:
        """Count a frame that was embedded, once however often it is delivered."""
        if serving.trial and frame.posts:
            arm = "staged" if ready is serving.canary else "current"
            counts = Counter({f"{arm}:posts": len(frame.posts), f"{arm}:errors": errors})
            counts[f"{arm}:encode_us"] = round(encode_s * 1e6)
            await self._count("trial-embed", serving.trial, frame.origin, counts)

    async def matched(self, serving: Serving, frame: MatchedFrame) -> None:
        """Count a frame that was matched, and put it in the shadow's queue if it is of its share."""
        ready = serving.for_partition(frame.origin.partition)
        if not serving.trial or not frame.posts or frame.encoder_version != ready.encoder.version:
            return  # begun by another version before the trial, or the canary failed on it: says nothing of this one
        staged = ready is serving.canary
        await self._count(
            "trial-match", serving.trial, frame.origin, by_language("staged" if staged else "current", frame)
        )
        if serving.shadow is not None and not staged and in_share(frame.origin, serving.shadow_share):
            try:
                self._waiting.put_nowait((frame, serving.shadow, serving.trial))
            except asyncio.QueueFull:  # the shadow may be slow; the stream does not wait for it
                metrics.shadow_dropped.inc(len(frame.posts))

    async def _score(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            frame, ready, trial = await self._waiting.get()
            counts = await loop.run_in_executor(self._thread, score_unseen, frame, ready, self._bars)
            try:
                await self._count("trial-shadow", trial, frame.origin, counts)
            except (RedisError, OSError) as error:  # figures for people: the stream does not depend on them
                log.error("figures of the shadow are lost: %s", error)

    async def _watch(self) -> None:
        """Look at the counters every second; all workers do, and the release ends a canary once."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self._look()
            except (RedisError, KafkaError, CrisisError, OSError) as error:
                log.error("the trial cannot be watched: %s", error)

    async def _look(self) -> None:
        release, trial = self.takeover.release, self.takeover.serving.trial
        staged = release.staged
        if staged is None or trial != trial_of(release):
            return
        await self.view.redis.expire(self.view.key(trial), KEPT_S)
        if staged.canary == 0:
            return
        reason = judge_all(await self.view.counts(trial), staged.bands)
        if reason is not None:
            log.error("canary %s is rolled back: %s", staged.version, reason)
            metrics.canary_rollbacks.inc()
            await asyncio.to_thread(change_release, self.settings, lambda r: r.refuse(staged, reason, time.time()))

    async def _count(self, stage: str, trial: str, origin: Origin, counts: Counter[str]) -> None:
        if not await self.view.count(stage, origin, {trial: counts}):
            return
        langs = self.takeover.languages
        for name, n in counts.items():
            arm, what, *lang = name.split(":", 2)
            if lang:
                metric = metrics.trial_posts if what == "posts" else metrics.trial_alerts
                metric.labels(arm, lang[0] if lang[0] in langs else "other").inc(n)
            elif what == "errors":
                metrics.trial_errors.labels(arm).inc(n)
            elif what == "encode_us":
                metrics.trial_encode_seconds.labels(arm).inc(n / 1e6)
