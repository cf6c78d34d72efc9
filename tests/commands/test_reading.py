"""The files that `crisis replay | embed | match | cluster` read: pipes too, looked through before they are read."""

from __future__ import annotations

import json
import os
import shutil
import threading
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner, Result

from models.encoders.ready import load
from models.moments import rfc3339
from models.queries import load_queries
from streams.cli import crisis
from streams.commands import files
from streams.commands import replay as replaying
from streams.commands.files import look_through, progress
from streams.commands.rehearsal import posts_of
from streams.config import load_settings
from streams.pipeline.replay import Replay, replay_records
from streams.releases.versions import make_ready

READING = [("replay", "--alerts"), ("embed", "--out"), ("match", "--scores"), ("cluster", "--out")]
AT = datetime(2020, 1, 14, 10, tzinfo=UTC).timestamp()


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("CRISIS_BROKER__BOOTSTRAP", "127.0.0.1:1")


def lines_of(path: Path, *posts: dict[str, object] | str) -> Path:
    path.write_text("".join((post if isinstance(post, str) else json.dumps(post)) + "\n" for post in posts))
    return path


def calls(count: int, **more: object) -> list[dict[str, object]]:
    texts = ("We need water for {} people at the school", "Trapped on the roof with {} children, send a boat")
    return [{"id": f"p{n}", "text": texts[n % 2].format(n + 2), **more} for n in range(count)]


def run(*words: object, given: bytes | None = None, columns: int = 400) -> Result:
    env = {"COLUMNS": str(columns)}
    return CliRunner().invoke(crisis, [*map(str, words)], input=given, env=env, catch_exceptions=False)


@pytest.mark.parametrize(("command", "out"), READING)
@pytest.mark.parametrize("way", ["pipe", "standard input"])
def test_a_pipe_gives_what_the_file_gives(tmp_path, command, out, way):
    file, pipe = lines_of(tmp_path / "posts.jsonl", *calls(6, created_at="2020-01-14T10:00:00Z")), tmp_path / "pipe"
    assert run(command, file, out, tmp_path / "of-file").exit_code == 0
    if way == "pipe":
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(file.read_bytes(),))
        writer.start()
        done = run(command, pipe, out, tmp_path / "of-pipe")
        writer.join()
    else:
        done = run(command, "-", out, tmp_path / "of-pipe", given=file.read_bytes())
    assert done.exit_code == 0, done.output
    assert (tmp_path / "of-pipe").read_bytes() == (tmp_path / "of-file").read_bytes() != b""


def test_a_line_that_stops_a_pipe_is_told_by_the_name_that_was_given(tmp_path):
    done = run("embed", "-", "--out", tmp_path / "v", given=b'{"id": "1", "text": "water"}\n\nno post\n')
    assert done.exit_code == 1 and "Error: - line 3: bad_json" in done.output


def test_a_dash_is_standard_output_and_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines_of(tmp_path / "posts.jsonl", *calls(6))
    told = run("replay", "-", "--alerts", "-", "--at", rfc3339(AT), given=(tmp_path / "posts.jsonl").read_bytes())
    assert told.exit_code == 0 and len(told.stdout.splitlines()) >= 4
    assert {json.loads(line)["status"] for line in told.stdout.splitlines()} == {"active"}
    assert os.listdir() == ["posts.jsonl"]


def test_a_file_that_is_not_read_as_it_was_counted_is_no_success(tmp_path):
    file = lines_of(tmp_path / "posts.jsonl", *calls(3))
    for read in (2, 4):
        with (
            pytest.raises(click.ClickException, match=f"had 3 lines when they were counted and {read} when"),
            progress(file, "replay") as (looked, advance),
        ):
            assert looked.posts == 3
            advance(read)


