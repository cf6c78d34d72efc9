"""The figures reported about clusters are the published ones, and the job that makes them runs end to end."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.encoders.bundle import CLUSTERS
from models.encoders.load import BUNDLED
from training import evaluate_clusters, evaluate_likely
from training.evaluate_clusters import PRESETS, SWEEP_GAPS, SWEEP_MERGE, Config, b_cubed, scores
from training.jobs import read_config


@pytest.mark.parametrize("found, published", [("aaaaabbbbbbb", 0.76), ("aaaaabbaaaaa", 0.58)])
def test_b_cubed_equals_the_published_example(found, published):
    """Bagga & Baldwin 1998, the two responses to a truth of 5, 2 and 5 mentions: precision 76 % and 58 %."""
    precision, recall, f1 = b_cubed("111112233333", found)
    assert round(precision, 2) == published and recall == 1.0
    assert f1 == pytest.approx(2 * precision / (precision + 1))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40))
def test_b_cubed_equals_its_definition_post_by_post(pairs):
    gold, found = zip(*pairs, strict=True)
    everyone = range(len(pairs))
    shares = []
    for a in everyone:
        mates = [b for b in everyone if found[b] == found[a]]
        kin = [b for b in everyone if gold[b] == gold[a]]
        both = len(set(mates) & set(kin))
        shares.append((both / len(mates), both / len(kin)))
    precision, recall = (sum(column) / len(pairs) for column in zip(*shares, strict=True))
    assert b_cubed(gold, found)[:2] == pytest.approx((precision, recall))
    assert b_cubed(found, gold)[:2] == pytest.approx((recall, precision))


def test_a_perfect_answer_scores_one_everywhere():
    figures = scores([1, 1, 2, 3], ["x", "x", "y", "z"])
    assert [figures[k] for k in ("b3_precision", "b3_recall", "b3_f1", "nmi", "ari")] == [1.0] * 5
    assert (figures["clusters"], figures["clusters_of_5"], figures["biggest_share"]) == (3, 0, 0.5)


def plant(tmp_path, monkeypatch, spread, text="flood in place{topic}"):
    """A stream of 900 posts about six things, and its vectors as x.npy. spread: of those about one thing."""
    rng = np.random.default_rng(0)
    topic = rng.integers(0, 6, 900)
    vectors = rng.standard_normal((6, 64))[topic] + spread * rng.standard_normal((900, 64))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    (tmp_path / "stream-planted").mkdir()
    rows = [
        {"id": f"{i}", "text": text.format(topic=t, post=chr(0x4E00 + i) * 3), "cluster": int(t)}
        for i, t in enumerate(topic)
    ]
    with gzip.open(tmp_path / "stream-planted" / "stream.jsonl.gz", "wt") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows))
    np.save(tmp_path / "x.npy", vectors)
    monkeypatch.setenv("CRISIS_DATA", str(tmp_path))


def test_the_job_scores_a_planted_stream_and_writes_what_it_ran_on(tmp_path, monkeypatch, capsys):
    plant(tmp_path, monkeypatch, 0.3)
    out = tmp_path / "result.json"
    config = Config("stream-planted", vectors=str(tmp_path / "x.npy"), encoder="planted", out=str(out), suggest=False)
    result = evaluate_clusters.main(config)
    assert result["final"]["b3_f1"] == 1.0 and result["settled"]["b3_f1"] == 1.0 and result["posts"] == 900
    written = json.loads(out.read_text())
    assert written["metrics"] == json.loads(json.dumps(result)) and len(written["data_hash"]) == 16
    assert "final" in capsys.readouterr().out


def test_likely_clusters_are_where_posts_end_and_are_told_before(tmp_path, monkeypatch):
    plant(tmp_path, monkeypatch, 1.2, "{post}")  # so wide, and without a word in common, that a post begins alone
    out = tmp_path / "likely.json"
    config = evaluate_likely.Config("stream-planted", 20.0, "planted", str(tmp_path / "x.npy"), str(out))
    result = evaluate_likely.main(config)
    assert result["posts"] == 900 and result["likely"] > 20 and result["right"] > 0.8
    with_them, without = (result["wait_s"][name] for name in ("with", "without"))
    assert with_them["p50"] < without["p50"] / 2 and with_them["p99"] < without["p99"]
    assert json.loads(out.read_text())["metrics"] == result


def test_a_preset_and_its_knobs_come_from_the_command_line():
    config = read_config(PRESETS, ["crisis-t26", "t_attach=0.45", "suggest=true"])
    assert (config.stream, config.t_attach, config.suggest) == ("stream-crisis-t26", 0.45, True)


@pytest.mark.parametrize("name", BUNDLED)
def test_what_is_shipped_lies_on_the_grid_that_is_tried_so_that_the_choice_can_be_repeated(name):
    shipped = json.loads((BUNDLED[name] / CLUSTERS).read_text())
    assert shipped["t_merge"] in SWEEP_MERGE
    assert round(shipped["t_attach"] - shipped["t_merge"], 4) in SWEEP_GAPS
