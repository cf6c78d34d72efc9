"""The embed agent: clean frames in, frames with vectors out. Behind by more than a limit, a share of the posts is read
in context and the others wait (streams/worker/skim.py)."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

import msgspec

from models.cutting import end_of
from models.encoders.protocol import Encoder
from models.encoders.ready import Ready
from models.errors import CrisisError
from models.records import EmbeddedFrame, Frame, Origin, Post
from streams import metrics
from streams.pipeline import stages
from streams.pipeline.triage import share_at
from streams.releases.serving import Serving
from streams.releases.trial import embed_canary, timed
from streams.worker.stage import Events, Handler

__all__ = ["Embed", "embed_frames", "once_each"]

log = logging.getLogger(__name__)


class Embed(Handler):
    """posts.clean → posts.embedded: one encoder call for all frames of the batch and version."""

    name, gives = "embed", "posts.embedded"

    async def __call__(self, events: Events) -> Events:
        frames = once_each(await self._decode(events))
        self.runtime.pace.took("posts.clean", len(events), sum(len(frame.posts) for frame in frames))
        if any(frame.origin.turn for frame in frames):
            frames = await self._read_again(frames)
        await self._read(*await self._divide(frames))
        return events

    async def _read_again(self, frames: Sequence[Frame]) -> list[Frame]:
        """The frames without what was deleted or edited since it was refused. A post of theirs has an outcome already,
        that it was refused: it counts as read once more, and has another.
        """
        sent_again = [frame for frame in frames if frame.origin.turn]
        said = dict(zip(map(id, sent_again), await self._still_said(sent_again), strict=True))
        told = []
        for frame in sent_again:
            counts = {"read": len(frame.posts), "no_match": len(frame.posts) - len(said[id(frame)].posts)}
            told.append((frame.origin, {"counts": counts}))
        await self.view.count_all("read-again", told)
        return [said.get(id(frame), frame) for frame in frames]

    async def _still_said(self, frames: Sequence[Frame]) -> list[Frame]:
        """The frames without posts that were deleted or edited since."""
        posts = [post for frame in frames for post in frame.posts]
        gone = await self.view.gone([post.id for post in posts])
        said = await self.runtime.folder.still_said(posts, self.runtime.pseudonyms.key)
        still = {id(post) for post in said if post.id not in gone}  # a post may be there twice, with two texts
        kept = [[post for post in frame.posts if id(post) in still] for frame in frames]
        return [
            msgspec.structs.replace(frame, posts=left, elsewhere=frame.elsewhere + len(frame.posts) - len(left))
            for frame, left in zip(frames, kept, strict=True)
        ]

    async def _divide(self, frames: list[Frame]) -> tuple[list[Frame], dict[Origin, list[Post]]]:
        """The frames with what is read of them now, and by their origins what waits."""
        now, serving = time.time(), self.runtime.serving
        as_they_come = [frame for frame in frames if not frame.origin.turn]
        share = share_at(self.runtime.pace.begin(as_they_come, now), self.runtime.pace.within_s)
        skim = self.runtime.skim.of(serving.current.encoder, list(self.runtime.queries.values())) if share < 1 else None
        metrics.context_share.set(1.0 if skim is None else share)
        if skim is None:
            return frames, {}
        kept, waiting = await self.runtime.compute("encode", self.runtime.skim.divide, skim, frames, share, now)
        return kept, {frame.origin: posts for frame, posts in zip(frames, waiting, strict=True) if posts}

    async def _read(self, frames: Sequence[Frame], waiting: Mapping[Origin, list[Post]]) -> None:
        """Embed and send, the posts that wait in the same record as those that were read."""
        serving = self.runtime.serving
        canary = [f for f in frames if serving.for_partition(f.origin.partition) is serving.canary]
        rest = [f for f in frames if serving.for_partition(f.origin.partition) is not serving.canary]
        (embedded, poison), took_s = await self.runtime.compute(
            "encode", timed, embed_frames, rest, serving.current.encoder
        )
        await self._count_trial(serving, serving.current, embedded, [0] * len(embedded), took_s)
        if serving.canary is not None and canary:
            (tried, errors), took_s = await self.runtime.compute(
                "encode", timed, embed_canary, canary, serving.canary, serving.current
            )
            await self._count_trial(serving, serving.canary, tried, errors, took_s)
            embedded += tried
        for origin, post, error in poison:
            await self._refuse(origin, "stage_error", error, msgspec.msgpack.encode(post), 0)
        await self.view.count_all("poison", [(origin, {"counts": {"rejected": 1}}) for origin, _, _ in poison])
        for frame in embedded:
            left = waiting.get(frame.origin, [])
            await self.outbox.send_frame(msgspec.structs.replace(frame, waiting=left))
        await self.outbox.delivered()
        metrics.posts.labels("embed", "embedded").inc(sum(len(f.posts) for f in embedded))

    async def _count_trial(
        self, serving: Serving, ready: Ready, frames: list[EmbeddedFrame], errors: list[int], took_s: float
    ) -> None:
        posts = sum(len(f.posts) for f in frames)
        for frame, failed in zip(frames, errors, strict=True):
            share_s = took_s * len(frame.posts) / max(posts, 1)
            await self.runtime.trial.embedded(serving, frame, ready, failed, share_s)


def once_each(frames: Sequence[Frame]) -> list[Frame]:
    """Of frames of one origin the longest, where the first of them stood: the first stage was killed between sending
    and committing. What waits of a frame is found by its origin.
    """
    longest: dict[Origin, Frame] = {}
    for frame in frames:
        known = longest.get(frame.origin)
        if known is None or end_of(frame) > end_of(known):
            longest[frame.origin] = frame
    return list(longest.values())


def embed_frames(frames: list[Frame], encoder: Encoder) -> tuple[list[EmbeddedFrame], list[tuple[Origin, Post, str]]]:
    """Embed several frames in one encoder call. A post no encoder call survives is left out and returned with its own
    origin and its error.
    """
    texts = [post.text for frame in frames for post in frame.posts]
    metrics.encode_posts.observe(len(texts))
    try:
        with metrics.encode_seconds.time():
            return stages.embed_many(frames, encoder), []
    except CrisisError:
        raise
    except Exception:  # the rim: one bad post must not stop the stream, nor take its neighbours with it
        log.exception("the encoder failed on a batch of %d posts; trying them one by one", len(texts))
    kept, poison = [], []
    for frame in frames:
        good = []
        for item, post in enumerate(frame.posts, frame.origin.item):
            try:
                encoder.encode([post.text])
                good.append(post)
            except Exception as error:
                origin = msgspec.structs.replace(frame.origin, item=item)
                poison.append((origin, post, f"{type(error).__name__}: {error}"))
        elsewhere = frame.elsewhere + len(frame.posts) - len(good)
        kept.append(stages.embed(msgspec.structs.replace(frame, posts=good, elsewhere=elsewhere), encoder))
    return kept, poison
