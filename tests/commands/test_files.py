"""What commands write: whole or not at all, whatever ends them; and one line where the disk is full."""

from __future__ import annotations

import gzip
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from models.encoders.ready import load
from models.errors import ConfigError
from models.language import identify
from models.queries import load_queries
from streams import cli
from streams.cli import crisis
from streams.commands.key import key, make_key
from streams.commands.token import token
from streams.config import load_settings
from streams.config.secrets import secret
from streams.pipeline.replay import replay_records
from streams.releases.versions import make_ready
from tests.waiting import PATIENCE_S, wait_until

CRISIS = [sys.executable, "-m", "streams.cli"]
ALONE = os.environ | {"CRISIS_BROKER__BOOTSTRAP": "127.0.0.1:1"}
FULL = Path("/dev/full")
WRITING = [
    ("replay", "--alerts"),
    ("replay", "--rejects"),
    ("match", "--scores"),
    ("embed", "--out"),
    ("cluster", "--out"),
]


def posts_file(path: Path, count: int, *more: str) -> Path:
    lines = [
        json.dumps({"id": f"p{n}", "text": f"We need water and food for {n} people at the school"})
        for n in range(count)
    ]
    path.write_text("".join(line + "\n" for line in [*lines, *more]))
    return path


@pytest.fixture
def posts(tmp_path):
    return posts_file(tmp_path / "posts.jsonl", 5)


@pytest.fixture
def told(monkeypatch, capsys):
    """told(words …): the last line of a command that ends with status 1; full: no byte can be written to any file."""
    monkeypatch.setenv("CRISIS_BROKER__BOOTSTRAP", "127.0.0.1:1")

    def run(*words: object, full: bool = False) -> str:
        identify("read before: that goes through a temporary file")
        monkeypatch.setattr(sys, "argv", ["crisis", *map(str, words)])
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        if full:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
        try:
            with pytest.raises(SystemExit) as ended:
                cli.main()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert ended.value.code == 1
        return capsys.readouterr().err.splitlines()[-1]

    return run


def test_one_ctrl_c_ends_a_replay_behind_the_record_at_hand():
    taken = []

    def records():
        for number in range(50):
            taken.append(number)
            if number == 3:
                os.kill(os.getpid(), signal.SIGINT)
            yield json.dumps({"id": str(number), "text": f"We need water for {number}"}).encode()

    settings = load_settings()
    with pytest.raises(KeyboardInterrupt):
        replay_records(settings, records(), 1_795_200_000.0, make_ready(settings, load("flood"), load_queries()))
    assert taken == [0, 1, 2, 3]


def test_a_replay_that_is_interrupted_leaves_the_alerts_of_before(tmp_path):
    file, alerts = posts_file(tmp_path / "many.jsonl", 50_000), tmp_path / "alerts.jsonl"
    alerts.write_text("of before")
    draft = tmp_path / ".alerts.jsonl.part"
    command = [*CRISIS, "replay", str(file), "--alerts", str(alerts)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=ALONE) as child:
        try:
            wait_until(lambda: child.poll() is not None or (draft.exists() and draft.stat().st_size))
            child.send_signal(signal.SIGINT)
            told = child.communicate(timeout=PATIENCE_S)[1]
        finally:
            child.kill()
    assert child.returncode == 130, told
    assert alerts.read_text() == "of before" and not draft.exists()


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has /dev/full")
@pytest.mark.parametrize("command", WRITING)
def test_a_full_disk_is_told_in_one_line_with_the_file(posts, command, told):
    posts.write_text(posts.read_text() + ("no post\n" if command[1] == "--rejects" else ""))
    assert told(command[0], posts, command[1], FULL) == "crisis: /dev/full: No space left on device"


