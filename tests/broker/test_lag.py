"""Lag as the broker tells it, with and without workers."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from models.errors import ServiceError
from streams.broker.lag import LagReader, lag
from streams.broker.topics import make_topics
from streams.config import load_settings
from tests.outputs.topics import fresh_prefix


@pytest.fixture
def settings(broker):
    return load_settings(broker={"bootstrap": broker}, topics={"prefix": fresh_prefix(), "partitions": 2})


async def test_frames_nobody_has_acknowledged_are_lag(settings):
    make_topics(settings)
    topic = settings.topics.name("posts.raw")
    async with AIOKafkaProducer(bootstrap_servers=settings.broker.bootstrap) as producer:
        for n in range(10):
            await producer.send_and_wait(topic, b"{}", partition=n % 2)
    assert await lag(settings) == {"posts.raw": 10, "posts.clean": 0, "posts.embedded": 0, "posts.matched": 0}
    group = f"{settings.topics.prefix}crisis"
    async with AIOKafkaConsumer(
        bootstrap_servers=settings.broker.bootstrap, group_id=group, enable_auto_commit=False
    ) as worker:
        worker.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
        await worker.commit({TopicPartition(topic, 0): 5, TopicPartition(topic, 1): 2})
    reader = LagReader(settings)
    assert (await reader.read())["posts.raw"] == 3
    assert (await reader.read())["posts.raw"] == 3  # asking changes nothing
    await reader.close()


async def test_topics_that_are_not_there_yet_are_left_out(settings):
    assert await lag(settings) == {}


async def test_a_broker_that_is_away_is_an_error_that_says_so():
    with pytest.raises(ServiceError, match="127.0.0.1:1"):
        await lag(load_settings(broker={"bootstrap": "127.0.0.1:1"}))
