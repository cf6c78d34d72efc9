"""`crisis alerts` against a broker."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence

import msgspec
import pytest
from click.testing import CliRunner
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaTimeoutError

from models.errors import QueryError, ServiceError
from models.feedback.records import Label
from models.places.gazetteer import Gazetteer
from models.queries import load_queries
from models.records import Alert, Geo, NamedPlace
from streams.broker.labels import publish_labels
from streams.broker.queries import publish_queries
from streams.broker.topics import make_topics
from streams.commands.alerts import alerts as command
from streams.config import Settings, load_settings
from streams.outputs.follow import read_alerts
from tests.outputs.invented import HOSTILE, invent, later
from tests.outputs.topics import fresh_prefix
from tests.waiting import PATIENCE_S


@pytest.fixture
def settings(embedded_broker):
    made = load_settings(broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix(), "partitions": 2})
    make_topics(made)
    return made


def send(settings: Settings, records: Sequence[Alert | bytes], at: float | None = None) -> None:
    producer = KafkaProducer(bootstrap_servers=settings.broker.bootstrap)
    for record in records:
        key = record.alert_id.encode() if isinstance(record, Alert) else b"x"
        value = msgspec.json.encode(record) if isinstance(record, Alert) else record
        producer.send(settings.topics.name("alerts"), key=key, value=value, timestamp_ms=int(at * 1000) if at else None)
    producer.flush()
    producer.close()


def run(settings: Settings, *args: str) -> str:
    result = CliRunner().invoke(command, args, obj=settings, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_everything_kept_is_printed_once_as_json_lines(settings):
    first, second = invent("a"), invent("b", query="offer.food")
    send(settings, [first, second, first, later(first, cluster_id="c1")])  # the third is a redelivery
    lines = [json.loads(line) for line in run(settings).splitlines()]
    assert sorted((line["alert_id"], line["revision"]) for line in lines) == sorted(
        [(first.alert_id, first.revision), (first.alert_id, first.revision + 1), (second.alert_id, second.revision)]
    )


def test_an_area_chooses_what_says_it_is_there_or_names_a_place_there(settings):
    jacmel = NamedPlace("jakmel", "Jacmel, Sud-Est, HT", "town", 18.2342, -72.5347, 8.0, 0.6)
    place = Gazetteer.bundled().choose("Haiti")[0]
    haiti = NamedPlace("ayiti", place.full_name, place.kind, place.lat, place.lon, place.radius_km, 0.9)
    send(
        settings,
        [invent("a", geo=Geo(18.23, -72.53)), invent("b", places=[haiti, jacmel]), invent("c", places=[haiti])],
    )
    send(settings, [invent("d"), invent("e", geo=Geo(48.9, 2.4), places=[jacmel])])

    def found(area: str) -> set[str]:
        return {json.loads(line)["post"]["id"] for line in run(settings, "--area", area).splitlines()}

    assert found("Jacmel") == found("18.1,-72.7,18.4,-72.4") == {"a", "b"}
    assert found("Haiti") == {"a", "b", "c"}
    with pytest.raises(QueryError, match="no place is called 'Xyzzyville' here"):
        run(settings, "--area", "Xyzzyville")


def test_filters_choose(settings):
    send(settings, [invent("a"), invent("b", level="suggestion"), invent("c", query="offer.food", lang="ar")])
    assert len(run(settings, "--level", "alert").splitlines()) == 2
    assert len(run(settings, "--kind", "offer", "--lang", "ar", "--query", "offer.food").splitlines()) == 1
    assert run(settings, "--query", "need.nothing") == ""


def test_a_query_that_there_is_not_and_a_language_that_no_post_has_are_warned_of_and_the_alerts_are_told(settings):
    publish_queries(settings, {q.id: q for q in load_queries() if q.id == "need.water"})
    send(settings, [invent("a", query="need.gone"), invent("b", lang="ar")])

    def told(*args: str) -> tuple[int, str]:
        done = CliRunner().invoke(command, args, obj=settings, catch_exceptions=False)
        assert done.exit_code == 0
        return len(done.stdout.splitlines()), done.stderr

    assert told("--query", "need.water", "--lang", "AR") == (1, "")
    found, warned = told("--query", "need.watr")
    assert found == 0 and "no query 'need.watr' (did you mean need.water?)" in warned
    found, warned = told("--query", "need.gone", "--kind", "need")
    assert found == 1 and "no query 'need.gone'" in warned
    found, warned = told("--lang", "xx")
    assert found == 0 and "no post has the language 'xx': write codes" in warned


@pytest.mark.parametrize("form", ["csv", "geojson"])
def test_an_export_says_what_is_handled_by_whom_and_when_or_that_nobody_can_tell(settings, monkeypatch, form):
    send(settings, [invent("a"), invent("b")])
    publish_labels(settings, [Label("a", "need.water", "handled", "Ada", 1_795_154_400.0, "no water")])
    said = ("handled", "Ada", "2026-11-20T06:00:00.000Z")
    told = {"csv": ",".join(said), "geojson": '"judged":"{}","judged_by":"{}","judged_at":"{}"'.format(*said)}
    assert run(settings, "--format", form).count(told[form]) == 1

    def missing(_: Settings) -> None:
        raise ServiceError("no topic labels: run `crisis topics`")

    monkeypatch.setattr("streams.broker.labels.read_labels", missing)
    done = CliRunner().invoke(command, ["--format", form], obj=settings, catch_exceptions=False)
    assert done.exit_code == 0 and "judged" not in done.stdout
    assert "it is not told which alerts are judged, and by whom: no topic labels" in done.stderr


def test_who_may_not_read_the_queries_is_told_the_alerts_of_one_all_the_same(settings, monkeypatch):
    def missing(_: Settings) -> None:
        raise ServiceError("no topic queries: run `crisis topics`")

    monkeypatch.setattr("streams.broker.queries.read_queries", missing)
    send(settings, [invent("a")])
    assert len(run(settings, "--query", "need.water").splitlines()) == 1


def test_only_the_last_hours(settings):
    send(settings, [invent("old")], at=1_700_000_000)
    send(settings, [invent("new")])
    assert [json.loads(line)["post"]["id"] for line in run(settings, "--last", "2h").splitlines()] == ["new"]


def test_a_record_that_is_no_alert_is_skipped_and_said(settings, caplog):
    send(settings, [b"{", b"", invent("good")])
    assert len(run(settings).splitlines()) == 1
    assert "2 records" in caplog.text


@pytest.mark.parametrize("form", ["text", "json", "geojson", "csv", "cap"])
def test_hostile_text_leaves_no_control_character_in_any_format(settings, form):
    send(settings, [invent("h", text=HOSTILE.replace("\ud800", ""))])
    out = run(settings, "--format", form)
    assert "script" in out and not any(c in out for c in "\x1b\x9b\x07\u202e\u202c")


def test_a_reader_that_has_enough_is_no_failure(settings):
    send(settings, [invent(str(number), text="We need water. " * 60) for number in range(400)])
    env = os.environ | {
        "CRISIS_BROKER__BOOTSTRAP": settings.broker.bootstrap,
        "CRISIS_TOPICS__PREFIX": settings.topics.prefix,
    }
    command = [sys.executable, "-m", "streams.cli", "alerts", "--format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as child:
        try:
            assert json.loads(child.stdout.readline())["status"] == "active"
            child.stdout.close()
            told = child.stderr.read()
            assert (child.wait(PATIENCE_S), told) == (0, b"")
        finally:
            child.kill()


def test_an_empty_topic_is_a_valid_collection(settings):
    assert json.loads(run(settings, "--format", "geojson")) == {"type": "FeatureCollection", "features": []}


def test_following_tells_new_alerts_as_they_come(settings):
    send(settings, [invent("before")])
    reader, got, started = read_alerts(settings, follow=True), [], threading.Event()

    def follow() -> None:
        started.set()
        got.append(next(reader).post.id)

    thread = threading.Thread(target=follow)
    thread.start()
    started.wait()
    number = itertools.count()
    while not got:  # it starts at the end: send until it is there
        send(settings, [invent(f"after-{next(number)}")])
        thread.join(0.25)
    thread.join()
    reader.close()
    assert got and got[0].startswith("after")


def test_following_from_the_beginning_starts_there(settings):
    send(settings, [invent("kept")])
    reader = read_alerts(settings, follow=True, beginning=True)
    assert next(reader).post.id == "kept"
    reader.close()


def test_a_group_reads_on_where_it_stopped(settings):
    send(settings, [invent("one")])
    assert len(run(settings, "--group", "desk").splitlines()) == 1
    send(settings, [invent("two")])
    assert [json.loads(line)["post"]["id"] for line in run(settings, "--group", "desk").splitlines()] == ["two"]


def test_a_follower_outlives_a_broker_that_keeps_no_place_for_its_group_and_a_reader_says_so(settings, monkeypatch):
    def away(_: KafkaConsumer) -> None:
        raise KafkaTimeoutError("no coordinator")

    monkeypatch.setattr(KafkaConsumer, "commit", away)
    send(settings, [invent("one")])
    with contextlib.closing(read_alerts(settings, follow=True, group="desk", beginning=True)) as reader:
        assert next(reader).post.id == "one"
        send(settings, [invent("two")])
        assert next(reader).post.id == "two"
    with pytest.raises(KafkaTimeoutError):
        list(read_alerts(settings, follow=False, group="another", beginning=True))


def test_a_missing_topic_says_which_command_makes_it(embedded_broker):
    with pytest.raises(ServiceError, match="crisis topics"):
        next(
            read_alerts(
                load_settings(broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix()}), follow=False
            )
        )


@pytest.mark.parametrize("args", [["--last", "soon"], ["--format", "xml"], ["--cap-status", "Real"]])
def test_a_wrong_option_is_refused(args):
    assert CliRunner().invoke(command, args, obj=load_settings()).exit_code == 2
