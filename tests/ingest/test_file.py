"""Files and standard input: every line goes through, at the asked pace; a second run goes on where the first was."""

import contextlib
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import threading
import tracemalloc
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from models.errors import ConfigError
from streams.commands.ingest import ingest
from streams.ingest import SOURCES
from streams.ingest.cursor import Cursor
from streams.ingest.file import Pace, ReplayConfig, ingest_file
from streams.ingest.lines import LINE_BYTES, Head, open_lines, read_lines
from streams.ingest.stdin import ingest_stream
from streams.ingest.stopping import Stop
from tests.ingest.conftest import jsonl
from tests.waiting import wait_until


def test_every_source_is_listed_and_has_help():
    listed = CliRunner().invoke(ingest, ["--help"]).output
    for name in SOURCES:
        assert name in listed
        assert CliRunner().invoke(ingest, [name, "--help"]).exit_code == 0


@pytest.mark.parametrize("name", ["posts.jsonl", "posts.ndjson", "posts.jsonl.gz"])
def test_every_line_of_a_file_is_sent(raw, tmp_path, name):
    path = jsonl(tmp_path / name, 250)
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert ingest_file(raw.settings, path) == 250
    assert raw.ids() == sorted(f"p{i}" for i in range(250))


def test_lines_that_are_no_posts_are_sent_too_so_that_they_are_counted(raw, tmp_path):
    path = tmp_path / "hostile.jsonl"
    path.write_bytes(b'{"id": "1", "text": "a"}\n\n{"id": "2", "te\n\xff\xfe\n' + b"x" * 2_000_000 + b"\n[1]\n{}")
    assert ingest_file(raw.settings, path) == 6
    assert sorted(raw.lines())[:2] == [b"[1]", b'{"id": "1", "text": "a"}']
    assert b"\xff\xfe" in raw.lines() and b"{}" in raw.lines()


def test_a_line_longer_than_memory_allows_is_read_in_pieces_and_marked():
    stream = io.BytesIO(b"a" * 500 + b"\n" + b"b" * 100 + b"\n" + b"c" * 101)
    first, second, third = read_lines(stream, 100)
    assert json.loads(first)["oversize"] == 501 and json.loads(third)["oversize"] == 101
    assert second == b"b" * 100 + b"\n"


def test_a_broken_gzip_file_is_told_with_its_line(raw, tmp_path):
    path = jsonl(tmp_path / "posts.jsonl", 5000)
    broken = tmp_path / "posts.jsonl.gz"
    broken.write_bytes(gzip.compress(path.read_bytes())[:-3000])
    with pytest.raises(ConfigError, match=r"after line \d+"):
        ingest_file(raw.settings, broken)


def test_a_rate_spaces_the_posts_and_a_speed_follows_their_times():
    rate = Pace(ReplayConfig(rate=10))
    assert [rate.wait_s(Head(), 100.0) for _ in range(3)] == pytest.approx([0.0, 0.1, 0.2])
    speed = Pace(ReplayConfig(speed=60))
    times = ["2026-02-01T08:00:00Z", 1_769_932_860, "2026-02-01T08:02:00", "nonsense", None, 1_769_932_920_000]
    assert [speed.wait_s(Head(created_at=t), 100.0) for t in times] == pytest.approx([0, 1, 2, 0, 0, 2])


@pytest.mark.parametrize(
    "times",
    [
        [1_770_000_000_000_000, 1_770_000_001_000_000, 1_770_000_002_000_000],  # microseconds
        ["1770000000", "1770000001", "1770000002"],  # what every epoch column of a CSV is
        [f"Fri Nov 20 10:00:0{n} +0000 2026" for n in range(3)],  # Twitter
        [f"Fri, 20 Nov 2026 10:00:0{n} +0000" for n in range(3)],  # e-mail
    ],
)
def test_a_speed_reads_times_as_the_pipeline_does(times):
    pace = Pace(ReplayConfig(speed=1))
    assert [pace.wait_s(Head(created_at=t), 100.0) for t in times] == pytest.approx([0, 1, 2])


@pytest.mark.parametrize("bad", ["nan", "inf", float("nan"), 10**400, "", "yesterday"])
def test_a_time_that_is_none_holds_nothing_up(bad):
    assert Pace(ReplayConfig(speed=1)).wait_s(Head(created_at=bad), 100.0) == 0