def test_what_the_system_refuses_without_a_word_has_its_name_and_whoever_debugs_sees_where(monkeypatch, told):
    def refuse(**_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(cli, "crisis", refuse)
    assert told() == "crisis: TimeoutError"
    monkeypatch.setenv("CRISIS_DEBUG", "1")
    with pytest.raises(TimeoutError):
        cli.main()


@pytest.mark.parametrize("command", WRITING)
def test_on_a_full_disk_the_result_of_before_stays(posts, tmp_path, command, told):
    posts.write_text(posts.read_text() + ("no post\n" if command[1] == "--rejects" else ""))
    out = tmp_path / "out"
    out.write_text("of before")
    assert told(command[0], posts, command[1], out, full=True) == f"crisis: {out}: File too large"
    assert out.read_text() == "of before" and sorted(p.name for p in tmp_path.iterdir()) == ["out", "posts.jsonl"]


def test_vectors_are_written_as_numpy_reads_them(tmp_path):
    for count in (0, 3):
        file = posts_file(tmp_path / "some.jsonl", count)
        done = CliRunner().invoke(crisis, ["embed", str(file), "--out", str(tmp_path / "v")], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        rows = np.load(tmp_path / "v")
        assert rows.dtype == np.float32 and len(rows) == count and rows.shape[1] > 100


@pytest.mark.parametrize(("command", "out"), [("match", "--scores"), ("cluster", "--out")])
def test_deletions_are_left_out_and_counted_where_results_name_their_posts(tmp_path, command, out):
    file = posts_file(tmp_path / "posts.jsonl", 2, '{"id": "p0", "kind": "delete"}', '{"id": "p7", "text": "flood"}')
    done = CliRunner().invoke(crisis, [command, str(file), out, str(tmp_path / "o")], catch_exceptions=False)
    assert done.exit_code == 0 and "1 deletions left out" in done.output, done.output
    assert [json.loads(line)["id"] for line in (tmp_path / "o").read_text().splitlines()] == ["p0", "p1", "p7"]


def test_a_replay_says_why_lines_were_refused_and_where_they_are_kept(tmp_path):
    file = posts_file(tmp_path / "posts.jsonl", 0, "no post", "nor this", '{"id": "1"}')
    done = CliRunner().invoke(crisis, ["replay", str(file)], catch_exceptions=False)
    assert "3 rejected: bad_json 2, missing_text 1; `crisis replay" in done.output and "--rejects FILE`" in done.output
    kept = tmp_path / "kept"
    done = CliRunner().invoke(crisis, ["replay", str(file), "--rejects", str(kept)], catch_exceptions=False)
    assert f"{kept} holds them" in done.output and len(kept.read_text().splitlines()) == 3


LIST = b'[{"id": "1", "text": "water"},\n {"id": "2", "text": "food"}]'


@pytest.mark.parametrize(
    ("name", "held", "told"),
    [
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "is no text: JSON lines (a post a line), CSV or TSV are read"),
        ("a.json", LIST, "is one JSON list, and a post a line is read: make lines of it (`jq -c '.[]' FILE > posts"),
        ("a.json", LIST.replace(b"\n", b""), "(`jq -c '.[]' FILE > posts.jsonl`)"),
        ("a.json.gz", gzip.compress(LIST), "(`zcat FILE | jq -c '.[]' > posts.jsonl`)"),
        ("a.jsonl", gzip.compress(b"{}"), "is gzip: give it a name that ends in .gz"),
        ("a.jsonl.GZ", gzip.compress(b"{}"), "is gzip: give it a name that ends in .gz, in small letters"),
        ("a.xlsx", b"PK\x03\x04\x14\0", "is a zip file or a spreadsheet: unpack it, or save it as CSV"),
        ("a.csv", "id,text\n1,señal\n2,años\n".encode("latin-1"), "save it as UTF-8 (iconv -f CP1252 -t UTF-8)"),
        ("a.txt", b"[12:30] Ada: we need water\n", "holds no post that can be read: a line is such as"),
    ],
)
def test_a_replay_of_which_every_line_is_refused_fails_and_says_what_the_file_seems_to_be(tmp_path, name, held, told):
    file = tmp_path / name
    file.write_bytes(held)
    done = CliRunner().invoke(crisis, ["replay", str(file)], env={"COLUMNS": "400"})
    assert done.exit_code == 1
    last = done.output.splitlines()[-1]
    assert last.startswith((f"Error: every line was refused: {file} ", f"Error: {file} is one JSON list"))
    assert told.replace("FILE", str(file)) in last


def test_a_replay_of_a_file_without_posts_or_with_deletions_alone_is_no_failure(tmp_path):
    for lines in ([], ['{"id": "1", "kind": "delete"}', "no post"], ['{"id": "1", "text": "water"}', "no post"]):
        file = posts_file(tmp_path / "posts.jsonl", 0, *lines)
        assert CliRunner().invoke(crisis, ["replay", str(file)], catch_exceptions=False).exit_code == 0


@pytest.mark.parametrize("words", [("key", "FILE"), ("token", "ada", "--file", "FILE")], ids=["key", "token"])
def test_on_a_full_disk_no_secret_is_made_and_nothing_is_left_of_it(tmp_path, words, told):
    words = [tmp_path / "secret" if word == "FILE" else word for word in words]
    assert told(*words, full=True) == f"crisis: cannot write {tmp_path / 'secret'}: File too large"
    assert not list(tmp_path.iterdir())


def test_an_empty_key_file_is_neither_accepted_nor_protected(tmp_path):
    path = tmp_path / "key"
    path.touch()
    for words in ([str(path)], [str(path), "--if-missing"]):
        done = CliRunner().invoke(key, words)
        assert isinstance(done.exception, ConfigError) and "is there and empty: remove it" in str(done.exception)
    path.unlink()
    make_key(path)
    assert "is there already" in CliRunner().invoke(key, [str(path), "--if-missing"]).output


def test_an_empty_file_of_tokens_counts_as_missing(tmp_path):
    path = tmp_path / "tokens"
    path.touch()
    words = ["ada", "--file", str(path), "--if-missing"]
    assert CliRunner().invoke(token, words, obj=load_settings()).exit_code == 0
    kept = path.read_text()
    assert kept.startswith("ada look sha256:")
    assert "is there already" in CliRunner().invoke(token, words, obj=load_settings()).output
    assert path.read_text() == kept


@pytest.mark.parametrize("text", ["", "\n", "  \nsecond line"])
def test_a_secret_that_is_not_there_is_told_in_words(tmp_path, text):
    (tmp_path / "key").write_text(text)
    with pytest.raises(ConfigError, match=r"no secret in .*key: its first line is empty"):
        secret(tmp_path / "key")
