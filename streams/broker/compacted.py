"""Compacted topics: read to their end, followed from there, written to. Each has one partition, so its order is one.

The topics must be there (`require_topics`): aiokafka, asking for one that is not, makes the broker make it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AsyncTopicPartition
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from streams.broker.backoff import end_task, stop_if_cancelled, until_done
from streams.broker.connect import client_options, reaching, threaded_options
from streams.broker.reading import read_to
from streams.broker.topics import require_topics
from streams.config import Settings

__all__ = ["Records", "follow_compacted", "follow_table", "open_compacted", "read_table"]

log = logging.getLogger(__name__)

AGAIN_S = 1.0
TRIES = 3  # of records that are refused; then what came after them
LONGEST_S = 30.0  # between two tries of a change that is refused; another change ends the pause
QUIET_MS = 5_000  # how long the broker keeps a question of what is new open where nothing is; news end it at once

T = TypeVar("T")
Records = Sequence[Any]  # of either client: with key, value and offset
Apply = Callable[[dict[str, T], Records], object]  # takes records in, in place; true where they changed something


class Compacted:
    """One compacted topic, open for reading and writing. Blocking; made by `open_compacted`."""

    def __init__(self, settings: Settings, topic: str) -> None:
        self._options = threaded_options(settings.broker) | {"allow_auto_create_topics": False}
        self._part = TopicPartition(settings.topics.name(topic), 0)
        self._stack = contextlib.ExitStack()

    @cached_property
    def _consumer(self) -> KafkaConsumer:
        consumer = self._stack.enter_context(
            contextlib.closing(KafkaConsumer(**self._options, enable_auto_commit=False, auto_offset_reset="earliest"))
        )
        consumer.assign([self._part])
        consumer.seek_to_beginning(self._part)
        return consumer

    @cached_property
    def _producer(self) -> KafkaProducer:
        return self._stack.enter_context(contextlib.closing(KafkaProducer(**self._options, acks="all")))

    def read(self, end: int | None = None) -> Records:
        """What was not read before, up to the offset `end`, or to where the topic ends now.

        Raises ServiceError if the broker goes.
        """
        if end is None:
            end = self._consumer.end_offsets([self._part])[self._part]
        found = [record for _, records in read_to(self._consumer, {self._part: end}) for record in records]
        self._consumer.seek(self._part, end)  # what came along from behind it is read the next time
        return found

    def write(self, changes: Mapping[bytes, bytes | None]) -> list[int]:
        """Write records (None removes a key), wait until the broker has them; returns their offsets."""
        sent = [
            self._producer.send(self._part.topic, key=key, value=value, partition=self._part.partition)
            for key, value in changes.items()
        ]
        return [future.get(timeout=30).offset for future in sent]

    def close(self) -> None:
        """Hang up."""
        self._stack.close()


@contextlib.contextmanager
def open_compacted(settings: Settings, topic: str) -> Iterator[Compacted]:
    """Read and write a compacted topic. Raises ServiceError if the broker cannot be reached or has no such topic."""
    require_topics(settings, topic)
    with reaching(settings), contextlib.closing(Compacted(settings, topic)) as opened:
        yield opened


@contextlib.asynccontextmanager
async def follow_compacted(
    settings: Settings, topic: str, changed: Callable[[Records], Awaitable[None]]
) -> AsyncIterator[Records]:
    """Read the topic to its end, yield its records, and keep calling `changed` with those that come.

    What `changed` or the broker refuses, however, is told and tried again; what follows it is heard all the same:
    nobody would miss a follower that has ended.
    """
    consumer = AIOKafkaConsumer(
        **client_options(settings.broker),
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",  # of a topic that was made anew the first word counts too
        fetch_max_wait_ms=QUIET_MS,
    )
    part = AsyncTopicPartition(settings.topics.name(topic), 0)

    async def follow() -> None:
        waiting: list[Records] = []
        tries = 0
        while True:
            try:
                waiting = waiting or list((await consumer.getmany(timeout_ms=1000)).values())
                while waiting:
                    await changed(waiting[0])
                    del waiting[0]
                    tries = 0
            except Exception as error:
                log.error("%s: a change was not taken (%r); following on", part.topic, error)
                tries += bool(waiting)
                if tries == TRIES:
                    del waiting[0]
                    tries = 0
                stop_if_cancelled()
                await asyncio.sleep(AGAIN_S)

    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(consumer.stop)
        await consumer.start()
        # before anything is fetched: the broker answers in order, and a fetch of an empty topic waits for QUIET_MS
        end = (await consumer.end_offsets([part]))[part]
        consumer.assign([part])
        known = await _read_to(end, consumer, part)
        task = asyncio.create_task(follow(), name=f"follow-{topic}")
        task.add_done_callback(_say_why)
        stack.push_async_callback(end_task, task)
        yield known


def read_table(settings: Settings, topic: str, apply: Apply[T]) -> dict[str, T]:
    """What a topic says, read once. Raises ServiceError if it cannot be reached or is not there."""
    table: dict[str, T] = {}
    with open_compacted(settings, topic) as opened:
        apply(table, opened.read())
    return table


@contextlib.asynccontextmanager
async def follow_table(
    settings: Settings, topic: str, apply: Apply[T], changed: Callable[[dict[str, T]], Awaitable[None]]
) -> AsyncIterator[dict[str, T]]:
    """Read the topic to its end, yield what it says, and keep calling `changed` with all of it as it changes.

    What is yielded follows the topic at once; `changed` may take its time, or fail (it embeds, it learns): it is called
    until it takes what is newest then. So nothing that is heard is lost to a moment in which nothing works.
    """
    table: dict[str, T] = {}
    news = asyncio.Event()

    async def heard(records: Records) -> None:
        if apply(table, records):
            news.set()

    async def newest() -> None:
        news.clear()
        await changed(dict(table))

    async def until_news(seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await news.wait()

    def refused(error: BaseException, pause_s: float) -> None:
        log.error("%s: a change was not taken (%r); again in %.1f s", topic, error, pause_s)

    async def tell() -> None:
        while True:
            await news.wait()
            await until_done(newest, (Exception,), refused, longest_s=LONGEST_S, pause=until_news)

    async with follow_compacted(settings, topic, heard) as records:
        apply(table, records)
        task = asyncio.create_task(tell(), name=f"tell-{topic}")
        task.add_done_callback(_say_why)
        try:
            yield table
        finally:
            await end_task(task)


async def _read_to(end: int, consumer: AIOKafkaConsumer, part: AsyncTopicPartition) -> Records:
    await consumer.seek_to_beginning(part)
    found: list[Any] = []
    while await consumer.position(part) < end:
        for records in (await consumer.getmany(timeout_ms=500)).values():
            found += records
    return found


def _say_why(task: asyncio.Task) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.critical("%s has ended: changes are no longer heard", task.get_name(), exc_info=error)
