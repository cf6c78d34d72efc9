"""What people teach: equals the posterior's maximum by other means, and its laws."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import binomtest

from models.encoders.ready import load, ready
from models.errors import LabelError
from models.feedback.choice import Candidate, mixed, worth_labelling
from models.feedback.fit import (
    Feedback,
    FeedbackConfig,
    Space,
    fit_query,
    likeness,
    pulls,
    trust_by_language,
)
from models.feedback.precision import precision, wilson
from models.feedback.records import Label, answers, check_label
from models.feedback.teach import teach
from models.levels import PRIOR_LOGIT
from models.queries import Query
from models.records import Post

WATER = Query("need.water", "need", "water", "Water", {"en": ["We need drinking water", "Our taps are dry"]})
FOOD = Query("need.food", "need", "food", "Food", {"en": ["We are hungry, send food"]})
CONFIG = FeedbackConfig()
NEWS = [f"The minister spoke about drinking water plans in district {n}" for n in range(30)]
ASKS = [f"No drinking water here at house {n}, kids are thirsty" for n in range(30)]


def said(text, verdict="right", query_id="need.water", post_id=None, at=1.0, lang="en", **rest):
    return Label(post_id or f"x:{text}", query_id, verdict, "Ada", at, text, lang, **rest)


@pytest.fixture(scope="module")
def version():
    return ready(load("flood"), [WATER, FOOD])


def problem(seed, n=6):
    rng = np.random.default_rng(seed)
    rows, shipped = rng.normal(size=(n, n)), rng.normal(size=n)
    return rows @ rows.T / n, shipped, rng.random(n) < 0.5


def category(rng, n, cosine, d=400):
    """(n, d) unit vectors, any two at about this cosine."""
    apart = rng.normal(size=(n, d)) / np.sqrt(d)
    apart[:, 0] = 0
    vectors = np.sqrt(1 - cosine) * apart / np.linalg.norm(apart, axis=1, keepdims=True)
    vectors[:, 0] = np.sqrt(cosine)
    return vectors


def corrected(vectors, right, shipped=None, own=None, learnt=True, config=CONFIG):
    """What a query is moved by such labels, all in English, by the space about zero: posts (n, d) → (n,)."""
    space, n = Space(np.zeros(vectors.shape[1], np.float32)), len(vectors)
    right, own = np.array(right), np.ones(n, bool) if own is None else np.array(own)
    shipped = np.zeros(n) if shipped is None else np.array(shipped, float)
    made = Feedback({"q": fit_query(config, space, vectors, ["en"] * n, shipped, right, own, learnt)}, space, 6.0)
    return lambda posts: made.added(["q"], posts.astype(np.float32), ["en"] * len(posts))[:, 0]


@pytest.mark.parametrize("slips", [0.0, 0.05])
def test_what_labels_add_is_the_maximum_of_the_posterior_by_another_optimiser(slips):
    kernel, shipped, right = problem(1)
    heard = np.array([1, 1, 0.5, 1, 0.5, 1])

    def loss(a):
        p = 1 / (1 + np.exp(-np.where(right, 1, -1) * (shipped + kernel @ a)))
        return a @ kernel @ a / 2 - heard @ np.log(slips + (1 - 2 * slips) * p)

    expected = minimize(
        loss, np.zeros(6), method="Nelder-Mead", options={"maxiter": 20_000, "xatol": 1e-7, "fatol": 1e-10}
    )
    assert np.allclose(kernel @ pulls(kernel, shipped, right, heard, slips), kernel @ expected.x, atol=2e-3)


def test_one_label_solves_its_own_equation():
    """a = 1 − p, with p the probability of the answer that comes out of it."""
    (a,) = pulls(np.array([[3.0]]), np.array([-1.0]), np.array([True]), np.ones(1))
    assert a == pytest.approx(1 - 1 / (1 + np.exp(1 - 3 * a)), abs=1e-4)


@given(st.integers(0, 1000), st.booleans(), st.floats(-6, 6), st.booleans())
def test_a_label_moves_its_own_post_in_its_direction_and_the_nearer_ones_more(seed, right, shipped, learnt):
    posts = category(np.random.default_rng(seed), 5, 0.4)
    posts[1] = 0.8 * posts[0] + 0.6 * (posts[1] - (posts[1] @ posts[0]) * posts[0]) / np.sqrt(1 - 0.16)
    moved = corrected(posts[:1], [right], [shipped], learnt=learnt)(posts) * (1 if right else -1)
    assert moved[0] > 0 and moved[0] > 2 * moved[1] and moved[1] > 2 * moved[2:].max() and moved.min() >= 0


@given(st.integers(0, 1000), st.integers(1, 12))
def test_labels_move_no_post_by_more_than_the_sum_of_their_likeness(seed, n):
    rng = np.random.default_rng(seed)
    labelled, posts = category(rng, n, 0.3), category(rng, 20, 0.3)
    moved = corrected(labelled, rng.random(n) < 0.5, 4 * rng.normal(size=n))(posts)
    assert np.all(np.abs(moved) <= CONFIG.near * likeness(posts, labelled, CONFIG.sharp).sum(axis=1) + 1e-5)


@given(st.integers(0, 1000), st.integers(1, 3), st.booleans(), st.booleans())
def test_up_to_three_labels_of_one_side_leave_the_clear_posts_of_a_category_as_they_are(seed, n, right, learnt):
    """Clear: log-odds of ±1, where the bar is at 0. Even were each post at a cosine of .6 of every label."""
    rng = np.random.default_rng(seed)
    posts = category(rng, 40, 0.6)
    clear = np.full(40, -1.0 if right else 1.0)
    moved = corrected(posts[:n], [right] * n, clear[:n], learnt=learnt)(posts[n:])
    assert np.mean(np.sign(clear[n:] + moved) == np.sign(clear[n:])) >= 0.9


def test_a_bias_that_many_labels_agree_on_moves_the_category():
    posts = category(np.random.default_rng(5), 80, 0.6)
    moved = [corrected(posts[:n], [False] * n, np.ones(n))(posts[60:]).mean() for n in (3, 20, 60)]
    assert 0 > moved[0] > -0.5 > moved[1] > moved[2]


def test_a_query_of_few_sentences_is_moved_as_a_whole_only_by_labels_of_both_sides():
    rng = np.random.default_rng(2)
    posts = category(rng, 60, 0.3)
    posts[:30, 1] += 0.8  # right ones lie that way
    posts /= np.linalg.norm(posts, axis=1, keepdims=True)
    right = np.arange(60) < 30
    both, rest = np.r_[:10, 30:40], np.r_[10:30, 40:60]
    whole = corrected(posts[both], right[both], learnt=False)(posts)[rest]
    local = corrected(posts[both], right[both])(posts)[rest]
    apart = [found[:20].mean() - found[20:].mean() for found in (whole, local)]
    assert apart[0] > 2 * apart[1] > 0
    assert np.array_equal(
        corrected(posts[:10], right[:10], learnt=False)(posts), corrected(posts[:10], right[:10])(posts)
    )


def test_a_label_of_another_query_weighs_less_and_moves_none_as_a_whole():
    posts = category(np.random.default_rng(3), 6, 0.5)
    own, heard = (corrected(posts[:1], [True], own=[is_own])(posts)[0] for is_own in (True, False))
    assert 0 < heard < own
    right, own = [True, False, True, False], [True, True, False, False]
    space = Space(np.zeros(400, np.float32))
    made = fit_query(CONFIG, space, posts[:4], ["en"] * 4, np.zeros(4), np.array(right), np.array(own), False)
    a = made.weights / CONFIG.near
    share = 1 / (1 + CONFIG.both)
    assert made.constant == pytest.approx(share * CONFIG.shift * a[:2].sum(), abs=1e-6)
    assert np.allclose(made.line, share * CONFIG.common * a[:2] @ posts[:2], atol=1e-5)


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
    moved = taught.matcher.feedback.added(ids, vectors, ["en", "en"])
    assert moved[0, 1] > 0 > moved[1, 1]
    assert not moved[:, 0].any()
    assert not taught.matcher.feedback.added(ids, vectors, ["es", "und"]).any()


def test_a_correction_applied_in_bulk_is_the_one_that_was_fitted(version):
    texts, langs = NEWS[:9] + ASKS[:9], ["en", "es", "en"] * 6
    vectors = version.encoder.encode(texts).astype(np.float64)
    space = version.matcher.space
    right, own = np.array([False] * 9 + [True] * 9), np.ones(18, bool)
    one = fit_query(CONFIG, space, vectors, langs, np.zeros(18), right, own, False)
    other = fit_query(CONFIG, space, vectors[:3], langs[:3], np.zeros(3), right[:3], own[:3], False)
    expected = []
    for vector, lang in zip(vectors, langs, strict=True):
        alike = [w * np.exp(6 * (vector @ x - 1)) for w, x in zip(one.weights, one.vectors, strict=True)]
        way = (vector - space.middle) / np.linalg.norm(vector - space.middle)
        expected.append(one.trust[lang] * (sum(alike) + way @ one.line + one.constant))
    made = Feedback({"need.water": one, "need.food": other}, space, CONFIG.sharp)
    added = made.added(["need.water", "need.money"], vectors.astype(np.float32), langs)
    assert np.allclose(added[:, 0], expected, atol=1e-3) and not added[:, 1].any()


def test_the_order_of_labels_is_irrelevant_and_one_taken_back_leaves_no_trace(version):
    labels = [said(t, "wrong", at=float(i)) for i, t in enumerate(NEWS[:5])]
    labels += [said(t, at=float(i)) for i, t in enumerate(ASKS[:5])]
    late = said("Our well is dry", "none", "need.food", at=9.0)
    posts = [Post(f"p{i}", text, 0.0, 0.0, "en") for i, text in enumerate(ASKS + NEWS)]
    vectors, every = version.encoder.encode([p.text for p in posts]), np.arange(2)
    first, known = teach(version, labels)
    again, _ = teach(teach(version, [late, *reversed(labels)], known)[0], labels[5:] + labels[:5], known)
    before, after = (v.matcher.added(vectors, posts, every) for v in (first, again))
    assert np.array_equal(before, after)


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
    moved = taught.matcher.feedback.added(["need.water"], version.encoder.encode(texts), ["en"] * 20)[:, 0]
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
def test_the_mix_asks_for_everything_once_the_surest_and_the_most_doubtful_in_turn(odds):
    order, turned = mixed(np.array(odds)), mixed(np.array(odds), asked=1)
    assert sorted(order) == sorted(turned) == list(range(len(odds)))
    if odds:
        assert odds[order[0]] == max(odds) and abs(odds[turned[0]]) == min(abs(x) for x in odds)
        rest = [x for i, x in enumerate(odds) if i != order[0]]
        assert not rest or abs(odds[order[1]]) == min(abs(x) for x in rest)


def test_near_copies_are_not_asked_about_and_the_least_taught_query_comes_first():
    pool = [Candidate(f"w{i}", "need.water", 0.9 - i / 100, text) for i, text in enumerate(ASKS[:3])]
    pool += [Candidate("w9", "need.water", 0.5, "the well is dirty and people fall ill")]
    pool += [Candidate("f1", "need.food", 0.4, "nothing to eat for three days")]
    taught = [("need.water", "an old one about a pump"), ("need.water", "a bucket for the roof")]
    assert [c.post_id for c in worth_labelling(pool, taught, 10)] == ["f1", "w0", "w9"]
    assert worth_labelling(pool, [], 1)[0].post_id == "f1"
    assert [c.post_id for c in worth_labelling(pool, [("need.water", ASKS[7])], 9)] == ["w9", "f1"]


def test_a_query_asked_about_once_is_asked_about_on_its_other_side_before_another_is_begun():
    words = ["well pump rope", "tank lorry street", "bottle boat school"]
    pool = [Candidate(f"{q}{i}", f"need.{q}", 0.9 - i / 5, f"{q} {words[i]}") for q in ("a", "b") for i in range(3)]
    taught, asked = [], []
    for _ in range(4):
        (one,) = worth_labelling([c for c in pool if c.post_id not in asked], taught, 1)
        taught.append((one.query_id, one.text))
        asked.append(one.post_id)
    assert asked == ["a0", "a2", "b0", "b2"]


def test_precision_counts_alerts_of_the_shift_with_wilsons_interval():
    labels = [said(f"{i}", "right" if i < 8 else "wrong", at=100.0, level="alert") for i in range(10)]
    labels += [said("old", at=1.0, level="alert"), said("guess", "wrong", at=100.0, level="suggestion")]
    (found,) = precision(labels, since=50.0)
    assert (found.right, found.judged) == (8, 10)
    expected = binomtest(8, 10).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert wilson(0, 7)[0] == pytest.approx(0.0) and wilson(7, 7)[1] == pytest.approx(1.0)
    assert wilson(0, 0) == (0.0, 1.0)