def test_copies_and_archives_change_nothing_for_posts_that_tell_their_times(tmp_path):
    """A copy has a time of its own, a zip gives 1980, and a checkout gives the time of the checkout."""
    timed = [*calls(4, created_at="2020-01-14T09:00:00Z"), *calls(6, created_at="2020-01-14T10:00:00Z")[4:]]
    file = lines_of(tmp_path / "posts.jsonl", *timed, {"id": "late", "text": "We need food now"})
    outs = []
    for written_at in (0.0, AT - 86_400 * 4, AT, AT + 86_400):
        copy = shutil.copy(file, tmp_path / "copy.jsonl")
        os.utime(copy, (written_at, written_at))
        assert run("replay", copy, "--alerts", tmp_path / "alerts").exit_code == 0
        outs.append((tmp_path / "alerts").read_bytes())
    assert len({*outs}) == 1
    told = {alert["post"]["id"]: alert["post"]["created_at"] for alert in map(json.loads, outs[0].splitlines())}
    assert told["p0"].startswith("2020-01-14T09:00") and told["late"].startswith("2020-01-14T10:00")


def test_where_no_post_tells_a_time_what_is_asked_for_counts_or_when_the_file_was_written(tmp_path):
    file = lines_of(tmp_path / "posts.jsonl", *calls(2))
    os.utime(file, (AT, AT))
    written = look_through(file)
    assert (written.clock_at, written.clock) == (AT, "when the file was written")
    run("replay", file, "--alerts", tmp_path / "a", "--at", "2021-05-01T00:00:00Z")
    assert {json.loads(line)["seen_at"][:10] for line in (tmp_path / "a").read_text().splitlines()} == {"2021-05-01"}
    for wrong in ("yesterday", "nan", "inf", "1e300"):
        done = run("replay", file, "--at", wrong)
        assert done.exit_code == 2 and f"'{wrong}' is no time" in done.output


def test_a_time_that_cannot_be_yet_is_not_the_time_of_the_file(tmp_path):
    at = ["2020-01-14T10:00:00Z", "2199-01-01T00:00:00Z", "soon", "", None, 1_578_000_000]
    posts = [{"id": f"{n}", "text": "water", "created_at": one} for n, one in enumerate(at)]
    found = look_through(lines_of(tmp_path / "posts.jsonl", *posts, "no post"))
    assert found.posts == 7 and found.clock_at == AT
    assert found.clock == "the latest time in the file"


def test_the_clock_is_named_where_times_are_refused_by_it(tmp_path):
    file = lines_of(tmp_path / "posts.jsonl", *calls(3, created_at="2020-01-14T10:00:00Z"))
    assert "times are judged by" not in run("replay", file).output
    told = run("replay", file, "--at", "2019-12-01T00:00:00Z")
    assert told.exit_code == 1 and "times are judged by 2019-12-01T00:00:00.000Z, as asked; --at sets" in told.output
    assert "the first was refused for bad_time: created_at '2020-01-14T10:00:00Z'" in told.output


def test_a_query_is_tried_on_a_file_whatever_its_copy_says_of_its_age(tmp_path):
    file = lines_of(tmp_path / "posts.jsonl", *calls(3, created_at="2020-01-14T10:00:00Z"))
    os.utime(file, (AT - 86_400 * 9, AT - 86_400 * 9))
    ready = make_ready(load_settings(), load("flood"), load_queries())
    assert sum(len(frame.posts) for frame in posts_of(load_settings(), str(file), ready)) == 3


@pytest.mark.parametrize(("command", "out"), READING[1:])
def test_a_line_that_is_no_post_is_told_before_any_post_is_encoded(tmp_path, monkeypatch, command, out):
    def refuse(texts: list[str]) -> None:
        raise AssertionError(f"{len(texts)} texts were encoded")

    loaded = load("flood")
    shy = SimpleNamespace(version="shy", dim=8, encode=refuse)
    ready = SimpleNamespace(encoder=shy, matcher=SimpleNamespace(queries=[]))
    monkeypatch.setattr(
        replaying, "chosen", lambda *_: SimpleNamespace(encoder=shy, clustered_by=shy, clusters=loaded.clusters)
    )
    monkeypatch.setattr(replaying, "make_ready", lambda *_: ready)
    file = lines_of(tmp_path / "posts.jsonl", *calls(1200), '{"id": "x"}', *calls(1))
    done = run(command, file, out, tmp_path / "out")
    assert done.exit_code == 1 and f"{file} line 1201: missing_text" in done.output
    assert not (tmp_path / "out").exists()


