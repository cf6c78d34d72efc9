"""A topic is read through: of what expires meanwhile no more is lost than that."""

import asyncio
import contextlib
import json

import pytest
from kafka import KafkaConsumer, KafkaProducer

from streams.broker.authors import posts_of
from streams.broker.compacted import follow_compacted, open_compacted
from streams.broker.reading import read_values
from streams.broker.topics import make_topics
from streams.config import load_settings
from tests.services.broker import run_broker_in_thread
from tests.waiting import PATIENCE_S

WRITTEN = 5


def ids_of(values):
    return [json.loads(value)["id"] for value in values]


def in_a_compacted_topic(settings):
    with open_compacted(settings, "labels") as opened:
        return ids_of(record.value for record in opened.read(WRITTEN))


READERS = {
    "posts of an author": ("posts.raw", lambda settings: posts_of(settings, "@ada")),
    "values of a topic": ("posts.raw", lambda settings: ids_of(read_values(settings, "posts.raw"))),
    "a compacted topic": ("labels", in_a_compacted_topic),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_segment_that_expires_while_a_topic_is_read_takes_its_own_records_and_no_others(monkeypatch, reader):
    topic, read = READERS[reader]
    with run_broker_in_thread() as broker:
        settings = load_settings(broker={"bootstrap": broker.bootstrap}, topics={"partitions": 1})
        make_topics(settings)
        log, poll = broker.partition(topic, 0), KafkaConsumer.poll
        with contextlib.closing(KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=0)) as producer:

            def write(post_id, author):
                value = json.dumps({"id": post_id, "author": author}).encode()
                producer.send(topic, value, key=post_id.encode(), partition=0).get(PATIENCE_S)

            def expires_first(consumer, **options):
                """Where it stands is known by now; what stands there goes, as it does with the next record written."""
                monkeypatch.undo()
                log.deletes, log.retention_bytes = True, log.size_bytes
                write("late", "@bob")
                return poll(consumer, **options)

            for n in range(WRITTEN):
                write(str(n), "@ada")
            monkeypatch.setattr(KafkaConsumer, "poll", expires_first)
            found = read(settings)
    assert 0 < log.start < WRITTEN
    assert [one for one in found if one != "late"] == [str(n) for n in range(log.start, WRITTEN)]


async def test_who_follows_a_compacted_topic_hears_all_that_it_holds_where_it_was_made_anew_and_is_shorter():
    with run_broker_in_thread() as broker:
        settings = load_settings(broker={"bootstrap": broker.bootstrap})
        make_topics(settings)
        with contextlib.closing(KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=0)) as producer:

            def write(key):
                producer.send("labels", b"{}", key=key).get(PATIENCE_S)

            heard = asyncio.Queue()

            async def changed(records):
                for record in records:
                    heard.put_nowait(record.key)

            for _ in range(WRITTEN):
                write(b"of before")
            async with follow_compacted(settings, "labels", changed) as known:
                assert len(known) == WRITTEN
                log = broker.partition("labels", 0)
                log.batches, log.end = [], 0
                write(b"of now")
                async with asyncio.timeout(PATIENCE_S):
                    assert await heard.get() == b"of now"
