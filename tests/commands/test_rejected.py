"""Dead letters: counted by reason, shown with where they came from, sent again whole."""

from __future__ import annotations

import ast

import msgspec
import pytest
from click.testing import CliRunner
from kafka import KafkaConsumer, KafkaProducer

from models.errors import CrisisError
from models.records import Deletion, EmbeddedFrame, Frame, MatchedFrame, Origin, Post, Reject, Repeat
from streams.broker.rejects import READS, RETRIED
from streams.broker.topics import make_topics
from streams.commands.rejected import REFUSED, rejected
from streams.config import load_settings
from streams.pipeline.frames import decode_frames, encode_frame, join_frames
from tests.house import modules, parsed
from tests.outputs.topics import fresh_prefix
from tests.waiting import PATIENCE_S

RAW = b'{"id": "1", "text": "fine"}\n{"id": 2, "text": "water \x1b[31m'
AT = "2023-11-14T22:13:20.000Z"


def post(n, **more):
    return Post(f"~a/{n}", f"text {n}", 1.0, 2.0, "en", fingerprint=str(n), **more)


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
        Reject("bad_frame", "not ours", "match", Origin(1, offset), 0, "2023-11-14T22:13:20.000Z", b"?"),
        Reject("bad_json", "long gone", "normalise", Origin(1, 99), 0, "2023-11-14T22:13:20.000Z", b"?"),
    ):
        producer.send(found.topics.name("posts.rejected"), value=msgspec.json.encode(reject), partition=0).get(
            PATIENCE_S
        )
    producer.close()
    return found


def run(settings, *words):
    return CliRunner().invoke(rejected, words, obj=settings, env={"COLUMNS": "200"})


def records(settings, topic):
    """All that a topic holds; each partition in order."""
    consumer = KafkaConsumer(
        settings.topics.name(topic),
        bootstrap_servers=settings.broker.bootstrap,
        auto_offset_reset="earliest",
        consumer_timeout_ms=1500,
    )
    found = list(consumer)
    consumer.close()
    return found


def raw_records(settings):
    """The values sent after the fixture's own record, which is one of them."""
    found = [record.value for record in records(settings, "posts.raw")]  # the partitions come in any order
    found.remove(RAW)
    return found


@pytest.fixture
def refuse(settings, embedded_broker):
    """refuse(Reject, …): they lie on posts.rejected. refuse.put(topic, value): where a record of a topic lies."""
    producer = KafkaProducer(bootstrap_servers=embedded_broker)

    def put(topic, value):
        partition = 0 if topic == "posts.matched" else 1
        sent = producer.send(settings.topics.name(topic), value=value, partition=partition).get(PATIENCE_S)
        return Origin(partition, sent.offset)

    def refused(*rejects):
        for reject in rejects:
            name = settings.topics.name("posts.rejected")
            producer.send(name, value=msgspec.json.encode(reject), partition=0).get(PATIENCE_S)

    refused.put = put
    yield refused
    producer.close()


def sent_again(settings):
    """Frames on posts.clean that were sent again, each in a record of its own."""
    found = [(record.partition, decode_frames(record.value, Frame)) for record in records(settings, "posts.clean")]
    return [(partition, frame) for partition, (frame, *more) in found if frame.origin.turn == RETRIED and not more]


def test_they_are_counted_by_reason_and_stage(settings):
    told = run(settings, "list").output
    assert [line.split("│")[1:4] for line in told.splitlines() if "bad_json" in line][0][2].strip() == "2"
    assert "worker_died" in told and "stage_error" in told
    assert "worker_died" not in run(settings, "list", "--reason", "bad_json").output


def test_one_is_shown_with_its_place_and_reason_and_nothing_that_a_terminal_obeys(settings):
    told = run(settings, "show", "0:0").output
    assert "bad_json" in told and "partition 1" in told and "\x1b[31m" not in told
    assert isinstance(run(settings, "show", "0:77").exception, CrisisError)


def test_of_a_long_line_is_told_how_much_is_left_out_and_all_of_it_where_that_is_asked_for(settings, refuse):
    refuse(Reject("text_too_long", "w" * 5_000, "normalise", Origin(1, 0), 0, AT, b"x" * 60_000))
    told = run(settings, "show", "--reason", "text_too_long").output
    assert "(58,000 characters left out; --full shows them)" in told and max(map(len, told.splitlines())) < 2_100
    told = run(settings, "show", "--reason", "text_too_long", "--full").output
    assert "x" * 60_000 in told and "w" * 5_000 in told and "left out" not in told


@pytest.mark.parametrize("command", ["list", "show", "retry"])
def test_a_reason_that_nothing_is_refused_for_is_told_with_those_that_there_are(command):
    done = run(load_settings(broker={"bootstrap": "127.0.0.1:1"}), command, "--reason", "bad_tme")
    assert done.exit_code == 2
    assert all(f"'{reason}'" in done.output for reason in ("bad_time", "bad_frame", "stage_error", "worker_died"))


def test_each_reason_that_the_code_gives_can_be_asked_for():
    reasons = {
        node.args[at].value
        for package in ("models", "streams")
        for path in modules(package)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call)
        for at in [{"Rejected": 0, "_refuse": 1}.get(getattr(node.func, "id", getattr(node.func, "attr", "")), 9)]
        if at < len(node.args) and isinstance(node.args[at], ast.Constant)
    }
    assert reasons == set(REFUSED)


def test_what_was_cut_in_the_reject_is_sent_again_whole(settings):
    done = run(settings, "retry", "--reason", "bad_json")
    assert "1 of 2 sent again" in done.output
    assert raw_records(settings) == [RAW.split(b"\n")[1].strip()]


