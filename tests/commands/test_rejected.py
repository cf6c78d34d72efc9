"""Dead letters: counted by reason, shown with where they came from, sent again whole."""

from __future__ import annotations

import msgspec
import pytest
from click.testing import CliRunner
from kafka import KafkaConsumer, KafkaProducer

from models.errors import CrisisError
from models.records import Origin, Reject
from streams.broker.topics import make_topics
from streams.commands.rejected import rejected
from streams.config import load_settings
from tests.outputs.topics import fresh_prefix
from tests.waiting import PATIENCE_S

RAW = b'{"id": "1", "text": "fine"}\n{"id": 2, "text": "water \x1b[31m'


@pytest.fixture
def settings(embedded_broker):
    found = load_settings(broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix()})
    make_topics(found)
    producer = KafkaProducer(bootstrap_servers=embedded_broker)
    offset = producer.send(found.topics.name("posts.raw"), value=RAW, partition=1).get(PATIENCE_S).offset
    broken = RAW.split(b"\n")[1]
    for reject in (
        Reject("bad_json", "cut off", "normalise", Origin(1, offset), 1, "2023-11-14T22:13:20.000Z", broken[:10]),
        Reject("worker_died", "twice", "normalise", Origin(1, offset), 0, "2023-11-14T22:13:20.000Z", RAW[:10]),
        Reject("stage_error", "no", "embed", Origin(1, offset), 0, "2023-11-14T22:13:20.000Z", b"?"),
        Reject("bad_json", "long gone", "normalise", Origin(1, 99), 0, "2023-11-14T22:13:20.000Z", b"?"),
    ):
        producer.send(found.topics.name("posts.rejected"), value=msgspec.json.encode(reject), partition=0).get(
            PATIENCE_S
        )
    producer.close()
    return found


def run(settings, *words):
    return CliRunner().invoke(rejected, words, obj=settings, env={"COLUMNS": "200"})


def raw_records(settings):
    """The values sent after the fixture's own record, which is one of them."""
    consumer = KafkaConsumer(
        settings.topics.name("posts.raw"),
        bootstrap_servers=settings.broker.bootstrap,
        auto_offset_reset="earliest",
        consumer_timeout_ms=1500,
    )
    found = [record.value for record in consumer]  # the partitions come in any order
    consumer.close()
    found.remove(RAW)
    return found


def test_they_are_counted_by_reason_and_stage(settings):
    told = run(settings, "list").output
    assert [line.split("│")[1:4] for line in told.splitlines() if "bad_json" in line][0][2].strip() == "2"
    assert "worker_died" in told and "stage_error" in told
    assert "worker_died" not in run(settings, "list", "--reason", "bad_json").output


def test_one_is_shown_with_its_place_and_reason_and_nothing_that_a_terminal_obeys(settings):
    told = run(settings, "show", "0:0").output
    assert "bad_json" in told and "partition 1" in told and "\x1b[31m" not in told
    assert isinstance(run(settings, "show", "0:77").exception, CrisisError)


def test_what_was_cut_in_the_reject_is_sent_again_whole(settings):
    done = run(settings, "retry", "--reason", "bad_json")
    assert "1 of 2 sent again" in done.output
    assert raw_records(settings) == [RAW.split(b"\n")[1].strip()]


def test_a_record_that_workers_died_on_is_sent_again_as_a_whole_and_what_was_read_before_is_not(settings):
    assert "1 of 1" in run(settings, "retry", "0:1").output and raw_records(settings) == [RAW]
    assert "0 of 1" in run(settings, "retry", "--reason", "stage_error").output
    assert run(settings, "retry").exit_code == 2


def test_lines_that_were_summed_up_are_counted_and_sent_again_each(settings, embedded_broker):
    producer = KafkaProducer(bootstrap_servers=embedded_broker)
    summed = Reject("missing_id", "no id", "normalise", Origin(1, 0), 0, "2023-11-14T22:13:20.000Z", b"", also=[1, 7])
    producer.send(settings.topics.name("posts.rejected"), value=msgspec.json.encode(summed), partition=0).get(10)
    producer.close()
    listed = next(line for line in run(settings, "list").output.splitlines() if "missing_id" in line)
    assert listed.split("│")[3].strip() == "3"
    assert "and 2 later ones" in run(settings, "show", "--reason", "missing_id").output
    assert "2 of 3 sent again" in run(settings, "retry", "--reason", "missing_id").output
    assert sorted(raw_records(settings)) == sorted(RAW.split(b"\n"))
