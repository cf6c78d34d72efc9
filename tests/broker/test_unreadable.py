"""A record that is no UTF-8, or nested without end, is left out of what a topic says, and ends no reader of it."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

from models.errors import Rejected
from models.feedback.records import Label
from models.queries import Query
from models.records import Origin, Reject
from streams.broker.compacted import open_compacted
from streams.broker.labels import publish_labels, read_labels
from streams.broker.queries import apply_records as apply_queries
from streams.broker.queries import publish_queries, read_queries
from streams.broker.rejects import read_rejects, read_retried, send_again
from streams.broker.topics import make_topics
from streams.config import load_settings
from streams.outputs.follow import read_alerts
from streams.pipeline.frames import MatchedFrame, decode_frames
from streams.releases.release import Release
from streams.releases.topic import latest
from tests.outputs.invented import invent
from tests.outputs.topics import fresh_prefix

NESTED = 100_000
NO_TEXT = [
    b'{"post_id":"\xff"}',
    b'{"id":"\xff"}',
    b'{"retried":["\xff"]}',
    b'{"alert_id":"\xff"}',
    b'{"current":"\xff"}',
    b'{"reason":"\xff"}',
]
NO_END = [b'{"x":' + b"[" * NESTED, b"[" * NESTED, b'{"retried":' + b"[" * NESTED]
BAD = [*NO_TEXT, *NO_END]

WATER = Query("need.water", "need", "water", "Water", {"en": ["We need drinking water"]})
SAID = Label("p1", "need.water", "right", "Ada", 1.0, "no water in house 1", "en")


@pytest.fixture
def settings(embedded_broker):
    made = load_settings(broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix()})
    make_topics(made)
    return made


def test_labels_and_queries_are_read_whatever_else_lies_there(settings):
    publish_labels(settings, [SAID])
    publish_queries(settings, {WATER.id: WATER})
    for topic in ("labels", "queries"):
        with open_compacted(settings, topic) as opened:
            opened.write({f"bad {n}".encode(): value for n, value in enumerate(BAD)})
    assert list(read_labels(settings)) == [SAID.key]
    assert list(read_queries(settings)) == [WATER.id]
    assert apply_queries({}, [SimpleNamespace(key=b"q", value=value) for value in BAD]) == []


def test_alerts_and_rejects_are_read_whatever_else_lies_there(settings):
    alert, reject = invent(), Reject("not_json", "…", "normalise", Origin(0, 1), 0, "2026-01-01T00:00:00Z", b"raw")
    with open_compacted(settings, "alerts") as opened:
        opened.write({f"{n}".encode(): value for n, value in enumerate([*BAD, msgspec.json.encode(alert)])})
    send_again(settings, "posts.rejected", [(0, value) for value in [*BAD, msgspec.json.encode(reject)]])
    assert [found.alert_id for found in read_alerts(settings, follow=False)] == [alert.alert_id]
    assert [found.reject for found in read_rejects(settings)] == [reject]
    assert read_retried(settings) == set()


def test_a_release_stays_as_it_was():
    known = Release(3, current="a" * 12)
    assert latest(known, [SimpleNamespace(key=b"release", value=value) for value in (NO_TEXT[-2], *NO_END)]) == known


@pytest.mark.parametrize("value", [b"\x91" * NESTED, b"\xa1\xff", b"\x81\xa2id\xa1\xff", b"\x91\xa1\xff"])
def test_a_frame_is_refused_and_ends_no_worker(value):
    with pytest.raises(Rejected, match="bad_frame"):
        decode_frames(value, MatchedFrame)
