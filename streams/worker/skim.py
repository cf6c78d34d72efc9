"""Skims frames while the reader is behind: what is read in context now, what waits (streams/pipeline/triage.py).

The skim is the bundled static encoder's, some 80 µs a post against 3,000: how near a post comes to any query. It is
loaded, in a thread of its own, when the reader falls behind for the first time; until then all is read as it comes.
Where the encoder that serves is static itself nothing is skimmed: it would not be faster than reading.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from models.encoders.protocol import Encoder
from models.encoders.ready import Loaded, Ready, static
from models.encoders.static import StaticEncoder
from models.queries import Query
from models.records import Frame, Post, PutBy, account_of
from streams.config import Settings
from streams.pipeline.triage import Skimmed, Triage
from streams.releases.versions import make_ready

__all__ = ["Pace", "Skim"]

log = logging.getLogger(__name__)

LEAST_POSTS = 64  # a lag of seconds with less than this waiting is a pause, or a clock that is wrong
FEW_POSTS = 100  # fewer are skimmed together with the next frame: a share of one post is none
QUIET_S = 1.0


class Pace:
    """How far the reader of this worker is behind the posts as they come. now: epoch seconds, as posts have them."""

    def __init__(self, within_s: float) -> None:
        self.within_s = within_s
        self.posts = 0.0  # about so many wait in posts.raw and posts.clean
        self._lag_s, self._at = 0.0, 0.0
        self._posts_each = {"posts.raw": 1.0, "posts.clean": 1.0}  # of a record, the mean of the last ones

    def took(self, topic: str, records: int, posts: int) -> None:
        """So many were read from the topic: frames that share records make few records of many posts."""
        if records:
            self._posts_each[topic] += (posts / records - self._posts_each[topic]) / 4

    def told(self, lag: Mapping[str, int]) -> None:
        """Records not yet acknowledged, by topic."""
        self.posts = sum(each * lag.get(topic, 0) for topic, each in self._posts_each.items())

    def begin(self, frames: Sequence[Frame], now: float) -> float:
        """The lag in seconds of frames that are about to be read; 0 where hardly any other waits."""
        oldest = min((post.seen_at for frame in frames for post in frame.posts), default=now)
        self._lag_s = max(0.0, now - oldest) if self.posts >= LEAST_POSTS else 0.0
        self._at = now
        return self._lag_s

    def room(self, now: float) -> bool:
        """May posts that were put by be read? Not beside new ones that wait themselves."""
        quiet = abs(now - self._at) > QUIET_S and self.posts < LEAST_POSTS
        return quiet or self._lag_s <= self.within_s / 2


class Skim:
    """One per worker, used on its event loop; `divide` in the encoder's thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._triage = settings, Triage()
        self._loaded: Loaded | None = None
        self._ready: Ready | None = None
        self._queries: Sequence[Query] | None = None  # those it was asked to be ready for
        self._making: asyncio.Task[None] | None = None

    def of(self, encoder: Encoder, queries: Sequence[Query]) -> Ready | None:
        """What to skim with beside this encoder; None where that would save nothing, and while it is being loaded."""
        if isinstance(encoder, StaticEncoder):
            return None
        if self._queries != queries and (self._making is None or self._making.done()):
            self._queries = queries
            self._making = asyncio.create_task(self._make(queries), name="skim")
        return self._ready

    async def _make(self, queries: Sequence[Query]) -> None:
        started = time.monotonic()
        try:
            self._loaded = self._loaded or await asyncio.to_thread(static)
            self._ready = await asyncio.to_thread(make_ready, self._settings, self._loaded, queries)
        except Exception:  # whatever it is: until it can be made all is read in context, and somebody should know why
            self._queries = None  # asked again, it is tried again
            log.exception("the reader is behind, and nothing can be skimmed")
            return
        log.warning("the reader is behind: skimming from now on (ready after %.1f s)", time.monotonic() - started)

    def divide(
        self, ready: Ready, frames: Sequence[Frame], share: float, now: float
    ) -> tuple[list[Frame], list[list[Post]]]:
        """Frames with the posts to read now, and of each those that were put by, with their marks. Blocking."""
        kept: list[Frame] = []
        waiting: list[list[Post]] = []
        few: list[Frame] = []
        for n, frame in enumerate(frames, 1):
            few.append(frame)
            if sum(len(f.posts) for f in few) >= FEW_POSTS or n == len(frames):
                for frame_kept, frame_waiting in self._divided(ready, few, share, now):
                    kept.append(frame_kept)
                    waiting.append(frame_waiting)
                few = []
        return kept, waiting

    def _divided(
        self, ready: Ready, frames: Sequence[Frame], share: float, now: float
    ) -> list[tuple[Frame, list[Post]]]:
        posts = [post for frame in frames for post in frame.posts]
        vectors = ready.encoder.encode([post.text for post in posts])
        scores = ready.matcher.scores(vectors).max(axis=1, initial=-1.0)
        skimmed = [
            Skimmed((p.lang, p.source), round(float(s), 3), p.seen_at, p.author or account_of(p.id))
            for p, s in zip(posts, scores, strict=True)
        ]
        places = self._triage.divide(skimmed, np.asarray(vectors), share)
        divided, at = [], 0
        for frame in frames:
            read, left = [], []
            for post in frame.posts:
                place = places[at]
                if place.turn == 0:
                    read.append(post)
                else:
                    mark = PutBy(now, place.turn, place.reason, skimmed[at].score)
                    left.append(msgspec.structs.replace(post, put_by=mark))
                at += 1
            divided.append((msgspec.structs.replace(frame, posts=read), left))
        return divided
