"""Matching: equals the loop one would write by hand, and its laws."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.calibration import Calibration, Fallback, QueryCalibration
from models.encoders.load import load_encoder
from models.errors import VersionMismatch
from models.matching import READINGS, MatchConfig, Matcher
from models.queries import Query
from models.query_ridge import ACCENT, AGAINST, OPPOSITE, RIDGE
from models.reading import Head, Terms

WATER = Query(
    "need.water",
    "need",
    "water",
    "Water",
    {"en": ["We need drinking water", "Our taps are dry"], "ht": ["Nou bezwen dlo"]},
)
GIVEN = Query("offer.water", "offer", "water", "Water", {"en": ["Free bottled water at our door"]})
FOOD = Query("need.food", "need", "food", "Food", {"en": ["We are hungry"], "fr": ["Nous n'avons rien à manger"]})
BOATS = Query("need.boats", "need", "boats", "Boats", {"en": ["Bring a boat, we are cut off by the river"]})
QUERIES = [WATER, GIVEN, FOOD, BOATS]
BACKGROUND = [
    "A slow Sunday with tea",
    "The minister spoke about roads",
    "Quel beau match hier soir",
    "Trafic te blo jodi a",
]
POSTS = [
    "We need water, the taps are dry since Monday",
    "nou bezwen dlo tanpri",
    "free water bottles at the church door",
    "nothing to eat here, the kids are hungry",
    "what a goal!",
    "send a boat, the river is all around us",
    "",
    "…",
    "The minister spoke about the roads again",
]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("flood")


@pytest.fixture(scope="module")
def vectors(encoder):
    return encoder.encode(POSTS)


def make(encoder, queries, config=None, **rest):
    return Matcher(config or MatchConfig(), queries, encoder, BACKGROUND, contrast=QUERIES, **rest)


def calibration(version, contrast=MatchConfig.contrast, **queries):
    return Calibration(version, "m", queries, Fallback(4.0, 3.0, 0.001, 0.01), contrast)


def brute_force(encoder, query, texts):
    """Scores of one query by the normal equations, one weighted row at a time."""
    groups = [
        (1.0, 1.0, [t for _, t in query.texts()]),
        (AGAINST * MatchConfig.contrast, 0.0, BACKGROUND),
        (
            AGAINST * (1 - MatchConfig.contrast),
            0.0,
            [t for q in QUERIES if q.category != query.category for _, t in q.texts()],
        ),
        (
            OPPOSITE,
            0.0,
            [t for q in QUERIES if q.category == query.category and q.kind != query.kind for _, t in q.texts()],
        ),
    ]
    left, right = np.zeros((encoder.dim + 1,) * 2), np.zeros(encoder.dim + 1)
    for weight, target, rows in groups:
        for text in rows:
            row = np.append(encoder.encode([text])[0], 1.0).astype(np.float64)
            left += weight / len(rows) * np.outer(row, row)
            right += weight / len(rows) * target * row
    left[np.arange(encoder.dim), np.arange(encoder.dim)] += RIDGE
    inverse = np.linalg.inv(left)
    means = {lang: np.append(encoder.encode(texts).mean(0), 1.0) for lang, texts in query.sentences.items()}
    middle = sum(means.values()) / len(means)
    found = []
    for text in texts:
        row = np.append(encoder.encode([text])[0], 1.0)
        by_language = [row @ inverse @ (right + ACCENT * (mean - middle)) for mean in means.values()]
        found.append(float(np.clip(max(by_language), -1, 1)))
    return found


def test_scores_equal_the_brute_force_loop(encoder, vectors):
    scores = make(encoder, QUERIES).scores(vectors)
    for index, query in enumerate(sorted(QUERIES, key=lambda q: q.id)):
        assert scores[:, index] == pytest.approx(brute_force(encoder, query, POSTS), abs=2e-5)


def test_what_a_query_asks_for_scores_above_what_it_does_not(encoder, vectors):
    matcher = make(encoder, QUERIES)
    scores = dict(zip((q.id for q in matcher.queries), matcher.scores(vectors).T, strict=True))
    assert scores["need.water"].argmax() in (0, 1)
    assert scores["offer.water"].argmax() == 2
    assert scores["need.food"].argmax() == 3
    assert scores["need.boats"].argmax() == 5


@given(st.permutations(range(len(POSTS))))
@settings(max_examples=20, deadline=None)
def test_the_order_of_posts_does_not_matter(encoder_and_matcher, order):
    vectors, matcher = encoder_and_matcher
    ids = [f"p{i}" for i in range(len(POSTS))]
    whole = matcher.match(ids, vectors, matcher.encoder_version)
    mixed = matcher.match([ids[i] for i in order], vectors[order], matcher.encoder_version)
    assert {(m.post_id, m.query_id, m.level, m.score) for m in mixed} == {
        (m.post_id, m.query_id, m.level, m.score) for m in whole
    }
    assert [m.post_id for m in mixed] == sorted((m.post_id for m in mixed), key=[ids[i] for i in order].index)


@pytest.fixture(scope="module")
def encoder_and_matcher(encoder, vectors):
    return vectors, make(encoder, QUERIES)


words = st.lists(
    st.sampled_from("we need free water food boat roof help river tea match bring please".split()),
    min_size=1,
    max_size=8,
)


@given(
    active=st.sets(st.integers(0, len(QUERIES) - 1)),
    added=st.lists(words.map(" ".join), min_size=1, max_size=3),
    posts=st.lists(words.map(" ".join), min_size=1, max_size=6),
)
@settings(max_examples=30, deadline=None)
def test_adding_a_query_never_changes_another_querys_score_or_removes_a_likelier_reading(encoder, active, added, posts):
    before = [QUERIES[i] for i in sorted(active)]
    new = Query("need.invented", "need", "invented", "Invented", {"en": added}, threshold=-1.0)
    vectors, ids = encoder.encode(posts), [str(i) for i in range(len(posts))]
    without, with_new = make(encoder, before), make(encoder, [*before, new])
    place = [i for i, query in enumerate(with_new.queries) if query.id != new.id]
    np.testing.assert_allclose(with_new.scores(vectors)[:, place], without.scores(vectors), atol=1e-6)
    joined = with_new.match(ids, vectors, encoder.version)
    for match in without.match(ids, vectors, encoder.version):
        likelier = [m for m in joined if m.post_id == match.post_id and m.probability >= match.probability]
        kept = any((m.post_id, m.query_id) == (match.post_id, match.query_id) for m in joined)
        assert kept or len(likelier) >= READINGS


def test_a_post_has_at_most_three_readings(encoder):
    many = [Query(f"need.kind{i}", "need", f"kind{i}", "x", {"en": ["We need water"]}, threshold=0.0) for i in range(9)]
    found = make(encoder, many).match(["p"], encoder.encode(["We need water"]), encoder.version)
    assert len(found) == READINGS == 3


def test_vectors_of_another_version_or_dimension_are_refused(encoder, vectors):
    matcher = make(encoder, QUERIES)
    with pytest.raises(VersionMismatch, match="other-1"):
        matcher.match(["p"] * len(vectors), vectors, "other-1")
    with pytest.raises(VersionMismatch, match="dim"):
        matcher.scores(vectors[:, :-1])


def test_a_calibration_of_another_encoder_or_contrast_is_refused(encoder):
    with pytest.raises(VersionMismatch, match="other-1"):
        make(encoder, QUERIES, calibration=calibration("other-1"))
    with pytest.raises(VersionMismatch, match=r"contrast=0\.75"):
        make(encoder, QUERIES, calibration=calibration(encoder.version, contrast=0.3))
    head = Head([], [], [], Terms(1.0), Terms(1.0))
    for version, contrast, told in (
        ("other-1", 0.75, "training.head laptop encoder=DIR`$"),
        (encoder.version, 0.3, "set it back$"),
    ):
        with pytest.raises(VersionMismatch, match=told):
            make(encoder, QUERIES, calibration=msgspec.structs.replace(calibration(version, contrast), head=head))


def test_a_threshold_set_by_a_person_wins_and_keeps_the_distance_of_the_levels(encoder):
    known = QueryCalibration(WATER.version, alert=0.5, suggestion=0.4, basis="rate", target=0.001, posts=9, reached=0.0)
    mine = msgspec.structs.replace(WATER, threshold=0.7)
    (found,) = make(encoder, [mine], calibration=calibration(encoder.version, **{"need.water": known})).thresholds
    assert (found.alert, found.suggestion) == pytest.approx((0.7, 0.6))


def test_an_edited_query_is_not_given_the_thresholds_of_the_old_one(encoder):
    old = QueryCalibration("00000000", alert=0.91, suggestion=0.9, basis="rate", target=0.001, posts=9, reached=0.0)
    (found,) = make(encoder, [WATER], calibration=calibration(encoder.version, **{"need.water": old})).thresholds
    assert found.alert != 0.91


def test_a_direction_learnt_from_labels_is_used_for_that_query_only(encoder, vectors):
    direction = [0.0] * encoder.dim + [0.25]
    known = QueryCalibration(BOATS.version, 0.2, 0.1, "precision", 0.5, 9, 0.5, direction=direction)
    plain = make(encoder, QUERIES).scores(vectors)
    scores = make(encoder, QUERIES, calibration=calibration(encoder.version, **{"need.boats": known})).scores(vectors)
    at = sorted(q.id for q in QUERIES).index("need.boats")
    assert (scores[:, at] == 0.25).all()
    assert (np.delete(scores, at, axis=1) == np.delete(plain, at, axis=1)).all()


def test_without_suggestions_only_alerts_are_given(encoder, vectors):
    ids = [str(i) for i in range(len(vectors))]
    both = make(encoder, QUERIES).match(ids, vectors, encoder.version)
    alerts = make(encoder, QUERIES, MatchConfig(suggestions=False)).match(ids, vectors, encoder.version)
    assert alerts == [m for m in both if m.level == "alert"]


def test_a_match_names_the_nearest_sentence_and_its_language(encoder):
    mine = Query("need.water", "need", "water", "Water", WATER.sentences, threshold=0.0)
    (found,) = make(encoder, [mine]).match(["p"], encoder.encode(["nou bezwen dlo"]), encoder.version)
    assert (found.nearest, found.nearest_lang) == ("Nou bezwen dlo", "ht")
    assert found.nearest_cosine > 0.9


def test_without_anything_to_be_told_apart_from_the_score_is_the_cosine_to_the_mean(encoder, vectors):
    matcher = Matcher(MatchConfig(), [WATER], encoder, [], contrast=[])
    mean = encoder.encode([t for _, t in WATER.texts()]).mean(0)
    assert matcher.scores(vectors)[:, 0] == pytest.approx(vectors @ (mean / np.linalg.norm(mean)), abs=1e-5)


def test_no_posts_and_no_queries_give_no_matches(encoder, vectors):
    assert make(encoder, QUERIES).match([], vectors[:0], encoder.version) == []
    assert make(encoder, []).match([str(i) for i in range(len(vectors))], vectors, encoder.version) == []


def test_without_a_head_the_prior_or_the_measured_curve_explains_a_reading(encoder, vectors):
    curve = [(0.0, 0.1), (1.0, 0.9)]
    known = QueryCalibration(WATER.version, 0.5, 0.1, "precision", 0.5, 9, 0.5, curve=curve)
    measured = calibration(encoder.version, **{"need.water": known})
    ids = [str(i) for i in range(len(vectors))]
    found = make(encoder, QUERIES, calibration=measured).match(ids, vectors, encoder.version)
    assert found
    for match in found:
        assert list(match.terms) == (["measured"] if match.query_id == "need.water" else ["bias", "query"])
        assert 1 / (1 + np.exp(-sum(match.terms.values()))) == pytest.approx(match.probability, abs=5e-3)
