"""Replay: deterministic, complete, and the file commands' formats."""

import gzip
import json
import os
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from models.encoders.bundle import read_bundle
from models.encoders.load import BUNDLED, load_encoder
from models.encoders.ready import load, ready
from models.errors import ConfigError
from models.queries import load_queries
from streams.cli import crisis
from streams.commands.replay import replay_file
from streams.config import load_settings
from streams.ingest.lines import open_lines, read_frames

DEMO = Path(__file__).parents[2] / "streams" / "data" / "demo.jsonl"


@pytest.fixture
def posts(tmp_path):
    file = tmp_path / "posts.jsonl"
    texts = ["we need water", "nous avons besoin d'eau", "football tonight", "我们被困在屋顶上", "we need water now"]
    file.write_text("".join(json.dumps({"id": f"p{n}", "text": t}) + "\n" for n, t in enumerate(texts)))
    return file


def crisis_run(*args):
    done = CliRunner().invoke(crisis, [str(a) for a in args], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def test_the_same_file_twice_gives_the_same_bytes(tmp_path):
    outs = []
    for run in "ab":
        alerts, clusters = tmp_path / f"{run}.alerts", tmp_path / f"{run}.clusters"
        crisis_run("replay", DEMO, "--alerts", alerts, "--clusters", clusters)
        outs.append((alerts.read_bytes(), clusters.read_bytes()))
    assert outs[0] == outs[1]
    assert all(outs[0])


def test_posts_go_through_the_default_encoder_which_alerts_the_needs_and_offers_among_them(tmp_path, monkeypatch):
    """The other tests read with the static encoder; this one with what people get who set nothing."""
    monkeypatch.delenv("CRISIS_ENCODER__REF")
    labelled = [json.loads(line) for line in DEMO.read_bytes().splitlines() if b'"gold": "' in line]
    wanted = {kind: [post for post in labelled if post["gold"].startswith(kind)][:4] for kind in ("need", "offer")}
    quiet = [post for post in labelled if post["gold"] == "chatter"][:4]
    chosen = [*wanted["need"], *wanted["offer"], *quiet]
    file = tmp_path / "few.jsonl"
    file.write_text("".join(json.dumps(post) + "\n" for post in chosen))
    done = replay_file(load_settings(), file, 1_795_200_000.0, version="own")
    assert done.encoder.version == read_bundle(BUNDLED["reader"]).id
    assert done.totals.check() and done.totals.counts["read"] == len(chosen) == 12
    told = list(done.alerts.by_id.values())
    assert not {post["id"] for post in quiet} & {a.post.id for a in told if a.level == "alert"}
    kinds = {a.post.id: a.kind for a in told}
    assert sum(kinds.get(post["id"]) == kind for kind, posts in wanted.items() for post in posts) >= 5


def test_every_line_of_the_demo_is_accounted_for():
    done = replay_file(load_settings(), DEMO, 1_795_200_000.0)
    assert done.totals.check()
    assert done.totals.counts["read"] == sum(bool(line.strip()) for line in DEMO.read_bytes().splitlines())
    assert done.totals.counts["rejected"] == done.refused.total()


@pytest.mark.parametrize(
    "command",
    [("replay", "--alerts"), ("replay", "--rejects"), ("match", "--scores"), ("embed", "--out"), ("cluster", "--out")],
)
def test_the_file_that_is_read_is_never_written_and_the_folder_of_the_other_must_be_there(posts, tmp_path, command):
    before = posts.read_bytes()
    for out, told in ((posts, "is the file that is read"), (tmp_path / "none" / "x", "there is no folder")):
        done = CliRunner().invoke(crisis, [command[0], str(posts), command[1], str(out)])
        assert done.exit_code and told in done.output and done.exception.__class__ is SystemExit
    assert posts.read_bytes() == before


def test_neither_the_vectors_that_are_read_nor_one_name_for_two_results_is_written(posts, tmp_path):
    vectors = tmp_path / "v.npy"
    np.save(vectors, np.eye(5, dtype=np.float32))
    before = vectors.read_bytes()
    done = CliRunner().invoke(crisis, ["cluster", str(posts), "--vectors", str(vectors), "--out", str(vectors)])
    assert done.exit_code and "is the file that is read" in done.output and vectors.read_bytes() == before
    done = CliRunner().invoke(
        crisis, ["replay", str(posts), "--alerts", str(tmp_path / "x"), "--clusters", str(tmp_path / "x")]
    )
    assert done.exit_code and "is named twice" in done.output and not (tmp_path / "x").exists()


def test_a_result_is_written_through_a_link(posts, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "scores.jsonl")
    crisis_run("match", posts, "--scores", tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and len((tmp_path / "scores.jsonl").read_text().splitlines()) == 5


def test_a_run_that_fails_leaves_the_scores_of_before(posts, tmp_path):
    scores = tmp_path / "scores.jsonl"
    scores.write_text("of before")
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(posts.read_bytes() + b"no post\n")
    assert CliRunner().invoke(crisis, ["match", str(bad), "--scores", str(scores)]).exit_code
    assert scores.read_text() == "of before" and sorted(p.name for p in tmp_path.iterdir()) == [
        "bad.jsonl",
        "posts.jsonl",
        "scores.jsonl",
    ]


def test_frames_keep_every_line_whatever_the_line_ends():
    lines = [b"a\n", b"\n", b"b\r\n", b"c"]
    assert list(read_frames(iter(lines), 2)) == [b"a\nb", b"c"]


def test_embed_writes_unit_rows_in_file_order(posts, tmp_path):
    out = tmp_path / "v.npy"
    crisis_run("embed", posts, "--out", out)
    rows = np.load(out)
    texts = [json.loads(line)["text"] for line in posts.read_text().splitlines()]
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert np.allclose(rows, load_encoder("flood").encode(texts), atol=1e-5)


def test_match_writes_every_querys_score_of_every_post(posts, tmp_path):
    out = tmp_path / "s.jsonl"
    crisis_run("match", posts, "--scores", out)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    matcher = ready(load("flood"), load_queries(), load_settings().match).matcher
    expected = matcher.scores(load_encoder("flood").encode(["we need water"]))[0]
    assert [r["id"] for r in rows] == [f"p{n}" for n in range(5)]
    assert set(rows[0]["scores"]) == {q.id for q in load_queries()}
    assert np.allclose([rows[0]["scores"][q.id] for q in matcher.queries], expected, atol=1e-4)


def test_cluster_writes_arrival_and_settled_cluster_of_every_post(tmp_path):
    file, vectors, out = tmp_path / "p.jsonl", tmp_path / "v.npy", tmp_path / "c.jsonl"
    rng = np.random.default_rng(0)
    centres = np.linalg.qr(rng.standard_normal((32, 4)))[0].T
    rows = centres[np.arange(40) % 4] + 0.02 * rng.standard_normal((40, 32))
    np.save(vectors, (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32))
    texts = ["school roof collapsed", "bridge closed north", "harbour water tanker", "clinic needs generator"]
    file.write_text("".join(json.dumps({"id": f"p{n}", "text": f"{texts[n % 4]} {n}"}) + "\n" for n in range(40)))
    crisis_run("cluster", file, "--vectors", vectors, "--out", out)
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert [f["id"] for f in found] == [f"p{n}" for n in range(40)]
    assert len({f["cluster"] for f in found}) == 4
    assert all(found[n]["cluster"] == found[n % 4]["cluster"] for n in range(40))


def test_more_vectors_than_posts_are_refused_too(posts, tmp_path):
    np.save(tmp_path / "v.npy", np.eye(7, 8, dtype=np.float32))
    done = CliRunner().invoke(
        crisis, ["cluster", str(posts), "--vectors", str(tmp_path / "v.npy"), "--out", str(tmp_path / "c.jsonl")]
    )
    assert done.exit_code == 1 and "7 rows of vectors for the 5 posts" in done.output
    assert not (tmp_path / "c.jsonl").exists()


@pytest.mark.parametrize(
    "content, told",
    [
        (np.ones(5, np.float32), r"float32 of shape \(5,\)"),
        (np.ones((5, 8), int), "int64"),
        (np.full((5, 8), np.nan), "finite"),
        (np.ones((5, 0)), r"shape \(5, 0\)"),
        (b"1.0 2.0\n", "no NumPy file"),
        (b"", "no NumPy file"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused_as_vectors(posts, tmp_path, content, told):
    path = tmp_path / "v.npy"
    path.write_bytes(content) if isinstance(content, bytes) else np.save(path, content)
    done = CliRunner().invoke(
        crisis, ["cluster", str(posts), "--vectors", str(path), "--out", str(tmp_path / "c.jsonl")]
    )
    assert done.exit_code == 1 and re.search(told, done.output.replace("\n", " ")), done.output


@pytest.mark.parametrize(
    "name, commands",
    [
        ("posts.csv", {"replay": "--alerts", "embed": "--out"}),
        ("posts.tsv.gz", {"match": "--scores", "cluster": "--out"}),
    ],
)
def test_a_table_gives_what_the_same_posts_give_as_json_lines(posts, tmp_path, name, commands):
    rows = [json.loads(line) for line in posts.read_text().splitlines()]
    delimiter = "\t" if "tsv" in name else ","
    table = "".join(
        delimiter.join(row) + "\n" for row in [["tweet_id", "tweet"], *([r["id"], r["text"]] for r in rows)]
    )
    path = tmp_path / name
    path.write_bytes(gzip.compress(table.encode()) if name.endswith(".gz") else table.encode())
    for command, option in commands.items():
        outs = []
        for file in (posts, path):
            os.utime(file, (1.8e9, 1.8e9))
            outs.append(tmp_path / f"{command}-{file.name}.out")
            crisis_run(command, file, option, outs[-1])
        assert outs[0].read_bytes() == outs[1].read_bytes() != b"", command


def test_a_table_without_a_text_is_told_with_its_columns(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("id,mood\n1,fine\n")
    done = CliRunner().invoke(crisis, ["embed", str(path), "--out", str(tmp_path / "v")])
    assert isinstance(done.exception, ConfigError) and "id, mood" in str(done.exception)


def test_an_empty_text_has_a_row_everywhere_and_embed_writes_the_very_file_it_is_given(tmp_path):
    file, out = tmp_path / "p.jsonl", tmp_path / "vec"
    file.write_text('{"id": "a", "text": "we need water"}\n{"id": "b", "text": ""}\n{"id": "c", "text": " \\n"}\n')
    done = crisis_run("embed", file, "--out", out)
    rows = np.load(out)
    assert rows.shape[0] == 3 and np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert "3 rows" in done.output and "vec" in done.output
    crisis_run("match", file, "--scores", tmp_path / "s.jsonl")
    crisis_run("cluster", file, "--out", tmp_path / "c.jsonl")
    for name in ("s.jsonl", "c.jsonl"):
        assert [json.loads(line)["id"] for line in (tmp_path / name).read_text().splitlines()] == ["a", "b", "c"]
    assert replay_file(load_settings(), file, 1_795_200_000.0).totals.counts["rejected"] == 2  # live, it is no post


def test_replay_listens_for_the_queries_of_other_packs(posts, tmp_path):
    (tmp_path / "packs").mkdir()
    pack = {
        "category": "football",
        "label": "Football",
        "iasc": "CCCM",
        "hxl": {},
        "need": {"en": ["we want to watch football tonight"]},
    }
    (tmp_path / "packs" / "football.yaml").write_bytes(msgspec.yaml.encode(pack))
    crisis_run("replay", posts, "--packs", tmp_path / "packs", "--alerts", tmp_path / "a.jsonl")
    found = {json.loads(line)["query_id"] for line in (tmp_path / "a.jsonl").read_text().splitlines()}
    assert found == {"need.football"}


def test_vectors_that_do_not_fit_the_posts_are_refused_with_the_numbers(posts, tmp_path):
    np.save(tmp_path / "v.npy", np.zeros((3, 8), np.float32))
    done = CliRunner().invoke(
        crisis, ["cluster", str(posts), "--vectors", str(tmp_path / "v.npy"), "--out", str(tmp_path / "c.jsonl")]
    )
    assert done.exit_code == 1
    assert "3 rows of vectors for the 5 posts" in done.output


@pytest.mark.parametrize(
    "line, why", [('{"id": "b"}', "text"), ('{"id": "a", "kind": "delete"}', "a deletion has no row")]
)
def test_a_line_that_is_no_post_stops_embed_with_its_number(tmp_path, line, why):
    file = tmp_path / "p.jsonl"
    file.write_text('{"id": "a", "text": "fine"}\n\n' + line + "\n")
    done = CliRunner().invoke(crisis, ["embed", str(file), "--out", str(tmp_path / "v.npy")])
    assert done.exit_code != 0
    assert "line 3: " in done.output and why in done.output


@pytest.mark.parametrize("content", [b"no gzip at all", gzip.compress(b'{"id": "a", "text": "fine"}\n' * 999)[:-20]])
def test_a_gzip_file_that_is_none_or_is_cut_off_is_told(tmp_path, content):
    file = tmp_path / "p.jsonl.gz"
    file.write_bytes(content)
    done = CliRunner().invoke(crisis, ["replay", str(file)])
    assert isinstance(done.exception, ConfigError) and "not a whole gzip file" in str(done.exception)


@pytest.mark.parametrize("name", ["posts.jsonl", "posts.csv"])
def test_a_line_that_live_ingest_refuses_is_refused_in_a_replay_and_read_in_bounded_memory(tmp_path, name):
    """One reader for both: what no broker would take is no post here either."""
    text = "water " * 160_000
    file = tmp_path / name
    rows = [{"id": "long", "text": text}, {"id": "fine", "text": "we need water"}]
    lines = [json.dumps(row) for row in rows]
    file.write_text(
        "\n".join(lines if name.endswith("jsonl") else ["id,text", *(f"{r['id']},{r['text']}" for r in rows)])
    )
    done = replay_file(load_settings(), file, 1_795_200_000.0, version="own")
    assert done.totals.counts["read"] == 2 and [r.reason for r in done.rejects] == ["too_large"]
    with open_lines(file) as read:
        assert max(map(len, read)) < 10_000
