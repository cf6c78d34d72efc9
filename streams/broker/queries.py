"""The `queries` topic: standing queries, changed live by `crisis query add | remove` and followed by every worker.

The compacted topic is the one truth: key = query id, value = Query JSON, an empty value removes it. `crisis topics`
fills an empty one with the bundled packs.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager

import msgspec

from models.errors import QueryError
from models.queries import Query, check_query, without_void
from models.undecodable import UNDECODABLE
from streams.broker.compacted import follow_table, open_compacted, read_table
from streams.config import Settings

__all__ = ["follow_queries", "publish_queries", "read_queries"]

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


def read_queries(settings: Settings) -> dict[str, Query]:
    """The active queries, read once from the topic. Raises ServiceError if it cannot be reached or is not there."""
    return read_table(settings, "queries", apply_records)


def follow_queries(
    settings: Settings, changed: Callable[[dict[str, Query]], Awaitable[None]]
) -> AbstractAsyncContextManager[dict[str, Query]]:
    """Read the topic to its end, yield the queries, and keep calling `changed` with all of them as they change."""
    return follow_table(settings, "queries", apply_records, changed)
