"""The posts of one author on the broker: read from posts.raw, the only place that still holds who wrote what."""

from __future__ import annotations

import contextlib

import msgspec
from msgspec import Struct

from models.posts import split_lines
from models.pseudonyms import OFFLINE, Pseudonyms
from models.records import account_of
from streams.broker.reading import read_values
from streams.config import Settings

__all__ = ["posts_of"]


class _Written(Struct):
    id: str | int | None = None
    author: str | None = None


_decode = msgspec.json.Decoder(_Written).decode


def same_name(one: str, other: str) -> bool:
    """Handles are compared as pseudonyms are made: without @, case and blanks around them."""
    return _bare(one) == _bare(other)


def _bare(handle: str) -> str:
    return handle.strip().removeprefix("@").lower()


def posts_of(settings: Settings, author: str, pseudonyms: Pseudonyms = OFFLINE) -> list[str]:
    """Ids of the posts on posts.raw whose `author`, or whose account (what stands before the first slash), is this.

    The account may be named by its pseudonym, as pages show it.
    Reads the whole topic: minutes where it holds millions. Raises ServiceError if the broker or the topic is not there,
    or goes.
    """
    found: dict[str, None] = {}
    for value in read_values(settings, "posts.raw"):  # what transactions took back too: it does no harm here
        for line in split_lines(value):
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                post = _decode(line)
                post_id = "" if post.id is None else str(post.id).strip()
                accounts = (account := account_of(post_id), pseudonyms.id(account))
                if post_id and (author in accounts or (post.author and same_name(post.author, author))):
                    found[post_id] = None
    return list(found)
