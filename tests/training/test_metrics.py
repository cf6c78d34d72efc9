"""Each measure against a value computed by hand, by brute force, or published."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from training.metrics import (
    anisotropy,
    bootstrap,
    class_similarity,
    collect_entities,
    cosine_histogram,
    hard_negatives,
    mean_interval,
    pairwise_cosine_distance,
    spearman,
    welch_p,
    xsim,
)
from training.metrics.xsim import first_best


def unit(n: int, d: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


E = np.eye(4, dtype=np.float32)


def test_pairwise_cosine_distance_by_hand():
    left = np.array([[1, 0], [1, 0], [1, 0]], np.float32)
    right = np.array([[1, 0], [0, 1], [-1, 0]], np.float32)
    assert pairwise_cosine_distance(left, right) == pytest.approx((0 + 1 + 2) / 3)
    with pytest.raises(ValueError, match="as many rows"):
        pairwise_cosine_distance(left, right[:2])


def test_d_avg_by_hand():
    # a: two rows at right angles (0); b: three equal rows (1). Weights 1/2 and 1/3, normalised .6 and .4: D_avg = .4.
    vectors = np.stack([E[0], E[1], E[0], E[0], E[0]])
    found = class_similarity(vectors, ["a", "a", "b", "b", "b"])
    assert found.by_class == pytest.approx({"a": 0.0, "b": 1.0})
    assert found.d_avg == pytest.approx(0.4)
    assert found.between == pytest.approx(0.5)  # 3 of the 6 crossing pairs are equal, 3 at right angles


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(4, 30))
def test_d_avg_equals_the_papers_loops(seed, n):
    vectors = unit(n, 5, seed)
    labels = np.array(["x", "y", "z"])[np.random.default_rng(seed).integers(0, 3, n)]
    labels[:2] = "x"
    counts = {c: int((labels == c).sum()) for c in set(labels)}
    weight = {c: 1 / k for c, k in counts.items() if k > 1}
    within = {
        c: np.mean([vectors[i] @ vectors[j] for i, j in itertools.permutations(np.flatnonzero(labels == c), 2)])
        for c in weight
    }
    crossing = [vectors[i] @ vectors[j] for i, j in itertools.combinations(range(n), 2) if labels[i] != labels[j]]
    found = class_similarity(vectors, list(labels))
    assert found.d_avg == pytest.approx(sum(weight[c] * within[c] for c in weight) / sum(weight.values()), abs=1e-5)
    assert found.between == pytest.approx(np.mean(crossing), abs=1e-5) if crossing else np.isnan(found.between)
    assert set(found.left_out) == {c for c, k in counts.items() if k == 1}


def test_an_encoder_that_maps_everything_to_one_point_has_d_avg_1_and_between_1():
    found = class_similarity(np.repeat(E[:1], 6, 0), ["a", "a", "a", "b", "b", "b"])
    assert (found.d_avg, found.between) == pytest.approx((1.0, 1.0))


def test_classes_of_one_post_are_left_out_by_name_and_no_pair_at_all_is_refused():
    found = class_similarity(E[:3], ["a", "a", "lone"])
    assert found.left_out == ("lone",) and found.d_avg == pytest.approx(0.0)
    with pytest.raises(ValueError, match="no class has two posts"):
        class_similarity(E[:3], ["a", "b", "c"])
    with pytest.raises(ValueError, match="3 vectors, 2 labels"):
        class_similarity(E[:3], ["a", "b"])


def test_anisotropy_of_known_spaces():
    even = anisotropy(np.concatenate([E, -E]))
    assert even.mean_cosine == pytest.approx(-1 / 7)  # each row has one opposite and six at right angles
    assert even.widest_axis == pytest.approx(0.25) and even.effective_dim == pytest.approx(4.0)
    point = anisotropy(np.repeat(E[:1], 5, 0))
    assert (point.mean_cosine, point.widest_axis, point.effective_dim) == pytest.approx((1.0, 1.0, 1.0))
    cone = unit(200, 8, 0) * 0.1 + np.eye(8, dtype=np.float32)[0]
    cone /= np.linalg.norm(cone, axis=1, keepdims=True)
    pairs = [cone[i] @ cone[j] for i, j in itertools.combinations(range(200), 2)]
    assert anisotropy(cone).mean_cosine == pytest.approx(np.mean(pairs), abs=1e-5)


def test_the_histogram_counts_every_pair_once():
    counts, edges = cosine_histogram(np.repeat(E[:1], 4, 0), np.stack([E[0], E[1], -E[0], E[0]]), bins=4)
    assert counts.tolist() == [1, 0, 1, 2] and edges.tolist() == [-1, -0.5, 0, 0.5, 1]


def brute_force_xsim(source, target, negatives, k):
    """The definition, in loops over all candidates of the k nearest."""
    pool = np.concatenate([target, negatives]) if len(negatives) else target
    k = min(k, len(source), len(pool))
    cos = source @ pool.T
    wrong = 0
    for i in range(len(source)):
        order = sorted(range(len(pool)), key=lambda j: (-cos[i, j], j))[:k]
        near_x = np.mean([cos[i, j] for j in order])
        margin = {}
        for j in order:
            near_y = np.mean(sorted(cos[:, j], reverse=True)[:k])
            margin[j] = cos[i, j] / ((near_x + near_y) / 2)
        wrong += not (i in margin and all(margin[i] > m for j, m in margin.items() if j != i))
    return 100 * wrong / len(source)


@settings(max_examples=30)
@given(st.integers(2, 25), st.integers(0, 30), st.integers(0, 1000), st.integers(1, 6))
def test_xsim_equals_the_definition(n, m, seed, k):
    target = unit(n, 6, seed)
    source = target + 0.8 * unit(n, 6, seed + 1)
    source /= np.linalg.norm(source, axis=1, keepdims=True)
    negatives = unit(m, 6, seed + 2)
    found = xsim(source, target, negatives, ["number"] * m, k)
    assert found.error == pytest.approx(brute_force_xsim(source, target, negatives, k))
    assert sum(found.by_kind.values()) == pytest.approx(found.error)


@given(st.integers(1, 6), st.integers(1, 12), st.integers(1, 12), st.integers(0, 1000))
def test_the_first_best_are_those_of_a_stable_sort(n, m, k, seed):
    values = np.random.default_rng(seed).integers(0, 4, (n, m)).astype(np.float32)  # many ties
    assert first_best(values, min(k, m)).tolist() == np.argsort(-values, axis=1, kind="stable")[:, : min(k, m)].tolist()


def test_xsim_by_hand():
    assert xsim(E, E).error == 0
    turned = xsim(E, E[[1, 0, 2, 3]], neighbours=2)
    assert turned.error == 50 and turned.by_kind == {"misaligned": 50}


def test_the_margin_finds_what_the_cosine_alone_would_not():
    """Candidate 1 is a hub: by cosine source 0 (0°) prefers it (-25°) to its own (30°), by margin it does not."""
    angle = np.deg2rad([0, -26, 30, -25])
    rows = np.stack([np.cos(angle), np.sin(angle)], 1).astype(np.float32)
    source, target = rows[:2], rows[2:]
    assert (source @ target.T).argmax(1).tolist() == [1, 1]
    assert xsim(source, target).error == 0


def test_hard_negatives_only_add_errors_and_are_told_by_kind():
    target = unit(40, 8, 3)
    source = target + 0.3 * unit(40, 8, 4)
    source /= np.linalg.norm(source, axis=1, keepdims=True)
    close = target + 0.05 * unit(40, 8, 5)
    close /= np.linalg.norm(close, axis=1, keepdims=True)
    plain = xsim(source, target)
    harder = xsim(source, target, close, ["entity"] * 20 + ["number"] * 20)
    assert plain.error == 0 < harder.error and set(harder.by_kind) <= {"entity", "number", "misaligned"}


def test_an_encoder_blind_to_what_changed_is_not_let_off():
    """The hard negative has the very vector of the partner: that is an error, whichever comes first."""
    assert xsim(E, E, E[:1], ["number"]).by_kind == {"number": 25}
    assert xsim(np.repeat(E[:1], 5, 0), np.repeat(E[:1], 5, 0)).error == 100
    rows = unit(200, 64, 6)
    assert xsim(rows, rows, rows.copy(), ["number"] * 200).by_kind == {"number": 100}
    assert xsim(rows, unit(200, 64, 7), np.tile(unit(200, 64, 7), (15, 1)), ["entity"] * 3000).error == 100
    with pytest.raises(ValueError, match="1 hard negatives, 0 kinds"):
        xsim(E, E, E[:1])


CORPUS = [
    "The flood in Nepal killed 25 people on Monday, because the river rose quickly.",
    "Two dams near Lake Geneva were not closed before the storm, said Mr Weber.",
    "Aid from the United Nations reached Port Town after 3 days.",
    "Nothing here",
]


def test_hard_negatives_keep_the_surface_and_change_the_meaning():
    made = hard_negatives(CORPUS, seed=1, per_kind=5)
    assert {n.kind for n in made if n.of == 0} == {"causality", "number", "entity"}
    for negative in made:
        original = CORPUS[negative.of]
        assert negative.text not in CORPUS
        shared = set(original.lower().split()) & set(negative.text.lower().split())
        assert len(shared) >= len(original.split()) - 5
        if negative.kind == "number" and negative.of == 0:
            assert "25" not in negative.text and "Nepal" in negative.text
        if negative.kind == "entity":
            assert sum(name in negative.text for name in collect_entities([original])) < len(
                collect_entities([original])
            )
    assert len({(n.of, n.text) for n in made}) == len(made)


def test_entities_are_names_inside_sentences():
    assert collect_entities(CORPUS) == ["Nepal", "Monday", "Lake Geneva", "Mr Weber", "United Nations", "Port Town"]


def test_a_negation_is_put_in_or_taken_out_but_never_together_with_an_opposite():
    texts = {n.text for n in hard_negatives(["It is cold"], seed=3, per_kind=9)}
    assert texts == {"It is not cold", "It is hot"}
    assert {n.text for n in hard_negatives(["They weren't home"], seed=3)} == {"They were home"}


def test_hard_negatives_depend_on_the_seed_and_the_sentence_alone():
    first = [n for n in hard_negatives(CORPUS, 1, entities=["Rome", "Lima", "Oslo"]) if n.of == 0]
    assert first == hard_negatives(CORPUS[:1], 1, entities=["Rome", "Lima", "Oslo"])
    assert first != hard_negatives(CORPUS[:1], 2, entities=["Rome", "Lima", "Oslo"])


def test_the_interval_is_students_and_one_run_has_none():
    found = mean_interval([0.70, 0.72, 0.74, 0.76, 0.78])
    # s = .0316, t(.975, 4) = 2.776 (any table): half width 2.776 · .0316 / √5.
    assert (
        found.mean == pytest.approx(0.74) and found.half_width == pytest.approx(0.03926, abs=2e-5) and found.runs == 5
    )
    assert np.isnan(mean_interval([0.7]).half_width)


def test_welch_tells_groups_apart():
    assert welch_p([1, 1.1, 0.9, 1.0], [2, 2.1, 1.9, 2.0]) < 0.001
    assert welch_p([1, 2, 3], [1, 2, 3]) == pytest.approx(1.0)
    assert (welch_p([0, 0], [0, 0]), welch_p([0, 0], [1, 1])) == (1.0, 0.0)


def test_the_bootstrap_of_a_mean_is_as_wide_as_the_normal_law_says():
    values = np.random.default_rng(0).normal(3, 2, 400)
    low, high = bootstrap(lambda drawn: values[drawn].mean(), 400, seed=1, repeats=2000)
    reach = 1.96 * values.std() / np.sqrt(400)
    assert (low, high) == pytest.approx((values.mean() - reach, values.mean() + reach), abs=0.02)
    assert bootstrap(lambda drawn: values[drawn].mean(), 400, seed=1) == bootstrap(
        lambda drawn: values[drawn].mean(), 400, seed=1
    )


def test_the_bootstrap_leaves_out_draws_that_have_no_value():
    labels = np.array([True, False])  # some draws have no positive
    low, high = bootstrap(lambda drawn: 1.0 if labels[drawn].any() else float("nan"), 2, seed=1)
    assert (low, high) == (1.0, 1.0)
    assert np.isnan(bootstrap(lambda drawn: float("nan"), 2, seed=1)).all()


def test_spearman_by_hand_and_as_scipy_has_it():
    # Ranks 1 2 3 4 and 2 1 4 3: Σd² = 4, 1 − 6 · 4 / (4 · 15) = .6.
    assert spearman(np.array([1, 2, 3, 4]), np.array([20, 10, 40, 30])) == pytest.approx(0.6)
    assert np.isnan(spearman(np.ones(3), np.arange(3)))
    rng = np.random.default_rng(2)
    first, second = rng.integers(0, 5, 60), rng.integers(0, 5, 60)  # many ties
    assert spearman(first, second) == pytest.approx(spearmanr(first, second).statistic)