def test_of_a_record_that_workers_died_on_each_line_is_sent_again_by_itself_and_in_order(settings):
    assert "2 of 2" in run(settings, "retry", "0:1").output
    assert raw_records(settings) == RAW.split(b"\n")
    assert run(settings, "retry").exit_code == 2


def test_a_post_that_a_later_stage_refused_goes_to_that_stage_again_where_it_came_from(settings, refuse):
    kept = [post(1), post(2, kind="update")]
    for n, stage in enumerate(("embed", "waiting")):
        raw = msgspec.msgpack.encode(kept[n])
        refuse(Reject("stage_error", "no", stage, Origin(1, 40 + n, turn=n), 0, AT, raw))
    done = run(settings, "retry", "--reason", "stage_error").output
    assert "2 of 3 sent again" in done and "1 not: of the post only the first 1 bytes are kept" in done
    found = sent_again(settings)
    assert [(partition, frame.posts) for partition, frame in found] == [(1, [kept[0]]), (1, [kept[1]])]
    assert [frame.origin for _, frame in found] == [Origin(1, 0, n, RETRIED) for n in range(2)]
    run(settings, "retry", "--reason", "stage_error", "--again")  # perhaps not yet read: at places of their own
    assert [f.origin for _, f in sent_again(settings)[2:]] == [Origin(1, 2, n, RETRIED) for n in range(2)]


def embedded(kind, offset, posts, **more):
    return kind(Origin(1, offset), posts, encoder_version="v", dim=1, vectors=bytes(2 * len(posts)), **more)


@pytest.mark.parametrize("stage", ["embed", "waiting", "match", "cluster"])
@pytest.mark.parametrize("kept", ["on the broker", "in the reject"])
def test_the_neighbours_of_a_post_that_workers_died_on_go_on_and_what_was_deleted_with_them(
    settings, refuse, stage, kept
):
    posts, deleted, repeat = [post(n) for n in range(4)], Deletion("~b/1", 3.0), Repeat("~c/1", "~a/0", 3.0)
    first = {
        "embed": Frame(Origin(1, 7), posts[:3], [repeat], [deleted]),
        "waiting": Frame(Origin(1, 7, turn=1), posts[:3], [repeat], [deleted]),
        "match": embedded(EmbeddedFrame, 7, posts[:2], repeats=[repeat], deletions=[deleted], waiting=posts[2:3]),
        "cluster": embedded(MatchedFrame, 7, posts[:3], repeats=[repeat], deletions=[deleted]),
    }[stage]
    second = Frame(Origin(1, 8), posts[3:]) if type(first) is Frame else embedded(type(first), 8, posts[3:])
    value = join_frames([encode_frame(first), encode_frame(second)])
    at = refuse.put(READS[stage], value) if kept == "on the broker" else Origin(1, 99)
    refuse(Reject("worker_died", "twice", stage, at, 0, AT, value[:9] if kept == "on the broker" else value))
    place = f"0:{len(records(settings, 'posts.rejected')) - 1}"
    assert "5 of 5 sent again" in run(settings, "retry", place).output
    found = [frame for _, frame in sent_again(settings)]
    assert [f.posts for f in found] == [[posts[0]], [posts[1]], [posts[2]], [], [posts[3]]]
    assert (found[3].repeats, found[3].deletions) == ([repeat], [deleted])
    assert [f.origin.item for f in found] == [0, 1, 2, 3, 5] and {f.origin.turn for f in found} == {RETRIED}


def test_what_cannot_be_sent_again_is_told_with_the_reason(settings, refuse):
    refuse(
        Reject("worker_died", "twice", "match", Origin(1, 99), 0, AT, encode_frame(Frame(Origin(1, 1), [post(1)]))[:20])
    )
    told = run(settings, "retry", "--reason", "worker_died").output
    assert "2 of 3 sent again" in told
    assert "1 not: no longer in posts.embedded, and only the first 20 bytes are kept" in told
    told = run(settings, "retry", "--reason", "bad_frame").output
    assert "0 of 1 sent again" in told and "1 not: no frame of ours: somebody else wrote to posts.embedded" in told
    assert "1 not: no longer in posts.raw" in run(settings, "retry", "--reason", "bad_json").output


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


def test_what_was_sent_again_is_neither_sent_nor_listed_a_second_time_and_what_is_refused_anew_is(settings, refuse):
    refuse(Reject("stage_error", "no", "embed", Origin(1, 40), 0, AT, msgspec.msgpack.encode(post(1))))
    for reason in ("bad_json", "stage_error"):
        assert "1 of 2 sent again" in run(settings, "retry", "--reason", reason).output
    told = run(settings, "list").output
    assert "2 lines left out: they were sent again" in told
    assert [line.split("│")[3].strip() for line in told.splitlines() if "bad_json" in line] == ["1"]  # it never was
    refuse(Reject("bad_json", "cut off", "normalise", refuse.put("posts.raw", b"anew"), 0, AT, b"anew"))
    told = run(settings, "retry", "--reason", "bad_json").output
    assert "1 of 2 sent again" in told and "1 not: no longer in posts.raw" in told
    assert "1 left out: sent again before" in told
    assert sorted(raw_records(settings)) == sorted([RAW.split(b"\n")[1].strip(), b"anew", b"anew"])
    assert "0 of 0 sent again\n1 left out" in run(settings, "retry", "0:0").output
    assert "1 of 1 sent again" in run(settings, "retry", "0:0", "--again").output
    assert "bad_json" in run(settings, "show", "0:0").output
