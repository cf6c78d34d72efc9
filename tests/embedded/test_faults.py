"""Only the embedded broker: faults on purpose, and what clients of ours make of them."""

import asyncio
import contextlib
import os
import socket
import sys

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kafka import KafkaConsumer, KafkaProducer, TopicPartition, errors
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest

from streams.embedded import EmbeddedBroker, Fault
from streams.embedded.peers import user_of
from tests.embedded.wire import RawMember, Wire, record_batch
from tests.services.broker import run_broker_in_thread
from tests.waiting import PATIENCE_S


@pytest.fixture
async def broker():
    async with EmbeddedBroker() as broker:
        yield broker


async def end_of(wire: Wire, topic: str) -> int:
    """Where the next batch goes."""
    return (await wire.produce(topic, record_batch([b"last"])))[1]


async def test_an_answer_that_is_lost_does_not_make_an_idempotent_producer_write_twice(broker):
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True) as producer:
        await producer.send_and_wait("posts", b"0")
        broker.faults["Produce"] += [Fault(drop=True, handled=True)] * 2
        await producer.send_and_wait("posts", b"1")
        await producer.send_and_wait("posts", b"2")
    async with Wire(broker.bootstrap) as wire:
        assert await end_of(wire, "posts") == 3


def test_kafka_pythons_producer_survives_lost_answers_too():
    with (
        run_broker_in_thread() as broker,
        contextlib.closing(KafkaProducer(bootstrap_servers=broker.bootstrap)) as producer,
    ):
        producer.send("posts", b"0").get(PATIENCE_S)
        broker.faults["Produce"] += [Fault(drop=True, handled=True)] * 2
        sent = [producer.send("posts", b"%d" % i) for i in range(1, 20)]
        assert [s.get(PATIENCE_S).offset for s in sent] == list(range(1, 20))
        assert broker.partition("posts", 0).end == 20


async def test_a_request_that_is_dropped_unhandled_leaves_no_trace(broker):
    broker.create_topic("posts")
    broker.faults["Produce"] += [Fault(drop=True)]
    async with Wire(broker.bootstrap) as wire:
        with pytest.raises(asyncio.IncompleteReadError):
            await wire.produce("posts", record_batch([b"x"]))
    async with Wire(broker.bootstrap) as wire:
        assert await end_of(wire, "posts") == 0


async def test_an_error_is_answered_as_often_as_asked_and_nothing_is_done(broker):
    broker.create_topic("posts")
    broker.faults["Produce"] += [Fault(error=errors.NotLeaderForPartitionError.errno)] * 2
    async with Wire(broker.bootstrap) as wire:
        codes = [await wire.produce("posts", record_batch([b"x"])) for _ in range(3)]
    assert codes == [(6, -1), (6, -1), (0, 0)]


async def test_an_error_reaches_every_part_of_an_answer_of_any_kind(broker):
    broker.create_topic("posts")
    broker.faults["Metadata"] += [Fault(error=errors.LeaderNotAvailableError.errno)]
    broker.faults["JoinGroup"] += [Fault(error=errors.CoordinatorLoadInProgressError.errno)]
    async with Wire(broker.bootstrap) as wire:
        asked = [MetadataRequest.MetadataRequestTopic(name="posts")]
        answer = await wire.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False), 7)
        assert [t.error_code for t in answer.topics] == [5]
        assert (await RawMember(wire, "g").join()).error_code == 14
        assert (await RawMember(wire, "g").enter()).error_code == 0


async def test_a_producer_retries_what_may_be_retried(broker):
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        broker.faults["Produce"] += [Fault(error=errors.NotLeaderForPartitionError.errno)] * 3
        assert (await producer.send_and_wait("posts", b"x")).offset == 0


async def test_a_delay_holds_up_its_own_connection_only(broker, monkeypatch):
    begun, over, sleep = asyncio.Event(), asyncio.Event(), asyncio.sleep

    async def sleep_as_told(seconds: float) -> None:
        if seconds != 7.5:
            return await sleep(seconds)
        begun.set()
        await over.wait()

    monkeypatch.setattr("streams.embedded.broker.asyncio.sleep", sleep_as_told)
    broker.create_topic("posts")
    broker.faults["Produce"] += [Fault(delay_s=7.5)]
    async with Wire(broker.bootstrap) as slow, Wire(broker.bootstrap) as quick:
        late = asyncio.create_task(slow.produce("posts", record_batch([b"late"])))
        await begun.wait()
        assert await quick.produce("posts", record_batch([b"soon"])) == (0, 0)
        assert not late.done()
        over.set()
        assert await late == (0, 1)


