"""Records in and out, with the clients we use: the same from both brokers."""

import asyncio
import contextlib

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kafka import KafkaConsumer, KafkaProducer, TopicPartition, errors
from kafka.admin import OffsetSpec
from kafka.protocol.consumer import FetchRequest

from tests.embedded.wire import Wire, record_batch
from tests.waiting import PATIENCE_S, until, wait_until

OUT_OF_ORDER, OLD_EPOCH, INVALID_RECORD, NOT_LEADER = 45, 47, 87, 6
LONG_POLL_MS = 2 * int(1000 * PATIENCE_S)  # longer than any test waits: who is not woken is not answered


@pytest.fixture
def producing(broker):
    """producing(…) → a kafka-python producer in a with block."""
    return lambda **options: contextlib.closing(KafkaProducer(bootstrap_servers=broker, **options))


@pytest.fixture
def consuming(broker):
    """consuming(topic, …) → a kafka-python consumer of partition 0 from the start, in a with block."""

    @contextlib.contextmanager
    def consume(topic: str, **options):
        with contextlib.closing(KafkaConsumer(bootstrap_servers=broker, enable_auto_commit=False, **options)) as made:
            made.assign([TopicPartition(topic, 0)])
            made.seek_to_beginning()
            yield made

    return consume


def take(consumer: KafkaConsumer, n: int) -> list:
    """The next n records, at least."""
    found = []

    def enough() -> bool:
        for records in consumer.poll(timeout_ms=500).values():
            found.extend(records)
        return len(found) >= n

    wait_until(enough, lambda: found)
    return found


def end_of(admin, topic: str, partition: int = 0) -> int:
    at = TopicPartition(topic, partition)
    return admin.list_partition_offsets({at: OffsetSpec.LATEST})[at].offset


@pytest.mark.parametrize("codec", [None, "gzip", "lz4"])
def test_key_value_headers_and_time_come_back_as_they_were_sent(producing, consuming, topic, codec):
    with producing(compression_type=codec, linger_ms=50) as producer:
        for i in range(50):
            producer.send(
                topic,
                key=b"key-%d" % i,
                value=b"x" * 100 + b"%d" % i,
                timestamp_ms=1_700_000_000_000 + i,
                headers=[("kind", b"need"), ("empty", b""), ("kind", b"twice")],
            )
        producer.send(topic, b"no key")
        producer.send(topic, key=b"no value")
        producer.flush()
    with consuming(topic) as consumer:
        records = take(consumer, 52)
    assert [r.offset for r in records] == list(range(52))
    assert [(r.key, r.value, r.timestamp) for r in records[:50]] == [
        (b"key-%d" % i, b"x" * 100 + b"%d" % i, 1_700_000_000_000 + i) for i in range(50)
    ]
    assert list(records[3].headers) == [("kind", b"need"), ("empty", b""), ("kind", b"twice")]
    assert [(r.key, r.value) for r in records[50:]] == [(None, b"no key"), (b"no value", None)]


async def test_aiokafka_reads_what_aiokafka_wrote(broker, topic):
    async with AIOKafkaProducer(bootstrap_servers=broker, enable_idempotence=True, compression_type="lz4") as producer:
        sent = [await producer.send(topic, b"%d" % i, headers=[("n", b"%d" % i)]) for i in range(200)]
        assert [done.offset for done in await asyncio.gather(*sent)] == list(range(200))
    async with AIOKafkaConsumer(
        topic, bootstrap_servers=broker, enable_auto_commit=False, auto_offset_reset="earliest"
    ) as consumer:
        records = [await consumer.getone() for _ in range(200)]
    assert [r.value for r in records] == [b"%d" % i for i in range(200)]
    assert records[7].headers == (("n", b"7"),)


def test_each_partition_counts_its_own_offsets(producing, admin, make_topic):
    topic = make_topic(3)
    with producing() as producer:
        for i in range(30):
            producer.send(topic, b"x", partition=i % 3 if i < 27 else 0)
        producer.flush()
    assert [end_of(admin, topic, p) for p in range(3)] == [12, 9, 9]


def test_a_waiting_consumer_is_woken_by_the_first_record(producing, consuming, topic):
    waits = {"fetch_max_wait_ms": LONG_POLL_MS, "request_timeout_ms": 2 * LONG_POLL_MS}
    waits["connections_max_idle_ms"] = 3 * LONG_POLL_MS
    with producing() as producer, consuming(topic, **waits) as consumer:
        producer.send(topic, b"before").get(PATIENCE_S)
        assert take(consumer, 1)[0].value == b"before"
        assert not consumer.poll(timeout_ms=300)  # it has asked, and waits
        producer.send(topic, b"after")
        assert take(consumer, 1)[0].value == b"after"


async def test_nothing_new_is_answered_when_the_wait_is_over(broker, topic):
    one = FetchRequest.FetchTopic
    parts = [one.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)]
    asked = FetchRequest(max_wait_ms=200, min_bytes=1, topics=[one(topic=topic, partitions=parts)])
    async with Wire(broker) as wire:

        async def answered():  # Apache Kafka may tell of a new topic before its broker leads it
            (told,) = (await wire.ask(asked, 6)).responses[0].partitions
            return told if told.error_code != NOT_LEADER else None

        told = await until(answered)
    assert (told.error_code, told.high_watermark, told.records or b"") == (0, 0, b"")


