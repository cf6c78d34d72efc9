"""The `queries` topic: standing queries, changed live by `crisis query add | remove` and followed by every worker.

The compacted topic is the one truth: key = query id, value = Query JSON, an empty value removes it. `crisis topics`
fills an empty one with the bundled packs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as SyncTopicPartition

from models.errors import QueryError
from models.queries import Query, check_query
from streams.config import Settings
from streams.kafka import client_options, reaching, read_to_end, require_topics

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
        return key.decode("utf-8", "replace"), check_query(_decode(value))
    except msgspec.MsgspecError as error:
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
    require_topics(settings, "queries")
    options = client_options(settings.broker) | {"allow_auto_create_topics": False}
    with reaching(settings), contextlib.closing(KafkaProducer(**options, acks="all")) as producer:
        sent = [
            producer.send(settings.topics.name("queries"), key=qid.encode(), value=_encode(q) if q else None)
            for qid, q in changes.items()
        ]
        for future in sent:
            future.get(timeout=30)


def read_queries(settings: Settings) -> dict[str, Query]:
    """The active queries, read once from the topic. Raises ServiceError if it cannot be reached or is not there."""
    require_topics(settings, "queries")
    part = SyncTopicPartition(settings.topics.name("queries"), 0)
    queries: dict[str, Query] = {}
    options = client_options(settings.broker) | {"allow_auto_create_topics": False}
    with reaching(settings), contextlib.closing(KafkaConsumer(**options, enable_auto_commit=False)) as consumer:
        consumer.assign([part])
        end = consumer.end_offsets([part])[part]
        consumer.seek_to_beginning(part)
        while consumer.position(part) < end:
            for records in consumer.poll(timeout_ms=500).values():
                apply_records(queries, records)
    return queries


@contextlib.asynccontextmanager
async def follow_queries(
    settings: Settings, changed: Callable[[dict[str, Query]], Awaitable[None]]
) -> AsyncIterator[dict[str, Query]]:
    """Read the topic to its end, yield the queries, and keep calling `changed` with all of them as they change.

    The topic must be there: aiokafka, asking for one that is not, makes the broker make it.
    """
    consumer = AIOKafkaConsumer(**client_options(settings.broker), group_id=None, enable_auto_commit=False)
    await consumer.start()
    consumer.assign([TopicPartition(settings.topics.name("queries"), 0)])
    queries: dict[str, Query] = {}
    apply_records(queries, await read_to_end(consumer))

    async def follow() -> None:
        while True:
            batches = await consumer.getmany(timeout_ms=1000)
            if any(apply_records(queries, records) for records in batches.values()):
                await changed(dict(queries))

    task = asyncio.create_task(follow(), name="follow-queries")
    try:
        yield dict(queries)
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await consumer.stop()
