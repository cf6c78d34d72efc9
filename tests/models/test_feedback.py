"""What people teach: equals the posterior's maximum by other means, and its laws."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import binomtest

from models.clusters.labels import terms_of
from models.encoders.ready import load, ready
from models.errors import LabelError
from models.feedback.choice import Candidate, mixed, worth_labelling
from models.feedback.fit import Feedback, FeedbackConfig, Space, fit_query, map_weights, trust_by_language
from models.feedback.precision import precision, wilson
from models.feedback.records import Label, answers, check_label
from models.feedback.teach import teach
from models.levels import PRIOR_LOGIT
from models.queries import Query
from models.records import Post

WATER = Query("need.water", "need", "water", "Water", {"en": ["We need drinking water", "Our taps are dry"]})
FOOD = Query("need.food", "need", "food", "Food", {"en": ["We are hungry, send food"]})
NEWS = [f"The minister spoke about drinking water plans in district {n}" for n in range(30)]
ASKS = [f"No drinking water here at house {n}, kids are thirsty" for n in range(30)]


def said(text, verdict="right", query_id="need.water", post_id=None, at=1.0, lang="en", **rest):
    return Label(post_id or f"x:{text}", query_id, verdict, "Ada", at, text, lang, **rest)


@pytest.fixture(scope="module")
def version():
    return ready(load("flood"), [WATER, FOOD])


def problem(seed, n=40, p=6):
    rng = np.random.default_rng(seed)
    rows, shipped = rng.normal(size=(n, p)), rng.normal(size=n)
    return rows, shipped, rows[:, 0] + 0.3 * rng.normal(size=n) > 0


@pytest.mark.parametrize("slips", [0.0, 0.05])
def test_the_weights_are_the_maximum_of_the_posterior_by_another_optimiser(slips):
    rows, shipped, right = problem(1)

    def loss(weights):
        p = 1 / (1 + np.exp(-np.where(right, 1, -1) * (shipped + rows @ weights)))
        return weights @ weights / (2 * 3.0) - np.log(slips + (1 - 2 * slips) * p).sum()

    expected = minimize(
        loss, np.zeros(6), method="Nelder-Mead", options={"maxiter": 20_000, "xatol": 1e-7, "fatol": 1e-9}
    )
    assert np.allclose(map_weights(rows, shipped, right, 3.0, slips), expected.x, atol=2e-3)


def test_one_label_solves_its_own_equation():
    """One row x, right: w = C · (1 − p) · x, with p the probability that comes out of it."""
    x = np.array([[0.5, -1.0]])
    (a, b) = map_weights(x, np.array([-1.0]), np.array([True]), 3.0)
    p = 1 / (1 + np.exp(-(-1.0 + 0.5 * a - b)))
    assert (a, b) == pytest.approx((3 * (1 - p) * 0.5, -3 * (1 - p)), abs=1e-4)


@given(st.integers(0, 1000))
def test_a_label_never_moves_its_own_post_the_wrong_way(seed):
    rows, shipped, right = problem(seed, n=1)
    moved = rows @ map_weights(rows, shipped, right, 3.0, 0.05)
    assert (moved[0] >= 0) == right[0] or abs(moved[0]) < 1e-6


@given(st.lists(st.sampled_from(["en", "es", "ht"]), min_size=1, max_size=40))
def test_a_correction_holds_whole_in_the_only_language_labelled_and_nowhere_without_labels(langs):
    trust = trust_by_language(langs, 20.0)
    assert set(trust) == set(langs) and all(0 < t <= 1 for t in trust.values())
    assert (len(set(langs)) == 1) == (set(trust.values()) == {1.0})
    for lang, t in trust.items():
        n = langs.count(lang)
        assert n / (n + 20) <= t


def test_without_labels_nothing_changes_and_undoing_all_is_as_never_taught(version):
    taught, known = teach(version, [said(text, "wrong") for text in NEWS])
    assert taught.matcher.feedback is not None
    again, _ = teach(taught, [], known)
    posts = [Post(f"p{i}", text, 0.0, 0.0, "en") for i, text in enumerate(ASKS + NEWS)]
    vectors, ids = version.encoder.encode([p.text for p in posts]), [p.id for p in posts]
    assert again.matcher.match(ids, vectors, version.encoder.version, posts) == version.matcher.match(
        ids, vectors, version.encoder.version, posts
    )


def test_labels_raise_what_is_right_lower_what_is_wrong_and_leave_other_queries_and_languages(version):
    labels = [said(t, "wrong") for t in NEWS[:20]] + [said(t) for t in ASKS[:20]]
    taught, _ = teach(version, labels)
    texts = [ASKS[25], NEWS[25]]
    vectors, ids = version.encoder.encode(texts), ["need.food", "need.water"]
    moved = taught.matcher.feedback.added(ids, vectors, texts, ["en", "en"])
    assert moved[0, 1] > 0 > moved[1, 1]
    assert not moved[:, 0].any()
    assert not taught.matcher.feedback.added(ids, vectors, texts, ["es", "und"]).any()


def test_a_correction_applied_in_bulk_is_the_one_that_was_fitted(version):
    texts, langs = NEWS[:9] + ASKS[:9], ["en", "es", "en"] * 6
    vectors = version.encoder.encode(texts)
    space = Space.of(version.matcher.background)
    placed = (vectors - space.middle) / space.width
    right = np.array([False] * 9 + [True] * 9)
    one = fit_query(FeedbackConfig(), placed, [terms_of(t) for t in texts], langs, np.zeros(18), right)
    expected = []
    for vector, text, lang in zip(placed, texts, langs, strict=True):
        words = set(terms_of(text))
        from_words = sum(one.words.get(word, 0.0) for word in words) / np.sqrt(len(words))
        expected.append(one.trust[lang] * (vector @ one.vector + from_words + one.constant))
    added = Feedback({"need.water": one}, space).added(["need.water"], vectors, texts, langs)
    assert np.allclose(added[:, 0], expected, atol=1e-4)
    assert "minister" in one.words and "spoke" in one.words


def test_log_odds_are_nought_at_the_alert_threshold_and_scores_move_in_its_units(version):
    matcher = version.matcher
    at = np.array([[t.alert for t in matcher.thresholds], [t.suggestion for t in matcher.thresholds]], np.float32)
    assert np.allclose(matcher.levels.odds(at, np.arange(2)), [[0, 0], [-PRIOR_LOGIT, -PRIOR_LOGIT]], atol=1e-3)
    assert np.allclose(
        matcher.levels.moved(at[1:], np.full((1, 2), PRIOR_LOGIT, np.float32), np.arange(2)), at[:1], atol=1e-5
    )


def test_a_tenth_of_wrong_labels_still_teaches(version):
    rng = np.random.default_rng(3)
    labels = [said(t, "wrong") for t in NEWS[:20]] + [said(t) for t in ASKS[:20]]
    flipped = set(rng.choice(40, 4, replace=False))
    noisy = [
        msgspec.structs.replace(x, verdict="wrong" if x.verdict == "right" else "right") if i in flipped else x
        for i, x in enumerate(labels)
    ]
    taught, _ = teach(version, noisy)
    texts = ASKS[20:] + NEWS[20:]
    moved = taught.matcher.feedback.added(["need.water"], version.encoder.encode(texts), texts, ["en"] * 20)[:, 0]
    assert moved[:10].min() > moved[10:].max()


def test_what_somebody_takes_care_of_teaches_and_counts_as_right():
    labels = [said("a"), said("b", level="alert"), said("c", "wrong"), said("d", "none", "need.food")]
    handled = [msgspec.structs.replace(x, verdict="handled") if x.verdict == "right" else x for x in labels]
    assert answers(handled, "need.water") == answers(labels, "need.water")
    assert precision(handled) == precision(labels)


def test_a_label_speaks_to_the_query_it_names_and_the_posts_own_word_wins():
    labels = [
        said("a", "other", "need.food", "x:1", instead="need.water"),
        said("b", "none", "need.food", "x:2"),
        said("c", "wrong", "need.water", "x:3", at=1.0),
        said("c", "other", "need.food", "x:3", at=9.0, instead="need.water"),
    ]
    assert answers(labels, "need.water") == {0: True, 2: False}
    assert answers(labels, "need.water", {1}) == {0: True, 1: False, 2: False}
    assert answers(labels, "need.food") == {0: False, 1: False, 3: False}


def test_a_label_is_masked_and_says_what_is_wrong_with_it():
    assert check_label(said("call +977 98 4123 4567 for water")).text == "call [phone] for water"
    assert check_label(msgspec.structs.replace(said("a"), by=" Ada ")).by == "Ada"
    for change in (
        {"by": " "},
        {"by": "a\nb"},
        {"text": " "},
        {"query_id": "water"},
        {"instead": "need.food"},
        {"post_id": ""},
    ):
        with pytest.raises(LabelError):
            check_label(msgspec.structs.replace(said("a"), **change))


@given(st.lists(st.floats(-5, 5), max_size=30))
def test_the_mix_asks_for_everything_once_the_surest_first(odds):
    order = mixed(np.array(odds))
    assert sorted(order) == list(range(len(odds)))
    assert not odds or odds[order[0]] == max(odds)


def test_near_copies_are_not_asked_about_and_the_least_taught_query_comes_first():
    pool = [Candidate(f"w{i}", "need.water", 0.9 - i / 100, text) for i, text in enumerate(ASKS[:3])]
    pool += [Candidate("w9", "need.water", 0.5, "the well is dirty and people fall ill")]
    pool += [Candidate("f1", "need.food", 0.4, "nothing to eat for three days")]
    chosen = worth_labelling(pool, [("need.water", "an old one about a pump")], 10)
    assert [c.post_id for c in chosen] == ["f1", "w0", "w9"]
    assert worth_labelling(pool, [], 1)[0].post_id == "f1"
    assert [c.post_id for c in worth_labelling(pool, [("need.water", ASKS[7])], 9)] == ["f1", "w9"]


def test_precision_counts_alerts_of_the_shift_with_wilsons_interval():
    labels = [said(f"{i}", "right" if i < 8 else "wrong", at=100.0, level="alert") for i in range(10)]
    labels += [said("old", at=1.0, level="alert"), said("guess", "wrong", at=100.0, level="suggestion")]
    (found,) = precision(labels, since=50.0)
    assert (found.right, found.judged) == (8, 10)
    expected = binomtest(8, 10).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert wilson(0, 7)[0] == pytest.approx(0.0) and wilson(7, 7)[1] == pytest.approx(1.0)
    assert wilson(0, 0) == (0.0, 1.0)