def test_end_offsets_are_exact_as_soon_as_a_send_is_acknowledged(producing, consuming, topic):
    with producing() as producer, consuming(topic) as consumer:
        for i in range(1, 21):
            producer.send(topic, b"x").get(PATIENCE_S)
            assert consumer.end_offsets([TopicPartition(topic, 0)]) == {TopicPartition(topic, 0): i}


def test_a_consumer_seeks_anywhere_and_to_a_time(producing, consuming, topic):
    at = TopicPartition(topic, 0)
    with producing(linger_ms=50) as producer:
        for i in range(100):
            producer.send(topic, b"%d" % i, timestamp_ms=1_700_000_000_000 + 10 * i)
        producer.flush()
    with consuming(topic) as consumer:
        consumer.seek(at, 42)
        assert take(consumer, 1)[0].value == b"42"
        assert consumer.offsets_for_times({at: 1_700_000_000_000 + 555})[at].offset == 56
        assert consumer.offsets_for_times({at: 1_700_000_000_000})[at].offset == 0
        assert consumer.offsets_for_times({at: 1_700_000_001_000})[at] is None


def test_an_offset_beyond_the_log_is_out_of_range(producing, consuming, topic):
    with producing() as producer:
        producer.send(topic, b"x").get(PATIENCE_S)
    with consuming(topic, auto_offset_reset="none") as consumer:
        consumer.seek(TopicPartition(topic, 0), 5)
        with pytest.raises(errors.OffsetOutOfRangeError):
            take(consumer, 1)


def test_a_record_larger_than_the_response_limit_still_comes(producing, consuming, topic):
    with producing(max_request_size=2_000_000) as producer:
        for size in (10, 500_000, 10):
            producer.send(topic, b"x" * size).get(PATIENCE_S)
    with consuming(topic, fetch_max_bytes=1000, max_partition_fetch_bytes=1000) as consumer:
        assert [len(r.value) for r in take(consumer, 3)] == [10, 500_000, 10]


def test_a_record_over_the_topics_limit_is_refused(producing, admin, make_topic):
    topic = make_topic(max_message_bytes=1000)
    with producing() as producer:
        producer.send(topic, b"x" * 500).get(PATIENCE_S)
        with pytest.raises(errors.MessageSizeTooLargeError):
            producer.send(topic, b"x" * 2000).get(PATIENCE_S)
    assert end_of(admin, topic) == 1


def test_the_brokers_time_can_replace_the_senders(producing, consuming, make_topic):
    topic = make_topic(message_timestamp_type="LogAppendTime")
    with producing(compression_type="gzip") as producer:
        producer.send(topic, b"x" * 500, timestamp_ms=1_000).get(PATIENCE_S)
    with consuming(topic, check_crcs=True) as consumer:
        found = take(consumer, 1)[0]
    assert found.timestamp_type == 1
    assert found.timestamp > 1_700_000_000_000  # of these years; the sender said 1970


async def test_a_topic_that_does_not_exist_is_an_error_where_the_client_wants_none_made(broker, name, admin):
    async with Wire(broker) as wire:
        assert await wire.produce(name, record_batch([b"x"])) == (3, -1)
    assert admin.describe_topics([name])[0]["error_code"] == 3
    assert name not in admin.list_topics()


def test_a_topic_is_made_by_the_first_producer_that_asks_for_it(producing, admin, name):
    with producing() as producer:
        producer.send(name, b"x").get(PATIENCE_S)
    assert len(admin.describe_topics([name])[0]["partitions"]) == 1


async def test_a_batch_that_is_sent_again_is_stored_once(broker, topic, admin):
    batches = [record_batch([b"a", b"b"], producer=7001, epoch=0, sequence=0)]
    batches += [record_batch([b"%d" % i], producer=7001, epoch=0, sequence=2 + i) for i in range(4)]
    async with Wire(broker) as wire:
        first = [await wire.produce(topic, batch) for batch in batches]
        again = [await wire.produce(topic, batch) for batch in batches]
    assert first == [(0, 0), (0, 2), (0, 3), (0, 4), (0, 5)]
    assert again == first
    assert end_of(admin, topic) == 6


async def test_an_idempotent_producer_may_leave_no_gap_and_an_old_epoch_is_fenced(broker, topic):
    async with Wire(broker) as wire:
        assert await wire.produce(topic, record_batch([b"a"], 7002, 1, 0)) == (0, 0)
        assert (await wire.produce(topic, record_batch([b"c"], 7002, 1, 2)))[0] == OUT_OF_ORDER
        assert await wire.produce(topic, record_batch([b"b"], 7002, 1, 1)) == (0, 1)
        assert (await wire.produce(topic, record_batch([b"z"], 7002, 0, 2)))[0] == OLD_EPOCH
        assert await wire.produce(topic, record_batch([b"d"], 7002, 2, 0)) == (0, 2)  # a new epoch starts over


async def test_a_batch_that_is_damaged_is_refused(broker, topic, admin):
    damaged = bytearray(record_batch([b"hello"]))
    damaged[-2] ^= 1
    async with Wire(broker) as wire:
        assert (await wire.produce(topic, bytes(damaged)))[0] in (2, INVALID_RECORD)
    assert end_of(admin, topic) == 0


async def test_a_compacted_topic_refuses_records_without_a_key(broker, make_topic):
    topic = make_topic(cleanup_policy="compact")
    async with Wire(broker) as wire:
        assert (await wire.produce(topic, record_batch([b"x"], key=None)))[0] == INVALID_RECORD
        assert await wire.produce(topic, record_batch([b"x"], key=b"k")) == (0, 0)
