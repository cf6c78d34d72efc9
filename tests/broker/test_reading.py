"""A topic is read through: of what expires meanwhile no more is lost than that, and a broker that goes is told."""

import asyncio
import contextlib
import json
from types import SimpleNamespace

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from models.errors import ServiceError
from models.records import Origin, Reject
from streams.broker import reading
from streams.broker.authors import posts_of
from streams.broker.compacted import follow_compacted, open_compacted
from streams.broker.reading import read_to, read_values
from streams.broker.rejects import read_rejects, records_of
from streams.broker.states import newest_states
from streams.broker.topics import make_topics
from streams.config import load_settings
from streams.releases.compared_posts import posts_of_stream
from streams.worker.sent_on import lies_in
from tests.outputs.topics import fresh_prefix
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


ALL = READERS | {
    "dead letters": ("posts.rejected", lambda settings: list(read_rejects(settings))),
    "what a dead letter was made from": (
        "posts.raw",
        lambda settings: list(
            records_of(settings, [Reject("too_long", "", "normalise", Origin(0, WRITTEN - 1), 0, "", b"")])
        ),
    ),
    "the posts that versions are compared on": ("posts.clean", lambda settings: posts_of_stream(settings, 0.0)),
    "what a worker sent on": ("posts.clean", lambda settings: lies_in(settings, "posts.clean", [(0, 0, 0)], 0.0)),
    "the newest states": ("alerts", lambda settings: list(newest_states(settings, "alerts", int, lambda *_: 0))),
}


@pytest.mark.parametrize("reader", ALL)
def test_a_broker_that_goes_while_a_topic_is_read_is_told_in_a_sentence_that_says_what_to_do(monkeypatch, reader):
    topic, read = ALL[reader]
    poll = KafkaConsumer.poll
    monkeypatch.setattr(reading, "SILENT_S", 1.0)
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(run_broker_in_thread())
        settings = load_settings(broker={"bootstrap": broker.bootstrap}, topics={"partitions": 1})
        make_topics(settings)
        with contextlib.closing(KafkaProducer(bootstrap_servers=broker.bootstrap)) as producer:
            for n in range(WRITTEN):
                producer.send(topic, b"%d" % n, key=b"%d" % n, partition=0).get(PATIENCE_S)

        def goes_first(consumer, **options):
            stack.close()
            return poll(consumer, **options)

        monkeypatch.setattr(KafkaConsumer, "poll", goes_first)
        with pytest.raises(ServiceError, match=rf"given nothing for 1 s, and {topic} .*: see whether the broker runs"):
            read(settings)


def test_a_long_topic_is_read_to_its_end_however_slow_the_broker_and_who_reads(monkeypatch):
    part, now = TopicPartition("long", 0), 0.0
    monkeypatch.setattr(reading.time, "monotonic", lambda: now)

    class Slow:
        config, at, asked = {"bootstrap_servers": ["slow:9092"]}, 100, 0

        def position(self, _):
            return self.at

        def poll(self, **_):
            nonlocal now
            now, self.asked = now + reading.SILENT_S * 0.6, self.asked + 1
            if self.asked % 2 or self.at >= 110:
                return {}
            self.at += 1
            return {part: [SimpleNamespace(offset=self.at - 1)]}

    found = []
    for left, records in read_to(Slow(), {part: 110}):
        found += [(left, record.offset) for record in records]
        now += 10 * reading.SILENT_S  # takes its time over them
    assert found == [(109 - offset, offset) for offset in range(100, 110)]
    with pytest.raises(ServiceError, match="slow:9092 has given nothing"):
        list(read_to(Slow(), {part: 111}))


def test_what_a_compacted_topic_holds_behind_the_asked_end_is_read_the_next_time(embedded_broker):
    settings = load_settings(broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix()})
    make_topics(settings)
    with open_compacted(settings, "labels") as opened:
        opened.write({b"%d" % n: b"{}" for n in range(WRITTEN)})
        read = [[record.offset for record in opened.read(end)] for end in (3, 3, None)]
        (last,) = opened.write({b"last": b"{}"})
        read.append([record.offset for record in opened.read(last + 1)])
    assert read == [[0, 1, 2], [], [3, 4], [5]]


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