def test_a_list_over_many_lines_is_told_before_its_lines_are_read_and_lists_a_line_are_counted(tmp_path, monkeypatch):
    pages = lines_of(tmp_path / "pages.json", json.dumps(calls(2)), *calls(1))
    assert "not_an_object 1" in run("replay", pages).output
    monkeypatch.setattr(replaying, "replay_file", lambda *_: pytest.fail("its lines were read"))
    for written in (json.dumps(calls(9), indent=1), "\ufeff" + json.dumps(calls(9)).replace("}, ", "},\n")):
        file = tmp_path / "list.json"
        file.write_text(written)
        done = run("replay", file, "--rejects", tmp_path / "rejects")
        assert done.exit_code == 1 and f"{file} is one JSON list, and a post a line is read: make" in done.output
        assert not (tmp_path / "rejects").exists()


def test_refused_lines_are_written_as_they_come_and_only_counted_after(tmp_path):
    ready = make_ready(load_settings(), load("flood"), load_queries())
    records = [b"no post\n{", b'{"id": "1"}', b'{"id": "1", "text": "water"}']
    with (tmp_path / "rejects").open("wb") as out:
        done: Replay = replay_records(load_settings(), records, AT, ready, rejects_out=out)
    assert done.rejects == []  # those of the last record
    assert done.refused == {"bad_json": 2, "missing_text": 1} and done.totals.counts["rejected"] == 3
    assert done.first_refused is not None and done.first_refused.raw == b"no post"
    kept = [json.loads(line) for line in (tmp_path / "rejects").read_text().splitlines()]
    assert [(one["origin"][1], one["reason"]) for one in kept] == [
        (0, "bad_json"),
        (0, "bad_json"),
        (1, "missing_text"),
    ]


def test_another_encoding_is_told_though_some_lines_are_ascii_and_a_damaged_line_is_not(tmp_path):
    table = tmp_path / "posts.csv"
    table.write_bytes("id,text\n1,We need water\n2,señal\n3,años\n".encode("cp1252"))
    done = run("replay", table)
    assert done.exit_code == 0 and "2 lines are no UTF-8" in done.output and "iconv -f CP1252 -t UTF-8" in done.output
    lines = lines_of(tmp_path / "posts.jsonl", *calls(99))
    lines.write_bytes(lines.read_bytes() + b'{"id": "x", "text": "\xff"}\n')
    done = run("replay", lines)
    assert "bad_utf8 1" in done.output and "iconv" not in done.output


def test_texts_under_one_id_are_told_as_edits_unless_they_say_so_or_say_the_same(tmp_path):
    rounded = [{**post, "id": "1.59E+18"} for post in calls(5)]
    told = run("replay", lines_of(tmp_path / "rounded.jsonl", *rounded)).output
    assert "4 posts came under the id of an earlier one with another text" in told
    honest = [*calls(4), *calls(4), {**calls(1)[0], "text": "We need bread", "kind": "update"}]
    assert "under the id" not in run("replay", lines_of(tmp_path / "honest.jsonl", *honest)).output


def test_the_table_of_outcomes_is_whole_on_a_narrow_terminal(tmp_path):
    told = run("replay", lines_of(tmp_path / "posts.jsonl", *calls(3), "no post"), columns=40).output
    for head in ("posts read", "alert", "suggestion", "no match", "folded", "rejected", "deleted"):
        assert f" {head} " in told


def test_without_a_terminal_a_line_now_and_then_says_how_far_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "TOLD_EACH_S", -1.0)
    monkeypatch.setattr(files, "SHOWN_EACH", 100)
    told = run("replay", lines_of(tmp_path / "posts.jsonl", *calls(250))).output.splitlines()
    said = [line for line in told if line.endswith(" posts")]
    assert said == [f"{said_of} posts" for said_of in ("count: 100", "count: 200", "replay: 100/250", "replay: 200/250",
                                                       "replay: 250/250")]  # fmt: skip