@pytest.fixture
def clock(monkeypatch):
    class Clock(threading.Event):
        """Who waits for it only lets the time pass."""

        now = 100.0

        def wait(self, timeout: float) -> bool:
            self.now += timeout
            return False

    clock = Clock()
    monkeypatch.setattr("streams.ingest.file.time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_a_file_is_played_at_its_rate(raw, tmp_path, clock):
    path, sent_at = jsonl(tmp_path / "p.jsonl", 21), []
    ingest_file(raw.settings, path, ReplayConfig(rate=50), on_progress=lambda *_: sent_at.append(clock.now), stop=clock)
    assert sent_at == pytest.approx([100 + n / 50 for n in range(21)])


@pytest.mark.parametrize(
    "pace, expected",
    [
        ({"speed": 2}, [100, 101, 103, 103, 104, 106, 106, 107, 109]),  # the next round begins as the last one ends
        ({"rate": 0.5}, [100 + 2 * n for n in range(9)]),  # and a rate goes on, or a file of one line would have none
        ({"rate": 0.5, "speed": 2}, [100, 102, 104, 106, 108, 110, 112, 114, 116]),
        ({"rate": 2, "speed": 2}, [100, 101, 103, 103, 104, 106, 106, 107, 109]),
    ],
)
def test_every_round_of_a_loop_is_played_as_the_first(raw, tmp_path, clock, pace, expected):
    path, sent_at = tmp_path / "p.jsonl", []
    times = (1_770_000_000, 1_770_000_002, 1_770_000_006)
    path.write_text("".join(json.dumps({"id": str(at), "text": "Water", "created_at": at}) + "\n" for at in times))

    def note(posts, share):
        sent_at.append(clock.now)
        if posts == len(expected):
            clock.set()

    ingest_file(raw.settings, path, ReplayConfig(loop=True, **pace), on_progress=note, stop=clock)
    assert sent_at == pytest.approx(expected)


def test_a_second_run_goes_on_where_the_first_was_stopped(raw, tmp_path):
    path, cursor, stop = jsonl(tmp_path / "p.jsonl", 1000), str(tmp_path / "cursor"), threading.Event()

    def stop_half_way(posts, share):
        if posts == 500:
            stop.set()

    first = ingest_file(raw.settings, path, ReplayConfig(cursor=cursor), on_progress=stop_half_way, stop=stop)
    assert first == 500 and Cursor(cursor).value == "500"
    assert ingest_file(raw.settings, path, ReplayConfig(cursor=cursor)) == 500
    assert raw.ids() == sorted(f"p{i}" for i in range(1000))
    assert ingest_file(raw.settings, path, ReplayConfig(cursor=cursor)) == 0


def test_a_cursor_that_is_none_is_told(raw, tmp_path):
    (tmp_path / "cursor").write_text("elsewhere")
    with pytest.raises(ConfigError, match="not a line number"):
        ingest_file(raw.settings, jsonl(tmp_path / "p.jsonl", 1), ReplayConfig(cursor=str(tmp_path / "cursor")))


@pytest.mark.parametrize("place", ["nodir/cursor", "file/cursor"])
def test_a_cursor_that_cannot_be_written_is_told_before_anything_is_sent(raw, tmp_path, place):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot keep the cursor .*name a file in a folder"):
        ingest_file(raw.settings, jsonl(tmp_path / "p.jsonl", 1), ReplayConfig(cursor=str(tmp_path / place)))
    assert raw.ids() == []


def test_a_new_cursor_leaves_no_file_until_there_is_something_to_keep(tmp_path):
    cursor = Cursor(tmp_path / "cursor")
    assert not list(tmp_path.iterdir())
    cursor.value = "7"
    cursor.save()
    assert [p.name for p in tmp_path.iterdir()] == ["cursor"]


def test_a_compressed_file_broken_in_the_middle_is_told_in_a_sentence(raw, tmp_path):
    path = tmp_path / "p.jsonl.gz"
    whole = bytearray(gzip.compress(b"".join(b'{"id": "%d", "text": "%x"}\n' % (i, i**9) for i in range(5000))))
    whole[len(whole) // 2 : len(whole) // 2 + 50] = b"\xff" * 50
    path.write_bytes(whole)
    with pytest.raises(ConfigError, match="p.jsonl.gz, after line"):
        ingest_file(raw.settings, path)


def test_a_loop_starts_again_until_it_is_stopped(raw, tmp_path):
    stop = threading.Event()

    def stop_later(posts, share):
        if posts == 25:
            stop.set()

    sent = ingest_file(
        raw.settings, jsonl(tmp_path / "p.jsonl", 10), ReplayConfig(loop=True), on_progress=stop_later, stop=stop
    )
    assert sent == 25 and len(set(raw.ids())) == 10


def test_looping_over_an_empty_file_ends(raw, tmp_path):
    assert ingest_file(raw.settings, jsonl(tmp_path / "p.jsonl", 0), ReplayConfig(loop=True)) == 0


def test_the_command_shows_its_progress_and_the_total(raw, tmp_path):
    result = CliRunner().invoke(ingest, ["file", str(jsonl(tmp_path / "p.jsonl", 30))], obj=raw.settings)
    assert result.exit_code == 0, result.output
    assert "30 posts acknowledged" in result.output


def test_the_command_says_once_how_a_table_is_read_and_what_could_not_be(raw, tmp_path):
    (tmp_path / "p.csv").write_text("Tweet Text,Date,Time\nWater,2026-11-20,10:00\nFood,soon,\n")
    done = CliRunner().invoke(ingest, ["file", str(tmp_path / "p.csv")], obj=raw.settings)
    assert done.exit_code == 0, done.output
    assert done.output.count("p.csv: text from 'Tweet Text', created_at from 'Date' and 'Time'") == 1
    assert "1 times could not be read, the first is 'soon'" in done.output
    assert {post["text"]: post.get("created_at") for post in raw.posts()} == {"Water": "2026-11-20 10:00", "Food": None}


def test_a_loop_tells_of_its_table_in_the_first_round(raw, tmp_path):
    (tmp_path / "p.csv").write_text("text,time\nWater,soon\n")
    stop, told = threading.Event(), []
    ingest_file(
        raw.settings,
        tmp_path / "p.csv",
        ReplayConfig(loop=True),
        on_progress=lambda posts, share: stop.set() if posts == 3 else None,
        on_note=told.append,
        stop=stop,
    )
    assert len(told) == 2 and "times could not be read" in told[1]
    assert len(set(raw.ids())) == 1


def test_standard_input_is_read_to_its_end(raw):
    with raw.writer() as writer:
        assert ingest_stream(io.BytesIO(b'{"id": "1", "text": "a"}\n\n{"id": "2", "text": "b"}'), writer, Stop()) == 2
    assert raw.ids() == ["1", "2"]


RUN = "import sys; from streams.config import Settings; from streams.ingest.{0} import {0}; {0}.main(obj=Settings())"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_waiting_for_input_ends_cleanly_with_all_posts_sent(raw, number):
    env = os.environ | {"CRISIS_BROKER__BOOTSTRAP": raw.bootstrap, "CRISIS_TOPICS__PREFIX": raw.settings.topics.prefix}
    command = [sys.executable, "-c", RUN.format("stdin")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as child:
        child.stdin.write(b'{"id": "1", "text": "a"}\n{"id": "2", "text": "b"}\n')
        child.stdin.flush()
        wait_until(lambda: raw.ids() == ["1", "2"])
        child.send_signal(number)
        told = child.stderr.read().decode()
        assert child.wait() == 0, told
    assert "2 posts acknowledged" in told


@pytest.mark.parametrize("begins", [b"id,text\n1,", b'id,text\n1,"', b"", b"id"], ids=["row", "quote", "head", "title"])
@pytest.mark.parametrize("name", ["posts.csv.gz", "posts.jsonl.gz"])
def test_a_compressed_line_without_end_takes_no_memory_of_its_size(tmp_path, name, begins):
    """Some 40 kB that unfold to 40 MB: 408 kB took 1.2 GB, or ended in a traceback."""
    path = tmp_path / name
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(begins)
        for _ in range(40):
            file.write(b"x" * 1_000_000)
    tracemalloc.start()
    try:
        with open_lines(path) as lines, contextlib.suppress(ConfigError):
            assert all(len(line) <= LINE_BYTES for line in lines)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["p.jsonl", "p.csv", "p.csv.gz"])
def test_a_file_in_utf_16_is_told_as_such_and_nothing_of_it_is_sent(raw, tmp_path, name, encoding):
    text = 'id,text\n1,"水 water"\n' if "csv" in name else '{"id": "1", "text": "水 water"}\n'
    data = text.encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    with pytest.raises(ConfigError, match=f"{name} is UTF-16: save it as UTF-8"):
        ingest_file(raw.settings, tmp_path / name)
    assert raw.lines() == []


def test_the_end_says_where_refused_posts_are_seen(raw, tmp_path):
    done = CliRunner().invoke(ingest, ["file", str(jsonl(tmp_path / "p.jsonl", 2))], obj=raw.settings)
    assert "2 posts acknowledged by the broker; `crisis rejected list` counts" in done.output