async def test_consumers_go_on_after_their_connections_are_cut(broker):
    async with (
        AIOKafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True) as producer,
        AIOKafkaConsumer(
            "posts",
            bootstrap_servers=broker.bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            session_timeout_ms=6000,
            heartbeat_interval_ms=200,
            enable_auto_commit=False,
        ) as consumer,
    ):
        seen = []
        for i in range(3):
            await producer.send_and_wait("posts", b"%d" % i)
            seen.append((await consumer.getone()).value)
            for request in ("Fetch", "Heartbeat", "Produce"):
                broker.faults[request] += [Fault(drop=True)]
        assert seen == [b"0", b"1", b"2"]


def test_a_fault_for_a_request_that_does_not_exist_is_refused():
    with pytest.raises(KeyError):
        EmbeddedBroker().faults["Prodoose"] += [Fault(drop=True)]


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x00\x00\x00\x02ab",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x08\x00\x63\x00\x00\x00\x00\x00\x01",  # no such request
        b"\x00\x00\x00\x0a\x00\x03\x00\x63\x00\x00\x00\x01\xff\xff",  # Metadata v99
        b"\x00\x00\x00\x10\x00\x03\x00\x07\x00\x00\x00\x01\x00\x7fshort!",  # Metadata v7, cut off
    ],
)
async def test_bytes_that_are_no_kafka_request_end_only_their_own_connection(broker, garbage, caplog):
    async with Wire(broker.bootstrap) as bad, Wire(broker.bootstrap) as good:
        bad.writer.write(garbage)
        assert await bad.reader.read() == b""
        assert "connection closed" in caplog.text
        assert (await good.ask(MetadataRequest(topics=[]), 7)).brokers[0].port == broker.port


async def test_retention_by_bytes_forgets_the_oldest_and_offsets_go_on(broker):
    broker.retention_bytes = 10_000
    broker.create_topic("posts")
    async with Wire(broker.bootstrap) as wire:
        for i in range(100):
            assert await wire.produce("posts", record_batch([b"x" * 500])) == (0, i)
    kept = broker.partition("posts", 0)
    assert kept.end == 100
    assert 0 < kept.start < 100
    assert 9_000 < kept.size_bytes <= 10_000


def test_a_slow_consumer_goes_on_at_the_oldest_record_kept():
    with run_broker_in_thread(retention_bytes=10_000) as broker:
        with contextlib.closing(KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=0)) as producer:
            for _ in range(60):
                producer.send("posts", b"x" * 500).get(PATIENCE_S)
        with contextlib.closing(
            KafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
        ) as consumer:
            at = TopicPartition("posts", 0)
            consumer.assign([at])
            consumer.seek(at, 0)
            oldest = broker.partition("posts", 0).start
            assert next(consumer).offset == oldest > 0


async def test_the_broker_listens_on_this_machine_only_and_says_what_it_is(broker):
    assert broker.bootstrap.startswith("127.0.0.1:")
    async with Wire(broker.bootstrap) as wire:
        assert "not-for-production" in (await wire.ask(MetadataRequest(topics=[]), 7)).cluster_id


async def test_transactions_are_refused_and_not_pretended(broker):
    async with Wire(broker.bootstrap) as wire:
        assert (
            await wire.ask(InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000), 4)
        ).error_code == 42
        assert (await wire.ask(InitProducerIdRequest(transactional_id=None), 4)).error_code == 0


async def test_a_process_of_another_user_of_the_machine_is_turned_away(broker, monkeypatch):
    async with Wire(broker.bootstrap) as ours:
        assert (await ours.produce("absent", record_batch([b"x"])))[0] == 3
    monkeypatch.setattr("streams.embedded.peers.user_of", lambda peer: os.getuid() + 4242)
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        async with Wire(broker.bootstrap) as stranger:
            await stranger.produce("absent", record_batch([b"x"]))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whose a connection is")
def test_the_system_tells_whose_a_connection_is():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert user_of(client.getsockname()) == os.getuid()
    assert user_of(("127.0.0.1", 1)) is None
