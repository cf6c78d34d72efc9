"""Calibration's arithmetic against brute force; the whole job on a small sample where the data are."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.calibration import Calibration, Fallback, read_calibration
from models.encoders.bundle import CALIBRATION, add_file, write_bundle
from models.encoders.load import FLOOD
from models.errors import ConfigError
from models.query_ridge import moments, solve
from models.reading import Head, Terms
from tests.models.tiny_bundle import tiny_files, tiny_manifest
from training import calibrate
from training.calibrate_directions import labelled_groups, score, with_near_misses
from training.thresholds import (
    group_weights,
    lowest_reaching,
    probability_curve,
    rate_threshold,
    weighted_quantile_over,
)

scored = st.lists(st.tuples(st.integers(-20, 20), st.booleans()), min_size=1, max_size=40)


@given(scored, st.floats(0.001, 0.9))
def test_no_more_than_the_rate_passes_and_no_lower_score_would_do(rows, rate):
    scores = np.array([s for s, _ in rows]) / 20
    weights = np.full(len(rows), 1 / len(rows))
    at = weighted_quantile_over(scores, weights, rate)
    assert weights[scores >= at].sum() <= rate + 1e-9
    lower = scores[scores < at]
    if len(lower):
        assert weights[scores >= lower.max()].sum() > rate - 1e-9


@given(scored, st.floats(0.1, 1), st.integers(1, 5))
def test_the_lowest_threshold_that_reaches_a_precision_equals_the_search_by_hand(rows, target, enough):
    rng = np.random.default_rng(len(rows))
    scores = np.array([s for s, _ in rows]) + rng.permutation(len(rows)) / 1000  # no ties
    positive = np.array([p for _, p in rows])
    fits = [t for t in scores if (over := scores >= t).sum() >= enough and positive[over].mean() >= target - 1e-12]
    assert lowest_reaching(scores, positive, target, enough) == (pytest.approx(min(fits)) if fits else None)


@given(st.integers(0, 10_000), st.integers(0, 300))
@settings(max_examples=40)
def test_a_curve_rises_in_both_and_stays_between_none_and_all(seed, n):
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    curve = probability_curve(scores, rng.random(n) < scores, start=0.1)
    at, precision = [x for x, _ in curve], [y for _, y in curve]
    assert at == sorted(set(at))
    assert precision == sorted(precision)
    assert all(0 <= y <= 1 for y in precision)


def test_the_curve_finds_the_precision_it_was_given():
    rng = np.random.default_rng(1)
    scores = rng.random(20_000)
    curve = probability_curve(scores, rng.random(20_000) < scores, start=0.0, bins=20)
    assert max(abs(x - y) for x, y in curve) < 0.03


def test_no_language_may_exceed_the_rate_by_far():
    rng = np.random.default_rng(3)
    groups = np.array(["en"] * 9_000 + ["ht"] * 1_000)
    scores = rng.standard_normal(10_000) + np.where(groups == "ht", 2.0, 0.0)
    weights = np.full(10_000, 1e-4)
    at = rate_threshold(scores, weights, groups, rate=0.01, factor=3.0)
    assert (scores[groups == "ht"] >= at).mean() <= 0.03
    assert at > weighted_quantile_over(scores, weights, 0.01)
    assert rate_threshold(scores, weights, groups, rate=0.01, factor=50.0) == weighted_quantile_over(
        scores, weights, 0.01
    )


def test_languages_weigh_the_same_and_make_one_half():
    weights = group_weights(np.array(["en"] * 6 + ["ht"] * 2 + ["chatter a"] * 4))
    assert weights == pytest.approx([0.25 / 6] * 6 + [0.25 / 2] * 2 + [0.5 / 4] * 4)


def test_labels_turn_a_direction_towards_what_people_marked():
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((400, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    about = vectors[:, 0] > 0.3  # what the query's own sentences, along axis 1, do not say
    groups = [(1.0, moments(np.eye(8, dtype=np.float32)[[1]], 1.0)), (2.0, moments(-np.eye(8, dtype=np.float32)[[1]]))]
    plain = solve(groups)
    taught = solve([*groups, *labelled_groups(vectors, about, about, weight=1.0, reported=0.5)])
    assert abs(plain[0]) < 1e-3
    assert taught[0] > 0.3


def test_near_misses_are_scored_lower_than_before():
    rng = np.random.default_rng(2)
    everyday = rng.standard_normal((500, 8)).astype(np.float32)
    everyday /= np.linalg.norm(everyday, axis=1, keepdims=True)
    groups = [(1.0, moments(np.eye(8, dtype=np.float32)[[1]], 1.0)), (2.0, moments(everyday[:20]))]
    accent = np.zeros((1, 9), np.float32)
    first = score(solve(groups) + accent, everyday)
    near = np.argsort(-first)[:25]
    again = score(with_near_misses(groups, accent, everyday, weight=1.0, share=0.05) + accent, everyday)
    assert again[near].mean() < first[near].mean() - 0.1


def test_a_version_with_a_head_keeps_it_and_the_way_to_measure_it_anew_is_told(tmp_path):
    draft = write_bundle(tmp_path / "b", tiny_manifest(), tiny_files())
    head = Head(["need.water"], [[0.0] * 8], [0.0], Terms(1.0), Terms(1.0))
    known = Calibration(draft.id, "m", {}, Fallback(6.0, 3.5, 0.0, 0.0), head=head)
    add_file(tmp_path / "b", CALIBRATION, msgspec.json.encode(known))
    with pytest.raises(ConfigError, match="has a head.*`python -m training.head laptop encoder=.*b`"):
        calibrate.main(calibrate.Config(encoder=str(tmp_path / "b")))
    assert read_calibration(tmp_path / "b" / CALIBRATION, draft.id).head == head


def test_the_job_calibrates_every_query_tells_what_it_measured_and_writes_nothing_that_is_shipped(
    data_dir, tmp_path, monkeypatch, capsys
):
    cache, result = tmp_path / "cache", tmp_path / "result.json"
    cache.mkdir()
    monkeypatch.setenv("CRISIS_CACHE", str(cache))
    monkeypatch.chdir(cache)
    shipped = (FLOOD / "calibration.json").read_bytes()
    found = calibrate.main(msgspec.structs.replace(calibrate.PRESETS["smoke"], result=str(result)))
    assert (FLOOD / "calibration.json").read_bytes() == shipped
    assert [path.name for path in cache.iterdir()] == ["calibration.json"]
    assert msgspec.json.decode((cache / "calibration.json").read_bytes(), type=type(found)) == found
    metrics = msgspec.json.decode(result.read_bytes())["metrics"]
    assert set(metrics["thresholds"]) == set(found.queries)
    assert metrics["ranking"]["ht"]["mean"] > metrics["ranking_without_labels"]["ht"]
    assert 0 < metrics["demo"]["own_alerted"] <= metrics["demo"]["own_suggested"] <= 1
    assert "AP held out" in capsys.readouterr().out
