"""Calibration: what was measured holds for one encoder and one query version, and the bundle has all of it."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.calibration import (
    Calibration,
    Fallback,
    QueryCalibration,
    fallback_thresholds,
    material_hash,
    read_calibration,
)
from models.encoders.bundle import CALIBRATION
from models.encoders.load import FLOOD, load_encoder
from models.errors import BundleError
from models.matching import MatchConfig, Matcher
from models.queries import Query, aid_queries, background_texts, load_queries

QUERY = Query("need.boats", "need", "boats", "Boats", {"en": ["Bring a boat"]})


def calibrated(**fields):
    common = {"query_version": QUERY.version, "alert": 0.5, "suggestion": 0.4, "basis": "rate", "target": 0.001}
    one = QueryCalibration(**{**common, "posts": 9, "reached": 0.0, **fields})
    return Calibration("e1", "m", {QUERY.id: one}, Fallback(4.0, 3.0, 0.001, 0.01))


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1)), min_size=1, max_size=8, unique_by=lambda k: k[0]),
    st.lists(st.floats(-1, 1), min_size=2, max_size=20),
)
def test_probability_never_falls_as_the_score_rises(knots, scores):
    at, precision = sorted(k for k, _ in knots), sorted(p for _, p in knots)
    found = calibrated(curve=list(zip(at, precision, strict=True)))
    given_ = found.probabilities(QUERY, np.array(sorted(scores)))
    assert given_ == sorted(given_)
    assert all(0 <= p <= 1 for p in given_)


def test_there_is_no_probability_where_no_labels_allowed_one():
    assert calibrated().probabilities(QUERY, np.array([0.9])) is None


def test_thresholds_curve_and_direction_hold_for_one_version_of_a_query_only():
    edited = msgspec.structs.replace(QUERY, sentences={"en": ["Bring two boats"]})
    found = calibrated(curve=[(0.1, 0.2)], direction=[0.0, 1.0])
    assert found.thresholds(QUERY) == (0.5, 0.4)
    assert found.thresholds(edited) is None
    assert found.probabilities(edited, np.array([0.9])) is None
    assert found.direction(edited) is None


@given(st.lists(st.floats(-1, 1, width=32), max_size=50))
def test_a_query_nobody_calibrated_alerts_above_where_it_suggests(scores):
    for known in (None, calibrated()):
        alert, suggestion = fallback_thresholds((np.mean(scores), np.std(scores)) if len(scores) > 1 else None, known)
        assert alert >= suggestion
        assert suggestion >= (np.mean(scores) if len(scores) > 1 else 0) - 1e-6


def test_a_calibration_of_another_encoder_or_a_damaged_one_is_refused(tmp_path):
    path = tmp_path / CALIBRATION
    with pytest.raises(BundleError, match="is not there"):
        read_calibration(path, "e1")
    path.write_bytes(msgspec.json.encode(calibrated()))
    assert read_calibration(path, "e1") == calibrated()
    with pytest.raises(BundleError, match="e2"):
        read_calibration(path, "e2")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(BundleError, match=CALIBRATION):
        read_calibration(path, "e1")


@pytest.fixture(scope="module")
def bundled():
    encoder = load_encoder("flood")
    return encoder, read_calibration(FLOOD / CALIBRATION, encoder.version)


@pytest.mark.data
def test_the_bundle_is_calibrated_for_every_bundled_need_and_offer_and_what_they_are_told_apart_from(bundled, data_dir):
    """Asked only where it can be calibrated anew: a new query pack works without, by the fallback, and is told.

    Notices have no labels to calibrate them by without a head: they alert by the fallback and are never suggested.
    """
    _, found = bundled
    queries = aid_queries()
    again = "rerun `python -m training.calibrate laptop`"
    assert {q.id: q.version for q in queries} == {k: v.query_version for k, v in found.queries.items()}, again
    assert found.material == material_hash(background_texts(), queries), again


def test_thresholds_of_calibrated_queries_are_scores_the_higher_one_alerts(bundled):
    _, found = bundled
    known = [thresholds for query in load_queries() if (thresholds := found.thresholds(query))]
    assert len(known) >= 30
    for alert, suggestion in known:
        assert -1 < suggestion <= alert < 1


def test_curves_of_the_bundle_rise_and_directions_have_its_dimension(bundled):
    encoder, found = bundled
    labelled = [c for c in found.queries.values() if c.curve]
    assert len(labelled) >= 8
    for one in labelled:
        at, precision = zip(*one.curve, strict=True)
        assert list(at) == sorted(set(at))
        assert list(precision) == sorted(precision)
    assert {len(c.direction) for c in found.queries.values()} == {encoder.dim + 1}


def test_bundled_background_texts_alert_nobody(bundled):
    encoder, found = bundled
    matcher = Matcher(MatchConfig(), load_queries(), encoder, background_texts(), found)
    texts = background_texts()
    alerts = [m for m in matcher.match(texts, encoder.encode(texts), encoder.version) if m.level == "alert"]
    assert len(alerts) <= len(texts) // 100


def test_a_query_added_by_a_person_finds_its_like_and_lets_ordinary_texts_pass(bundled):
    encoder, found = bundled
    boats = Query(
        "need.boats", "need", "boats", "Boats", {"en": ["Bring a boat, we are cut off by the river", "We need boats"]}
    )
    matcher = Matcher(MatchConfig(), [boats], encoder, background_texts(), found)
    posts = ["please bring a boat, the river cut us off", "we need a boat", *background_texts()]
    matches = matcher.match([str(i) for i in range(len(posts))], encoder.encode(posts), encoder.version)
    assert {m.post_id for m in matches} >= {"0", "1"}
    assert len(matches) <= 2 + len(posts) // 50
