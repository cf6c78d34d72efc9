"""Taking from a stream: what came goes at once and in order, stale events to nobody, and a batch has a limit."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from streams.worker import taking

NOW, BEFORE = 7, 6  # generations of the consumer group


class Stream:
    """The parts of a Faust stream that `take` asks for."""

    def __init__(self) -> None:
        self.channel, self.enable_acks, self.should_stop, self.current_event = self, True, False, None
        self.app = SimpleNamespace(consumer_generation_id=NOW)
        self._processors = []

    def add_processor(self, processor) -> None:
        self._processors.append(processor)

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> None:
        raise StopAsyncIteration

    def _enable_passive(self, channel) -> None:
        pass

    async def wait_for_stopped(self, event: asyncio.Event) -> bool:
        await event.wait()
        return False

    async def give(self, number: int, size: int = 1, generation: int = NOW) -> None:
        self.current_event = SimpleNamespace(
            value=b"x" * size, number=number, message=SimpleNamespace(generation_id=generation)
        )
        for processor in self._processors:
            await processor(b"")


async def at_once(seconds: float) -> None:
    """No pause."""


async def started(stream: Stream, most: int, pause=at_once, rhythm=taking.FROM_SOURCES):
    """The batches, with the first asked for, and how to get the numbers of the next."""
    batches = taking.take(stream, most, rhythm, pause)
    asked = asyncio.ensure_future(anext(batches))
    await asyncio.sleep(0)
    return batches, asked


def numbers(events) -> list[int]:
    return [event.number for event in events]


async def test_one_event_is_taken_alone_and_what_came_meanwhile_together():
    stream = Stream()
    batches, first = await started(stream, 10)
    await stream.give(1)
    assert numbers(await first) == [1]
    for number in (2, 3, 4):
        await stream.give(number)
    assert numbers(await anext(batches)) == [2, 3, 4]
    await batches.aclose()
    assert stream.enable_acks and not stream._processors


async def test_who_gives_waits_while_a_full_batch_is_not_taken():
    stream = Stream()
    batches, first = await started(stream, 2)
    await stream.give(1)
    assert numbers(await first) == [1]
    await stream.give(2)
    third = asyncio.ensure_future(stream.give(3))
    await asyncio.sleep(0)
    assert not third.done()
    assert numbers(await anext(batches)) == [2, 3]
    await third
    await batches.aclose()


async def test_a_batch_of_large_records_ends_early_and_the_rest_comes_next():
    stream = Stream()
    batches, first = await started(stream, 10, rhythm=taking.Rhythm(most_bytes=10))
    await stream.give(1, size=11)
    assert numbers(await first) == [1], "a record above the limit is taken alone"
    for number in (2, 3, 4):
        await stream.give(number, size=4)
    assert numbers(await anext(batches)) == [2, 3]
    assert numbers(await anext(batches)) == [4]
    await batches.aclose()


async def test_what_was_fetched_before_a_rebalance_is_left_to_its_owner():
    stream = Stream()
    batches, first = await started(stream, 10)
    await stream.give(1, generation=BEFORE)
    await stream.give(2)
    assert numbers(await first) == [2]
    await batches.aclose()


async def test_what_comes_right_behind_a_batch_of_a_source_waits_for_company_and_the_first_does_not():
    stream, waited_s = Stream(), []

    async def pause(seconds: float) -> None:
        waited_s.append(seconds)
        await stream.give(3)

    batches, first = await started(stream, 10, pause)
    await stream.give(1)
    assert numbers(await first) == [1] and not waited_s
    await stream.give(2)
    assert numbers(await anext(batches)) == [2, 3]
    assert len(waited_s) == 1 and 0 < waited_s[0] <= taking.FROM_SOURCES.apart_s
    await batches.aclose()


@pytest.mark.parametrize("rhythm", [taking.Rhythm(60, 60, most_bytes=10), taking.Rhythm(60, 60)])
async def test_a_batch_that_is_full_before_its_time_does_not_wait_for_it(rhythm):
    stream, asked = Stream(), asyncio.Event()

    async def for_ever(seconds: float) -> None:
        asked.set()
        await asyncio.Event().wait()

    batches, first = await started(stream, 3, for_ever, rhythm)
    await stream.give(1)
    assert numbers(await first) == [1]
    await stream.give(2, size=5)
    second = asyncio.ensure_future(anext(batches))
    await asyncio.wait_for(asked.wait(), 5)
    await stream.give(3, size=5)
    if rhythm.most_bytes > 10:
        assert not second.done(), "neither three records nor many bytes"
        await stream.give(4)
    assert numbers(await asyncio.wait_for(second, 5))[:2] == [2, 3]
    asked.clear()
    await stream.give(5)
    third = asyncio.ensure_future(anext(batches))
    await asyncio.wait_for(asked.wait(), 5)
    assert not third.done(), "what was full once is not full for ever"
    third.cancel()
    await asyncio.gather(third, return_exceptions=True)


async def test_behind_a_batch_of_many_bytes_the_next_waits_less_than_behind_one_of_few():
    waited_s = []

    async def pause(seconds: float) -> None:
        waited_s.append(seconds)

    for size in (taking.FEW_BYTES, taking.FEW_BYTES + 1):
        stream = Stream()
        batches, first = await started(stream, 10, pause)
        await stream.give(1)
        await first
        for number, given in ((2, size), (3, 1)):
            await stream.give(number, size=given)
            await anext(batches)
        await batches.aclose()
    apart_s, few_s = taking.FROM_SOURCES.apart_s, taking.FROM_SOURCES.after_few_s
    behind_the_first, behind_few, also_first, behind_many = waited_s
    assert max(behind_the_first, also_first, behind_many) <= apart_s < behind_few <= few_s


async def test_between_stages_each_batch_waits_a_moment_for_what_was_sent_with_it():
    stream, waited_s = Stream(), []

    async def pause(seconds: float) -> None:
        waited_s.append(seconds)
        await stream.give(10 + len(waited_s))

    batches, first = await started(stream, 10, pause, taking.TO_ENCODER)
    await stream.give(1)
    assert numbers(await first) == [1, 11]
    await stream.give(2)
    assert numbers(await anext(batches)) == [2, 12]
    assert waited_s == 2 * [taking.TO_ENCODER.company_s]
    await batches.aclose()


async def test_after_a_pause_nothing_waits():
    stream, waited_s = Stream(), []

    async def pause(seconds: float) -> None:
        waited_s.append(seconds)

    batches, first = await started(stream, 10, pause, taking.Rhythm(apart_s=0.0))
    for number in (1, 2):
        await stream.give(number)
        assert numbers(await (first if number == 1 else anext(batches))) == [number]
    assert not waited_s
    await batches.aclose()


@pytest.mark.parametrize("rhythm", [{"apart_s": 0.2}, {"company_s": 1.0}])
async def test_who_is_behind_waits_for_nobody(rhythm):
    waited_s = []

    async def pause(seconds: float) -> None:
        waited_s.append(seconds)

    stream = Stream()
    batches, first = await started(stream, 4, pause, taking.Rhythm(most_bytes=10, **rhythm))
    for number in (1, 2, 3):
        await stream.give(number, size=4)
    assert numbers(await first) == [1, 2]
    for number in (4, 5):
        await stream.give(number, size=1)
    assert numbers(await anext(batches)) == [3, 4, 5]
    for number in (6, 7, 8):
        await stream.give(number, size=1)
    last = asyncio.ensure_future(stream.give(9, size=1))
    await asyncio.sleep(0)
    assert numbers(await anext(batches)) == [6, 7, 8, 9]
    await last
    assert not waited_s, "a full batch waits, or the rest of one"
    await batches.aclose()
