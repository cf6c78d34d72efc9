"""Which reject is of a post: by what is kept of its line, else by the line itself."""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections.abc import Iterator

import msgspec

from models.pseudonyms import Pseudonyms
from models.records import Reject
from models.undecodable import UNDECODABLE
from streams.broker.rejects import DeadLetter, lines_of, read_rejects
from streams.broker.topics import AGENTS
from streams.config import Settings

__all__ = ["find_refused"]

LOOKED_UP = 200  # records of posts.raw that are read again, the newest: a few milliseconds each

_between = re.compile(r"[\s:,]*").match
_value = json.JSONDecoder().raw_decode


def find_refused(settings: Settings, pseudonyms: Pseudonyms, post_id: str) -> DeadLetter | None:
    """The reject of a post, or None. post_id: as it goes by here. Raises ServiceError without a broker."""
    unread: dict[int, DeadLetter] = {}
    for letter in read_rejects(settings):
        reject = letter.reject
        found = _id(reject.raw, packed=reject.stage == "embed")
        if found is not None and pseudonyms.id(str(found)) == post_id:
            return letter
        if reject.stage == AGENTS[0] and (found is None or reject.also):
            unread[id(reject)] = letter
    for reject, line in lines_of(settings, _newest(unread)):
        if line is not None and (found := _id(line)) is not None and pseudonyms.id(str(found)) == post_id:
            return unread[id(reject)]
    return None


def _newest(letters: dict[int, DeadLetter]) -> Iterator[Reject]:
    newest = sorted(letters.values(), key=lambda letter: letter.reject.seen_at)[-LOOKED_UP:]
    return (letter.reject for letter in newest)


def _id(raw: bytes, packed: bool = False) -> object:
    """The id of a post, of its line, or of the beginning of one; None where that does not tell it."""
    with contextlib.suppress(ValueError, AttributeError, *UNDECODABLE):
        found = msgspec.msgpack.decode(raw) if packed else json.loads(raw)
        if "oversize" in found:  # streams/ingest/lines.py keeps the beginning of a line that no broker would take
            return _first_id(base64.b64decode(found["head"]).decode("utf-8", "replace"))
        return found.get("id")
    return None if packed else _first_id(raw.decode("utf-8", "replace"))


def _first_id(line: str) -> object:
    """The id, if it stands before the line is cut, or is no JSON any more."""
    at = line.find("{") + 1
    with contextlib.suppress(ValueError, RecursionError):
        while at:
            name, at = _value(line, _end(line, at))
            value, at = _value(line, _end(line, at))
            if name == "id":
                return value
    return None


def _end(line: str, at: int) -> int:
    """Where the next name or value begins."""
    found = _between(line, at)
    assert found is not None  # it may be empty
    return found.end()
