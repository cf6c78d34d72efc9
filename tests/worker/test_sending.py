"""What the agents write is compressed quickly, and any client reads it."""

from __future__ import annotations

import asyncio
import json

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

from streams.broker.topics import make_topics
from streams.config import load_settings
from streams.worker import sending
from streams.worker.sending import Record, Sender
from tests.outputs.topics import fresh_prefix
from tests.waiting import PATIENCE_S, until


@pytest.fixture
def settings(embedded_broker):
    made = load_settings(broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix(), "partitions": 2})
    make_topics(made)
    return made


async def test_records_are_compressed_at_the_quick_level_and_read_by_another_client(settings, monkeypatch):
    used = []
    builder = sending.sys.modules[sending.DefaultRecordBatchBuilder.__module__]
    quick = builder.lz4_encode
    monkeypatch.setattr(builder, "lz4_encode", lambda data: used.append(quick.keywords) or quick(data))
    topic = settings.topics.name("posts.clean")
    values = [json.dumps({"text": f"we need water {n}"} | {str(i): n for i in range(50)}).encode() for n in range(200)]
    sender = Sender(settings)
    await sender.start()
    try:
        await sender.send([Record(topic, value, partition=n % 2) for n, value in enumerate(values)])
    finally:
        await sender.stop()
    assert used == [{"level": 1}, {"level": 1}]  # one request a partition
    consumer = KafkaConsumer(bootstrap_servers=settings.broker.bootstrap, enable_auto_commit=False)
    try:
        consumer.assign([TopicPartition(topic, p) for p in (0, 1)])
        consumer.seek_to_beginning()
        found: list[bytes] = []
        while len(found) < len(values):
            polled = consumer.poll(timeout_ms=int(PATIENCE_S * 1000))
            assert polled, "what was acknowledged is not there"
            found += [record.value for records in polled.values() for record in records]
        assert sorted(found) == sorted(values)
    finally:
        consumer.close()


async def test_a_partition_that_a_topic_lacks_is_waited_for_and_told_until_it_is_there(apache_kafka):
    settings = load_settings(broker={"bootstrap": apache_kafka}, topics={"prefix": fresh_prefix(), "partitions": 2})
    make_topics(settings)
    topic, sender = settings.topics.name("posts.clean"), Sender(settings)
    await sender.start()
    try:
        sending = asyncio.create_task(sender.send([Record(topic, b"a", partition=0), Record(topic, b"b", partition=3)]))
        await until(lambda: sender.trouble)
        assert sender.trouble == f"{topic} has no partition 3: run `crisis topics`"
        client = KafkaAdminClient(bootstrap_servers=apache_kafka)
        client.create_partitions({topic: 4})
        client.close()
        await sending
        assert sender.trouble == ""
    finally:
        await sender.stop()


async def test_records_with_a_key_lie_where_every_client_puts_them(settings):
    topic, keys = settings.topics.name("alerts"), [f"alert{n % 20}".encode() for n in range(40)]
    sender = Sender(settings)
    await sender.start()
    try:
        await sender.send([Record(topic, b"{}", key=key) for key in keys])
    finally:
        await sender.stop()
    producer = KafkaProducer(bootstrap_servers=settings.broker.bootstrap)
    theirs = {key: producer.send(topic, b"{}", key=key).get(PATIENCE_S).partition for key in keys}
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=settings.broker.bootstrap, enable_auto_commit=False)
    consumer.assign([TopicPartition(topic, p) for p in (0, 1)])
    consumer.seek_to_beginning()
    found: list[tuple[bytes, int]] = []
    while len(found) < len(keys) + len(theirs):
        polled = consumer.poll(timeout_ms=int(PATIENCE_S * 1000))
        assert polled, "what was acknowledged is not there"
        found += [(record.key, record.partition) for records in polled.values() for record in records]
    consumer.close()
    assert set(found) == set(theirs.items()) and len(set(theirs.values())) == 2
