"""The newest state of each key, as a loop over all records would find it; and nothing that came before."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import KafkaProducer

from models.errors import ServiceError
from streams.broker import reading
from streams.broker.states import Newest, newest_states, oldest_states
from streams.broker.topics import make_topics
from streams.config import load_settings
from tests.outputs.topics import fresh_prefix

KEYS = [b"a", b"b", b"c"]


def revision(value, record):
    return value


def number(value):
    if not value.isdigit():
        raise UnicodeDecodeError("utf-8", value, 0, 1, "no number")
    return int(value)


def record(offset, key, value):
    return SimpleNamespace(topic="t", partition=2, offset=offset, key=key, value=value, timestamp=offset * 1000)


@given(st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from([b"1", b"2", b"3", b"", b"no number"]))))
def test_of_each_key_the_highest_revision_is_given_once_and_whether_it_stands_last(said):
    records = [record(offset, *one) for offset, one in enumerate(said)]
    newest = Newest(number, revision)
    for part in (records[:3], records[3:]):
        assert newest.told(part) == []
    given_ = [state for part in (records[:3], records[3:]) for state in newest.shown(part)]
    expected = {}
    for key in KEYS:
        mine = [one.value for one in records if one.key == key and one.value != b"no number"]
        since = mine[len(mine) - mine[::-1].index(b"") :] if b"" in mine else mine
        if since:
            expected[key] = (int(max(since)), since[-1] == max(since))
    assert sorted((s.value, s.last) for s in given_) == sorted(expected.values())
    assert newest.unread == sum(one.value == b"no number" for one in records)


def test_a_record_that_cannot_be_read_is_told_with_its_place(caplog):
    newest = Newest(number, revision)
    newest.told([record(5, b"a", b"1"), record(6, b"a", b"no number")])
    assert "ignored a record of t, partition 2, offset 6: " in caplog.text and newest.unread == 1


@pytest.fixture
def settings(broker):
    made = load_settings(broker={"bootstrap": broker}, topics={"prefix": fresh_prefix(), "partitions": 3})
    make_topics(made)
    return made


def write(settings, said, **more):
    with_options = KafkaProducer(bootstrap_servers=settings.broker.bootstrap, acks="all")
    for key, value in said:
        with_options.send(settings.topics.name("alerts"), key=key, value=value, **more).get(60)
    with_options.close()


def test_a_topic_of_several_partitions_is_read_to_where_it_ends_and_told_how_far(settings):
    said = [(b"%d" % (n % 70), b"%d" % n) for n in range(700)]
    write(settings, said)
    parts = list(newest_states(settings, "alerts", int, revision))
    assert sorted(s.value for part in parts for s in part.states) == list(range(630, 700))
    assert parts[-1].done == parts[-1].total == 1400
    assert [part.done for part in parts] == sorted(part.done for part in parts)
    assert all(abs(s.at - time.time()) < 600 for part in parts for s in part.states)
    assert not any(part.unread for part in parts)
    write(settings, [(b"7", b"no number")])
    assert list(newest_states(settings, "alerts", number, revision))[-1].unread == 1


def test_an_empty_topic_has_no_states_and_one_that_is_not_there_is_told(settings):
    assert not list(newest_states(settings, "alerts", int, revision))
    with pytest.raises(ServiceError, match="no topic"):
        next(newest_states(load_settings(broker={"bootstrap": settings.broker.bootstrap}), "alerts", int, revision))


def test_a_broker_that_gives_nothing_more_is_told(settings, monkeypatch):
    write(settings, [(b"1", b"1")])
    monkeypatch.setattr(reading, "SILENT_S", 0.0)
    monkeypatch.setattr("kafka.KafkaConsumer.poll", lambda *args, **options: {})
    with pytest.raises(ServiceError, match="has given nothing for"):
        list(newest_states(settings, "alerts", int, revision))


def test_the_oldest_record_of_a_span_is_found_and_one_that_cannot_be_read_says_nothing(settings):
    now = time.time()
    for ago_s, value in ((900, b"7"), (500, b"8"), (100, b"9")):
        write(settings, [(b"same key", value)], timestamp_ms=int((now - ago_s) * 1000))
    assert oldest_states(settings, "alerts", int, now - 1000, now) == [7]
    assert oldest_states(settings, "alerts", int, now - 600, now) == [8]
    assert oldest_states(settings, "alerts", int, now - 600, now - 550) == []
    assert oldest_states(settings, "alerts", int, now - 10, now) == []
