"""What the stages ask of the world: who folds into whom, and which alerts were given. Redis answers, or memory in a
replay.

Folding. A claim is "I am the first of mine with this text": only an author's own repeats and reposts fold, so nobody
can take another's words, be first with them and delete or edit them away (models/posts.py, `words_of`). An edited post
gives its old text up and is never folded itself; a deleted post gives up its text, a deleted account those of all its
posts. So no post is folded into one that does not say it.

When a post is edited or deleted, what was folded into it lives on: the first of its repeats takes its place as a post
of its own, and the others repeat that one. So each repeat is kept, as long as it would fold. KEPT_REPEATS by others are
kept of one post; the next is a post of its own, and those that follow repeat that one: no number of accounts that
repeat a post and then take it back leaves somebody's repeat without one that speaks for it. Only what an account
repeats of its own is bounded otherwise: beyond KEPT_REPEATS it is folded and not kept, and over when the account has
taken all of those back. An account that is closed takes its own repeats along; what others repeated lives on.

`place` (partition:offset:line) tells a redelivered frame from a repeat, so processing a frame twice gives the same
answer twice: what took another's place there does so again, unless it is gone or says something else by now. One case
differs: where the original was edited or deleted in between, what was a repeat the first time may be a post of its own
the second time. A need is then told twice rather than lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from models.records import Alert

__all__ = ["Alerts", "Claim", "Gone", "KEPT_REPEATS", "Verdict"]

KEPT_REPEATS = 32  # by others, of one post: of a thousand reposts 30 are read by themselves. Each costs Redis what its
# text and 650 bytes do (an ordinary post 480); to put 32 under another one, when theirs is taken back, 0.3 ms.


class Claim(Struct, frozen=True):
    """What a post says it is the first of. `place` tells a redelivery of itself from a repeat.

    `fingerprint`: whose words, and which (`models.posts.words_of`). `says`: which, whoever says them: one repost folds
    into another only where both say the same. `post`: itself, to be given back should it take another's place.
    """

    post_id: str
    place: str
    fingerprint: str
    repost_of: str | None
    edit: bool = False  # by its own word: it holds the text from here on, but is never folded
    post: bytes = b""
    says: str = ""


class Gone(Struct, frozen=True):
    """A post, or an account, was deleted; told at `place`."""

    post_id: str
    place: str


class Verdict(Struct, frozen=True):
    """The answer to a claim: the post it repeats, or that its id was seen before with another text (an edit).

    raised: posts that were repeats and take the place of what is edited or deleted here.
    """

    repeats: str | None = None
    edits: bool = False
    raised: tuple[bytes, ...] = ()


class Folder(Protocol):
    """Answers claims, in order. Both implementations give the same answers (held by a test)."""

    async def claim(self, claims: Sequence[Claim | Gone]) -> list[Verdict]:
        """One verdict each. What follows a deletion finds the post forgotten."""
        ...


class Alerts(Protocol):
    """What the match and cluster stages need to know of alerts already given (Redis, or a dict in replay)."""

    async def alerts_of(self, post_ids: Iterable[str]) -> list[Alert]:
        """The known alerts of these posts, or of all posts of these accounts, each once, in the order of their ids."""
        ...

    async def put_alerts(self, alerts: Sequence[Alert]) -> list[Alert]:
        """Keep them; returns those that were new or newer than what was known."""
        ...

    async def mark_gone(self, post_ids: Sequence[str]) -> None:
        """Remember that these posts were deleted, should they still be under way on another partition."""
        ...

    async def gone(self, post_ids: Iterable[str]) -> set[str]:
        """Those of the posts that were deleted."""
        ...
