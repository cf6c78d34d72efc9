"""Consumer groups with real clients: partitions move when members come, go and die; nothing is lost or read twice."""

import asyncio
import contextlib
import os
import signal
import sys

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kafka import KafkaConsumer, KafkaProducer

from tests.waiting import until

PARTITIONS = 4


@pytest.fixture
async def member(broker, name):
    """member(topic) → a started aiokafka consumer of the test's group."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(topic: str) -> AIOKafkaConsumer:
            consumer = AIOKafkaConsumer(
                topic,
                bootstrap_servers=broker,
                group_id=name,
                auto_offset_reset="earliest",
                session_timeout_ms=6000,
                heartbeat_interval_ms=200,
                enable_auto_commit=False,
            )
            stack.push_async_callback(consumer.stop)
            await consumer.start()
            return consumer

        yield start


async def share(*expected: tuple[AIOKafkaConsumer, int]) -> None:
    """Wait until each consumer has that many partitions."""
    wanted = [n for _, n in expected]
    await until(lambda: [len(c.assignment()) for c, _ in expected] == wanted, lambda: wanted)


async def test_partitions_are_shared_when_a_second_member_joins_and_returned_when_it_leaves(member, make_topic):
    topic = make_topic(PARTITIONS)
    one = await member(topic)
    await share((one, 4))
    two = await member(topic)
    await share((one, 2), (two, 2))
    assert one.assignment().isdisjoint(two.assignment())
    await two.stop()
    await share((one, 4))


async def test_the_partitions_of_a_member_killed_by_the_kernel_go_to_the_other(member, make_topic, broker, name):
    topic = make_topic(PARTITIONS)
    one = await member(topic)
    await share((one, 4))
    script = (
        "import asyncio, sys, aiokafka\n"
        "async def main(bootstrap, topic, group):\n"
        "    consumer = aiokafka.AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group,\n"
        "                                         session_timeout_ms=1000, heartbeat_interval_ms=200,\n"
        "                                         enable_auto_commit=False)\n"
        "    await consumer.start()\n"
        "    await asyncio.sleep(3600)\n"
        "asyncio.run(main(*sys.argv[1:]))\n"
    )
    two = await asyncio.create_subprocess_exec(sys.executable, "-c", script, broker, topic, name)
    try:
        await share((one, 2))
        os.kill(two.pid, signal.SIGKILL)
        await share((one, 4))
    finally:
        if two.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                two.kill()
        await two.wait()


async def test_every_record_is_read_once_while_members_come_and_go(member, make_topic, broker):
    topic, seen = make_topic(PARTITIONS), []
    async with AIOKafkaProducer(bootstrap_servers=broker) as producer:
        for i in range(200):
            await producer.send(topic, b"%d" % i, partition=i % PARTITIONS)
        await producer.flush()

        async def read(consumer: AIOKafkaConsumer) -> None:
            for records in (await consumer.getmany(timeout_ms=100, max_records=20)).values():
                seen.extend(int(r.value) for r in records)
            await consumer.commit()

        one = await member(topic)
        await read(one)
        two = await member(topic)
        await share((one, 2), (two, 2))
        await read(two)
        await two.stop()
        await share((one, 4))
        while len(set(seen)) < 200:
            await read(one)
    assert sorted(seen) == list(range(200))


def test_committed_offsets_survive_the_consumer(broker, topic, name):
    with contextlib.closing(KafkaProducer(bootstrap_servers=broker)) as producer:
        for i in range(20):
            producer.send(topic, b"%d" % i)
        producer.flush()
    read = []
    for _ in range(4):
        with contextlib.closing(
            KafkaConsumer(
                topic,
                bootstrap_servers=broker,
                group_id=name,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                max_poll_records=5,
            )
        ) as consumer:
            while not (found := consumer.poll(timeout_ms=500)):
                pass
            read += [int(r.value) for records in found.values() for r in records]
            consumer.commit()
    assert read == list(range(20))
