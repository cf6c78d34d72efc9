"""Queries from a file: a pack, or what `crisis query show` or `crisis query list --json` wrote."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from models.errors import QueryError
from models.queries import Query, check_query, read_pack, read_yaml, without_void
from models.undecodable import UNDECODABLE

__all__ = ["read_queries_of"]

_json = msgspec.json.Decoder(Query).decode
_yaml = partial(read_yaml, type=Query)


def read_queries_of(raw: bytes, name: str) -> dict[str, Query]:
    """By id. Raises QueryError naming the file, and the line, where something is no query or one is there twice."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise QueryError(f"{name}: {error}") from error
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if lines and lines[0][1].startswith('{"'):
        found = [_checked(_json, line, f"{name}, line {number}") for number, line in lines]
    elif sum(line.startswith("id:") for _, line in lines) > 1:  # YAML takes the last of two keys, silently
        raise QueryError(f"{name} holds several queries: give a file for each, or what `crisis query list --json` says")
    elif any(line.startswith("id:") for _, line in lines):
        found = [_checked(_yaml, text, name)]
    else:
        found = read_pack(text, name)
    if twice := sorted({q.id for q in found if sum(other.id == q.id for other in found) > 1}):
        raise QueryError(f"{name}: {', '.join(twice)}: there twice")
    if not found:
        raise QueryError(f"{name}: no query in it")
    return {q.id: q for q in found}


def _checked(decode: Callable[[str], Query], text: str, place: str) -> Query:
    """As the broker's queries are read: a copy may be of an earlier version, which took more."""
    try:
        return check_query(without_void(decode(text)))
    except (*UNDECODABLE, QueryError) as error:
        raise QueryError(f"{place}: {error}") from error
