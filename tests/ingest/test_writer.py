"""Frames: packed by count, bytes and time; in order per post; acknowledged before a cursor moves; nothing dropped."""

import json
import threading

import pytest
from kafka.errors import NotLeaderForPartitionError

from models.errors import Rejected, ServiceError
from models.posts import parse_post, split_lines
from streams.config.sections import WriterConfig
from streams.embedded import Fault
from streams.ingest.writer import FrameWriter, oversize_marker
from tests.ingest.conftest import Raw
from tests.services.broker import run_broker_in_thread
from tests.waiting import PATIENCE_S


def line(number, **fields):
    return json.dumps({"id": f"p{number}", "text": f"We need water at house {number}"} | fields).encode()


def test_a_frame_is_full_at_its_number_of_posts_and_the_rest_follows_at_the_end(raw):
    with raw.writer(frame_posts=10, linger_s=60) as writer:
        for number in range(25):
            writer.write(line(number))
    sizes = [len(split_lines(value)) for values in raw.records().values() for value in values]
    assert sorted(sizes) == [5, 10, 10]
    assert (writer.counts.read, writer.counts.sent, writer.counts.frames) == (25, 25, 3)


def test_a_frame_is_full_at_its_number_of_bytes_and_a_long_line_travels_alone(raw):
    with raw.writer(frame_bytes=1000, line_bytes=5000, linger_s=60) as writer:
        for number in range(30):
            writer.write(line(number), key="all in one partition")
        writer.write(line(99, text="x" * 4000), key="all in one partition")
    values = [value for found in raw.records().values() for value in found]
    assert all(len(value) <= 1000 for value in values[:-1])
    assert len(split_lines(values[-1])) == 1 and len(values[-1]) > 4000
    assert len(raw.lines()) == 31


def test_a_lonely_post_waits_for_the_linger_only_and_not_for_others_to_fill_its_frame(raw):
    with raw.writer(linger_s=0.05) as writer:
        arrived = threading.Event()
        writer.write(line(1), then=lambda error: arrived.set())
        assert arrived.wait(PATIENCE_S)


def test_all_that_is_said_about_one_post_stays_in_one_partition_in_order(raw):
    with raw.writer(frame_posts=3) as writer:
        for version in range(20):
            for number in range(8):
                writer.write(line(number, text=f"version {version}"), key=f"p{number}")
    by_partition = [[json.loads(x) for v in values for x in split_lines(v)] for values in raw.records().values()]
    assert sum(bool(posts) for posts in by_partition) > 1
    for number in range(8):
        holding = [posts for posts in by_partition if any(p["id"] == f"p{number}" for p in posts)]
        assert len(holding) == 1
        versions = [p["text"] for p in holding[0] if p["id"] == f"p{number}"]
        assert versions == [f"version {version}" for version in range(20)]


def test_a_callback_runs_once_its_line_and_all_lines_before_it_are_acknowledged(raw):
    told = []
    with raw.writer(frame_posts=7, linger_s=0.01) as writer:
        for number in range(2000):
            writer.write(line(number), key=f"p{number}", then=lambda error, n=number: told.append((n, error)))
        writer.flush()
        assert told == [(number, None) for number in range(2000)]


def test_blank_lines_are_no_posts_but_their_callback_runs(raw):
    told = []
    with raw.writer() as writer:
        writer.write(b"  \r", then=told.append)
        assert told == [None]
        writer.write(line(1))
        writer.write(b"", then=told.append)
    assert told == [None, None] and raw.ids() == ["p1"] and writer.counts.read == 1


def test_a_line_that_no_broker_would_take_becomes_a_reject_instead_of_vanishing(raw):
    with raw.writer() as writer:
        writer.write(b'{"id": "1", "text": "' + b"a" * 3_000_000 + b'"}')
        writer.write(line(2))
    found = raw.lines()
    assert len(found) == 2 and writer.counts.oversized == 1 and writer.counts.sent == 2
    (marker,) = (x for x in found if b"oversize" in x)
    with pytest.raises(Rejected, match="3000023 bytes") as refused:
        parse_post(marker, seen_at=0.0, author_key=b"k")
    assert refused.value.reason == "too_large"


def test_a_marker_keeps_the_head_of_the_line():
    marker = json.loads(oversize_marker(b"\xff" * 5000, 12345))
    assert marker["oversize"] == 12345 and len(marker["head"]) < 2000


def test_two_lines_at_once_are_a_mistake_of_the_caller(raw):
    with raw.writer() as writer, pytest.raises(ValueError, match="newline"):
        writer.write(b'{"id": 1,\n"text": "a"}')


def test_many_threads_may_share_one_writer(raw):
    with raw.writer(frame_posts=5, frames_in_flight=2) as writer:
        threads = [
            threading.Thread(target=lambda t=t: [writer.write(line(t * 1000 + n), key=str(n)) for n in range(300)])
            for t in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(raw.ids())) == 1200 and writer.counts.sent == 1200


def test_a_broker_that_is_not_there_is_told_with_the_way_out_before_a_client_looks_for_it(monkeypatch):
    monkeypatch.setattr("streams.ingest.writer.KafkaProducer", lambda **_: pytest.fail("it would look for 10 s"))
    with pytest.raises(ServiceError, match="crisis doctor"):
        FrameWriter("127.0.0.1:1,[::1]:1", "posts.raw")


def test_a_topic_that_is_not_there_is_told_with_the_way_out():
    with run_broker_in_thread(auto_create=False) as broker, pytest.raises(ServiceError, match="crisis topics"):
        FrameWriter(broker.bootstrap, "posts.raw", client={"max_block_ms": 300})


def test_lost_connections_lost_answers_and_broker_errors_lose_nothing_and_double_nothing():
    with run_broker_in_thread() as broker:
        raw, told = Raw(broker.bootstrap), []
        with raw.writer(frame_posts=10, linger_s=0.01) as writer:
            for number in range(600):
                if number == 100:
                    broker.faults["Produce"] += [Fault(drop=True)] * 2
                if number == 250:
                    broker.faults["Produce"] += [Fault(drop=True, handled=True)] * 2
                if number == 400:
                    broker.faults["Produce"] += [Fault(error=NotLeaderForPartitionError.errno)] * 2
                writer.write(line(number), key=f"p{number}", then=lambda error, n=number: told.append((n, error)))
                if number % 50 == 0:
                    writer.flush()
        assert told == [(number, None) for number in range(600)]
        assert raw.ids() == sorted(f"p{number}" for number in range(600))


def test_when_the_broker_is_gone_the_writer_says_so_and_no_callback_claims_success(raw, monkeypatch):
    from kafka.errors import KafkaTimeoutError
    from kafka.producer.future import FutureRecordMetadata

    told, failed = [], []
    writer = raw.writer(linger_s=60)
    writer.when_failed(failed.append)
    writer.write(line(1), then=told.append)

    def refuse(*_, **__) -> FutureRecordMetadata:
        raise KafkaTimeoutError("gone")

    monkeypatch.setattr(writer._producer, "send", refuse)
    with pytest.raises(ServiceError, match="did not take a frame"):
        writer.flush()
    assert isinstance(told[0], ServiceError) and writer.counts.sent == 0
    with pytest.raises(ServiceError):
        writer.write(line(2))
    writer.when_failed(failed.append)
    assert failed == [writer.error] * 2
    writer.close()


def test_many_posts_go_in_few_frames(raw):
    posts = [(line(number), f"p{number}") for number in range(20_000)]
    with raw.writer() as writer:
        for post, key in posts:
            writer.write(post, key=key)
    assert writer.counts.frames <= 20_000 / WriterConfig().frame_posts + 4
