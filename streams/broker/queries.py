"""The `queries` topic: standing queries, changed live by `crisis query add | remove` and followed by every worker.

The compacted topic is the one truth: key = query id, value = Query JSON, an empty value removes it. `crisis topics`
fills an empty one with the bundled packs.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import cache
from typing import NamedTuple

import msgspec

from models.errors import QueryError
from models.moments import rfc3339
from models.queries import Query, check_query, load_queries, without_void
from models.undecodable import UNDECODABLE
from streams.broker.compacted import follow_table, open_compacted, read_table
from streams.config import Settings

__all__ = ["Changed", "bundled", "change_query", "follow_queries", "not_ended", "publish_queries", "read_queries"]

log = logging.getLogger(__name__)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Query).decode


def decode_query(key: bytes | None, value: bytes | None) -> tuple[str, Query | None]:
    """(query id, query or None for a removal) of one record. Raises QueryError for anything else."""
    if key is None:
        raise QueryError("a record of the queries topic has no key: the key is the query id")
    if not value:
        return key.decode("utf-8", "replace"), None
    try:
        return key.decode("utf-8", "replace"), check_query(without_void(_decode(value)))
    except UNDECODABLE as error:
        raise QueryError(f"query record {key!r}: {error}") from error


def apply_records(queries: dict[str, Query], records: Iterable) -> list[str]:
    """Apply records of the topic in place; returns the ids that changed. A bad record is logged and changes nothing."""
    changed = []
    for record in records:
        try:
            query_id, query = decode_query(record.key, record.value)
        except QueryError as error:
            log.error("ignored: %s", error)
            continue
        if query is None:
            queries.pop(query_id, None)
        else:
            queries[query_id] = query
        changed.append(query_id)
    return changed


def publish_queries(settings: Settings, changes: dict[str, Query | None]) -> None:
    """Write queries (None removes) and wait until the broker has them.

    Raises ServiceError if the broker cannot be reached or has no such topic.
    """
    with open_compacted(settings, "queries") as topic:
        topic.write({query_id.encode(): _encode(query) if query else None for query_id, query in changes.items()})


class Changed(NamedTuple):
    """What became of one query."""

    before: Query | None
    after: Query
    meanwhile: bool  # somebody else changed it at the same time


def change_query(settings: Settings, query_id: str, change: Callable[[Mapping[str, Query]], Query]) -> Changed:
    """Write what `change` makes of the query among those that stand there.

    Of two people who change one at the same time the later would write over what the earlier wrote, and both be told
    that theirs is live. So what others wrote before us is read after the writing, changed in turn, and written again.
    (Of three within the same moment one may still be lost: what a stale writer wrote over it is not undone.)

    Raises what `change` does, and nothing is changed then; ServiceError as `publish_queries`.
    """
    known: dict[str, Query] = {}
    ours: set[int] = set()  # offsets
    with open_compacted(settings, "queries") as topic:
        apply_records(known, topic.read())
        while True:
            before = known.get(query_id)
            try:
                after = change(known)
            except QueryError:
                if ours:  # we have written over what stands there for all others
                    topic.write({query_id.encode(): _encode(before) if before else None})
                raise
            (offset,) = topic.write({query_id.encode(): _encode(after)})
            others = [record for record in topic.read(offset) if record.offset not in ours]
            if query_id not in apply_records(known, others):
                return Changed(before, after, bool(ours))
            ours.add(offset)


@cache
def bundled() -> Mapping[str, Query]:
    """The queries that come with this version, by id."""
    return {query.id: query for query in load_queries()}


def not_ended(query: Query, now: float) -> Query:
    """The query, or raise QueryError for one that would read nothing."""
    if query.expires_at <= now:
        raise QueryError(
            f"query {query.id}: expires {query.expires}: that is past, and it would read nothing; "
            f"it is {rfc3339(now, 'seconds')} now"
        )
    return query


def read_queries(settings: Settings) -> dict[str, Query]:
    """The active queries, read once from the topic. Raises ServiceError if it cannot be reached or is not there."""
    return read_table(settings, "queries", apply_records)


def follow_queries(
    settings: Settings, changed: Callable[[dict[str, Query]], Awaitable[None]]
) -> AbstractAsyncContextManager[dict[str, Query]]:
    """Read the topic to its end, yield the queries, and keep calling `changed` with all of them as they change."""
    return follow_table(settings, "queries", apply_records, changed)
