"""Folding in Redis (streams/pipeline/ports.py says what it promises)."""

from __future__ import annotations

from collections.abc import Sequence

from redis.asyncio import Redis

from models.posts import words_of
from models.pseudonyms import keyed_hash
from models.records import Post
from streams.pipeline.ports import KEPT_REPEATS, Claim, Gone, Verdict
from streams.view.scripts import packed, script

__all__ = ["RedisFolder"]


class RedisFolder:
    """For workers: shared by all of them, forgets after `fold_s` seconds. kept: repeats of one post."""

    def __init__(self, redis: Redis, prefix: str, fold_s: float, kept: int = KEPT_REPEATS) -> None:
        self._redis, self._prefix, self._fold_s, self._kept = redis, f"{prefix}fold:", max(1, int(fold_s)), kept
        self._claim = redis.register_script(script("claim"))

    async def claim(self, claims: Sequence[Claim | Gone]) -> list[Verdict]:
        if not claims:
            return []
        told = packed([_told(claim) for claim in claims])
        posts = (claim.post if isinstance(claim, Claim) else b"" for claim in claims)
        answers = await self._claim(args=[self._prefix, self._fold_s, self._kept, told, *posts])
        return [_verdict(answer[0].decode(), answer[1:]) for answer in answers]

    async def still_said(self, posts: Sequence[Post], author_key: bytes) -> list[Post]:
        """Without those that were edited since, as far as it is remembered."""
        marks = await self._redis.mget([f"{self._prefix}id:{post.id}" for post in posts]) if posts else []
        said = [mark and mark.decode().rpartition("\x1f")[2] for mark in marks]
        return [p for p, words in zip(posts, said, strict=True) if not words or words in _words(p, author_key)]


def _words(post: Post, author_key: bytes) -> tuple[str, str]:
    """Its words, and as they were while a post that names no author had what stands before its id's slash for one: what
    waits while workers are brought up to date would be taken for edited, and be lost.
    """
    before = (post.source, post.id.partition("/")[0], "", post.fingerprint)
    return words_of(post, author_key), keyed_hash("\x1f".join(before), author_key, b"words")


def _told(claim: Claim | Gone) -> tuple[str, ...]:
    if isinstance(claim, Gone):
        return "d", claim.post_id, claim.place, "", "", ""
    kind = "u" if claim.edit else ""
    return kind, claim.post_id, claim.place, claim.fingerprint, claim.repost_of or "", claim.says


def _verdict(told: str, raised: list[bytes]) -> Verdict:
    return Verdict(told[1:] if told[0] == "r" else None, told == "e", tuple(raised))
