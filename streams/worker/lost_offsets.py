"""Frames a worker was never given: found before the next one is acknowledged, so that they are read again.

When two rebalances overlap, faust-streaming 0.15.3 can skip fetched records: it drops what it had buffered and sees
them as read. Measured: in 2 of 40 kills of a worker under load, up to 28 frames of one partition, silently and for
good, since the commit moves past them; and in 2 of 6 starts of two workers, in partitions that nothing was committed of
(mended: `consuming.go_back`). So each agent watches the offsets it is given. A jump may be innocent (transaction
markers, what was taken back, retention), so the broker is asked whether there are records in between; if so, the worker
ends without acknowledging what came after, and the frames are read again from the last commit.
"""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, TopicPartition

from models.errors import ServiceError
from streams.broker.connect import client_options
from streams.config import Settings

__all__ = ["Gaps", "check"]

Place = tuple[str, int, int | None]  # topic, partition, generation of the consumer group


class Gaps:
    """Pure: told offsets in the order an agent gets them, says where one jumped."""

    def __init__(self) -> None:
        self._next: dict[tuple[str, int], tuple[int | None, int]] = {}  # → generation, the offset due next

    def jump(self, place: Place, offset: int, committed: int | None) -> int | None:
        """The offset that was due, if this one lies beyond it; going back (redelivery) is no jump.

        committed: of the group, as far as this worker knows; where a generation begins. None = never.
        """
        topic, partition, generation = place
        known, due = self._next.get((topic, partition), (None, 0))
        if known != generation or (topic, partition) not in self._next:
            due = committed or 0
        self._next[topic, partition] = generation, max(due, offset + 1)
        return due if offset > due else None


async def skipped(settings: Settings, topic: str, partition: int, due: int, offset: int) -> int | None:
    """The first record that lies between `due` and `offset` on the broker; None if there is none."""
    consumer = AIOKafkaConsumer(
        **client_options(settings.broker),
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",  # as the workers read (streams/worker/consuming.py)
    )
    await consumer.start()
    try:
        part = TopicPartition(topic, partition)
        consumer.assign([part])
        due = max(due, (await consumer.beginning_offsets([part]))[part])
        if due >= offset:
            return None
        consumer.seek(part, due)
        async with asyncio.timeout(30):
            first = await consumer.getone(part)
        return first.offset if first.offset < offset else None
    finally:
        await consumer.stop()


async def group_offset(settings: Settings, group: str, topic: str, partition: int) -> int:
    """Where the group goes on, as the broker knows it; 0 if it never committed."""
    consumer = AIOKafkaConsumer(**client_options(settings.broker), group_id=group, enable_auto_commit=False)
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, partition)])
        return await consumer.committed(TopicPartition(topic, partition)) or 0
    finally:
        await consumer.stop()


async def check(gaps: Gaps, settings: Settings, group: str, place: Place, offset: int, committed: int | None) -> None:
    """Raise ServiceError if frames before this one were skipped."""
    topic, partition, _ = place
    due = gaps.jump(place, offset, committed)
    if due is None:
        return
    if due == (committed or 0):  # the first of a generation: what we know of the commit may be old
        due = max(due, await group_offset(settings, group, topic, partition))
    if due < offset and (lost := await skipped(settings, topic, partition, due, offset)) is not None:
        raise ServiceError(
            f"{topic}[{partition}]: got offset {offset}, but {lost} was never given to us (a rebalance of "
            "Faust lost it): "
            "ending, so that it is read again from the last commit"
        )
