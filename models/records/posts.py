"""One message from a platform, what is folded into it, and that it is gone."""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

__all__ = ["Deletion", "Geo", "PUT_BY_REASONS", "Post", "PutBy", "PutByReason", "Repeat", "account_of"]

PutByReason = Literal["order", "told"]  # others come before it; what it says was read several times already
PUT_BY_REASONS: tuple[PutByReason, ...] = get_args(PutByReason)


class Geo(Struct, frozen=True):
    """A WGS 84 point, degrees."""

    lat: float
    lon: float


class PutBy(Struct, frozen=True):
    """That a post was only skimmed when it came, and waits (or has waited) to be read in context.

    `score`: the skim's, of its best query; higher is closer.
    """

    at: float  # epoch seconds
    turn: int  # 1 = soon, 2 = later, 3 = last
    reason: PutByReason
    score: float


class Post(Struct, frozen=True, omit_defaults=True):
    """One accepted message. `text` is repaired and masked (phone numbers, e-mails) but not yet cleaned
    for an encoder.
    """

    id: str
    text: str
    created_at: float  # epoch seconds, UTC; seen_at where the platform gave none
    seen_at: float  # epoch seconds, UTC, when it entered posts.raw
    lang: str = "und"
    source: str = "unknown"
    author: str | None = None  # a keyed hash, never the handle
    url: str | None = None
    reply_to: str | None = None
    repost_of: str | None = None
    geo: Geo | None = None
    kind: Literal["create", "update"] = "create"
    fingerprint: str = ""  # keyed hash of the text as sent (before masking): equal means an exact repeat
    put_by: PutBy | None = None  # where the reader was behind when it came


class Repeat(Struct, frozen=True):
    """A post folded into one seen before: a repost or an exact duplicate. Counted with `of`, not matched again."""

    id: str
    of: str
    seen_at: float


class Deletion(Struct, frozen=True):
    """The platform says the post is gone; its alerts are withdrawn."""

    id: str
    seen_at: float


def account_of(post_id: str) -> str:
    """The account a post id belongs to: what stands before its first slash (`bsky:did:plc:x/3k` → `bsky:did:plc:x`).

    An account's own id holds no slash. Sources tell of a closed account by a deletion of it; it takes all its posts
    along.
    """
    return post_id.partition("/")[0] or post_id
