"""Faust's consumer, without four tasks for each record, and back at the beginning where nothing was committed.

It gives records to a stream one by one, and races each against the end of the flow (`Service.wait_first`): 90 µs a
record where a stream has room, which it nearly always has. Here the giving is begun at once, and raced only where it
has to wait.

After a rebalance it drops what it had fetched and goes back to what the group committed. aiokafka 0.14 stays where it
is in a partition that nothing was committed of, so what had been dropped there was never given to anybody; and it asks
for one partition after the other, a tenth of a second each.

Its thread wakes for every record of a slow stream, at each of four topics: a third of what a worker costs at 60 posts
a second. So once something came, the broker keeps its next answer back a moment, for company; Faust has no setting for
that, nor for what transactions took back: nobody is given it here.
"""

from __future__ import annotations

import asyncio
import inspect
import types
from collections.abc import Coroutine, Generator, Mapping
from functools import partial
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import IllegalStateError
from faust.transport.consumer import RecordMap
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread
from faust.transport.drivers.aiokafka import Consumer as FaustConsumer
from faust.types import TP
from mode.services import WaitResults

__all__ = ["Consumer", "first_of", "go_back"]

AT_ONCE = 1, 1_500  # bytes that make the broker answer, and ms after which it does without: as Faust asks
COMPANY = 8_192, 50  # some five posts at four stages; twice as long costs alerts .1 s in the mean, and their p99 more
ANSWER_S = 60.0  # less than the 90 s after which Faust would stop looking for assignments, without a word


class _Thread(AIOKafkaConsumerThread):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fetched: dict[TP, int] = {}  # next offset after the last record that came, since the last `go_back`

    def _create_worker_consumer(self, transport: Any) -> AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        consumer._isolation_level = "read_committed"
        return consumer

    async def _fetch_records(self, consumer: AIOKafkaConsumer, *asked: Any, **options: Any) -> RecordMap:
        """What has come. The broker is asked for more at once where that was nothing for as long as Faust waits."""
        records = await super()._fetch_records(consumer, *asked, **options)
        self.fetched.update((tp, come[-1].offset + 1) for tp, come in records.items() if come)
        fetcher = consumer._fetcher
        fetcher._fetch_min_bytes, fetcher._fetch_max_wait_ms = COMPANY if records else AT_ONCE
        return records


class Consumer(FaustConsumer):
    """To be set as the transport's `Consumer`."""

    def _new_consumer_thread(self) -> AIOKafkaConsumerThread:
        return _Thread(self, loop=self.loop, beacon=self.beacon)

    async def wait_first(self, *coros: Any, timeout: Any = None) -> WaitResults:
        return await first_of(partial(super().wait_first, timeout=timeout), *coros)

    async def seek_to_committed(self) -> Mapping[TP, int]:
        offsets = await self._thread.call_thread(go_back, self._thread._ensure_consumer())
        self._thread.fetched.clear()
        return offsets

    def _new_offset(self, tp: TP) -> int | None:
        """What may be committed. Faust takes 0, as the offset read last, for none, and sees no gap behind it: nothing
        more would ever be committed. Agents acknowledge in order, so nothing before the first that waits is missing.
        """
        if self._committed_offset[tp] == 1 and min(self._acked[tp], default=0) > 1:
            self._gap[tp].addi(1, min(self._acked[tp]))
        return super()._new_offset(tp)

    def stands(self) -> dict[TP, int]:
        """The next offset to process of each partition that is ours.

        What was committed, as long as a record that came is not; after that where the fetcher is: it passes offsets
        that hold no record to read (marks of transactions, what they took back, what has expired).
        """
        state = self._thread._ensure_consumer()._subscription
        ours = state.subscription.assignment if state.subscription else None
        found = {}
        for tp in ours.tps if ours else ():
            found[tp] = committed = self._committed_offset.get(tp) or 0  # no public getter in 0.15.3
            if self._thread.fetched.get(tp, 0) <= committed:
                position = ours.state_value(tp)._position or 0  # None while it looks for the log's start
                found[tp] = max(committed, position)
        return found


async def go_back(consumer: AIOKafkaConsumer) -> dict[TopicPartition, int | None]:
    """To where the group goes on, in every partition that is ours: that offset, or the beginning where it has None.

    Raises IllegalStateError where the partitions were moved meanwhile, for Faust to wait for the next ones, and
    TimeoutError where the broker does not say: either, told as done, would let the flow go on in between.
    """
    state = consumer._subscription
    ours, parts = state.subscription.assignment if state.subscription else None, sorted(consumer.assignment())
    async with asyncio.timeout(ANSWER_S):
        offsets = dict(zip(parts, await asyncio.gather(*map(consumer.committed, parts)), strict=True))
    if state.reassignment_in_progress or state.subscription.assignment is not ours:
        raise IllegalStateError("the partitions were moved while the broker was asked for their offsets")
    for part, offset in offsets.items():
        consumer.seek(part, offset or 0)  # below the log's start: `auto.offset.reset`, the earliest
    return offsets


async def first_of(race: Any, first: Any, *others: Any) -> WaitResults:
    """What `race` makes of all of them, without it where the first is a coroutine that ends without waiting."""
    if not inspect.iscoroutine(first):
        return await race(first, *others)
    try:
        waits_for = first.send(None)
    except BaseException as end:
        for other in filter(inspect.iscoroutine, others):
            other.close()
        if isinstance(end, StopIteration):
            return WaitResults([first], [end.value], False)
        raise
    return await race(_rest_of(first, waits_for), *others)


async def _rest_of(begun: Coroutine, waits_for: Any) -> Any:
    """The rest of a coroutine that was begun outside and waits for this."""
    return await _steps(begun, waits_for)


@types.coroutine
def _steps(begun: Coroutine, waits_for: Any) -> Generator[Any, Any, Any]:
    """What `yield from` does after its first step."""
    while True:
        try:
            step = partial(begun.send, (yield waits_for))
        except BaseException as error:  # a cancellation: to be told inside
            step = partial(begun.throw, error)
        try:
            waits_for = step()
        except StopIteration as end:
            return end.value
