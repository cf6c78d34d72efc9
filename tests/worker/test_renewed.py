"""Topics that were made anew are told from those that only grew, and from a broker that is away."""

from __future__ import annotations

import uuid
from types import SimpleNamespace

from faust.types import TP
from kafka.admin import KafkaAdminClient

from streams.broker.topics import make_topics
from streams.config import load_settings
from streams.view.connect import connect
from streams.view.offsets_of import OffsetsOf
from streams.worker.renewed import LOOKS, Beyond, TopicIds, begin_with_others
from tests.waiting import wait_until

PART = ("posts.raw", 0)


def test_who_stands_beyond_the_end_for_long_reads_a_topic_that_was_made_anew():
    beyond = Beyond()
    assert [beyond.those({PART: 18}, {PART: 14}) for _ in range(LOOKS)] == [set()] * (LOOKS - 1) + [{PART}]


def test_an_end_that_falls_behind_for_a_moment_or_is_not_told_is_no_new_topic():
    beyond = Beyond()
    for _ in range(3):
        assert not any(beyond.those({PART: 18}, {PART: 14}) for _ in range(LOOKS - 1))
        assert not beyond.those({PART: 18}, {PART: 18})
        assert not any(beyond.those({PART: 18}, {}) for _ in range(2 * LOOKS))


def test_a_topic_made_anew_has_another_id_and_one_that_is_away_or_wider_is_the_same(apache_kafka):
    settings = load_settings(broker={"bootstrap": apache_kafka}, topics={"prefix": f"t{uuid.uuid4().hex[:8]}."})
    make_topics(settings)
    ids, name = TopicIds(settings), settings.topics.name("posts.clean")
    client = KafkaAdminClient(bootstrap_servers=apache_kafka)
    assert not ids.renewed()
    client.create_partitions({name: 6})
    client.delete_topics([settings.topics.name("labels")])
    wait_until(lambda: settings.topics.name("labels") not in client.list_topics())
    assert not ids.renewed()
    client.delete_topics([name])
    wait_until(lambda: name not in client.list_topics())
    make_topics(settings)
    assert set(ids.renewed()) == {name, settings.topics.name("labels")}
    assert not TopicIds(settings).renewed(), "who starts now knows no other"
    ids.close()
    client.close()


def test_where_no_broker_answers_nothing_is_new():
    assert not TopicIds(load_settings(broker={"bootstrap": "127.0.0.1:1"})).renewed()


async def test_where_neither_broker_nor_redis_answers_offsets_are_believed_and_the_rebalance_goes_on():
    settings = load_settings(broker={"bootstrap": "127.0.0.1:1"}, redis={"url": "redis://127.0.0.1:1/0"})
    async with connect(settings.redis) as redis:
        untouched = SimpleNamespace()  # has no consumer to go anywhere with
        await begin_with_others(untouched, [TP("posts.raw", 0)], TopicIds(settings), OffsetsOf(redis, settings))
