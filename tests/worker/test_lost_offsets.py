"""Skipped frames are found; innocent jumps, redelivery and new generations are not taken for one."""

import pytest
from aiokafka import AIOKafkaProducer
from hypothesis import given
from hypothesis import strategies as st

from models.errors import ServiceError
from streams.broker.topics import make_topics
from streams.config import load_settings
from streams.worker.lost_offsets import Gaps, check, group_offset, skipped

PLACE = ("posts.raw", 1, 4)


def jumps(offsets, committed=None, generations=None):
    gaps = Gaps()
    generations = generations or [4] * len(offsets)
    return [gaps.jump(("posts.raw", 1, g), o, committed) for g, o in zip(generations, offsets, strict=True)]


def test_offsets_in_order_and_redelivered_ones_are_no_jump():
    assert jumps([0, 1, 2, 1, 2, 3, 0, 1, 4]) == [None] * 9


def test_a_skipped_range_is_told_with_the_offset_that_was_due():
    assert jumps([33, 62], committed=33) == [None, 34]


def test_a_generation_begins_at_the_commit():
    assert jumps([5, 6], committed=5) == [None, None]
    assert jumps([5], committed=3) == [3]
    assert jumps([0, 1, 2, 9], committed=9, generations=[1, 1, 1, 2]) == [None, None, None, None]
    assert jumps([7]) == [0]


def test_partitions_and_topics_do_not_mix():
    gaps = Gaps()
    assert gaps.jump(("a", 0, 1), 0, 0) is None
    assert gaps.jump(("a", 1, 1), 5, 5) is None
    assert gaps.jump(("b", 0, 1), 0, 0) is None
    assert gaps.jump(("a", 0, 1), 1, 0) is None


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40))
def test_what_was_told_is_what_brute_force_finds(offsets):
    seen: set[int] = set()
    for offset, told in zip(offsets, jumps(offsets, committed=0), strict=True):
        due = max(seen, default=-1) + 1
        assert told == (due if offset > due else None)
        seen.add(offset)


@pytest.fixture
async def topic(broker, tmp_path):
    settings = load_settings(broker={"bootstrap": broker}, topics={"prefix": f"{tmp_path.name}.", "partitions": 2})
    make_topics(settings)
    name = settings.topics.name("posts.raw")
    producer = AIOKafkaProducer(bootstrap_servers=broker)
    await producer.start()
    for number in range(6):
        await producer.send_and_wait(name, str(number).encode(), partition=1)
    await producer.stop()
    return settings, name


async def test_records_in_between_are_a_loss_and_none_are_not(topic):
    settings, name = topic
    assert await skipped(settings, name, 1, 2, 5) == 2
    assert await skipped(settings, name, 1, 5, 5) is None
    assert await group_offset(settings, "nobody", name, 1) == 0
    gaps = Gaps()
    await check(gaps, settings, "nobody", (name, 1, 1), 0, None)
    with pytest.raises(ServiceError, match=r"posts\.raw\[1\]: got offset 4, but 1 was never given to us"):
        await check(gaps, settings, "nobody", (name, 1, 1), 4, None)


async def test_an_old_idea_of_the_commit_is_not_taken_for_a_loss(topic):
    settings, name = topic
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(bootstrap_servers=settings.broker.bootstrap, group_id="g", enable_auto_commit=False)
    await consumer.start()
    consumer.assign([TopicPartition(name, 1)])
    await consumer.commit({TopicPartition(name, 1): 4})
    await consumer.stop()
    await check(Gaps(), settings, "g", (name, 1, 1), 4, None)
    await check(Gaps(), settings, "g", (name, 1, 1), 4, 2)
    with pytest.raises(ServiceError, match="but 4 was never"):
        await check(Gaps(), settings, "g", (name, 1, 1), 5, 2)


async def test_offsets_that_transactions_used_up_are_no_loss(apache_kafka, tmp_path):
    settings = load_settings(
        broker={"bootstrap": apache_kafka}, topics={"prefix": f"{tmp_path.name}.", "partitions": 1}
    )
    make_topics(settings)
    name = settings.topics.name("posts.raw")
    async with AIOKafkaProducer(bootstrap_servers=apache_kafka, transactional_id=tmp_path.name) as producer:
        for number, is_so in enumerate((True, True, False, True)):
            await producer.begin_transaction()
            await producer.send_and_wait(name, str(number).encode(), partition=0)
            await (producer.commit_transaction() if is_so else producer.abort_transaction())
    assert await skipped(settings, name, 0, 1, 2) is None
    assert await skipped(settings, name, 0, 3, 6) is None, "what was taken back was never anybody's"
    assert await skipped(settings, name, 0, 1, 6) == 2
