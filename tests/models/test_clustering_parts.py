"""The clusterer's parts: exact arithmetic, rows with words, bursts, ids, start thresholds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.clusters.cluster import MAX_SOURCES, Cluster, Member, Rates, member_of
from models.clusters.events import most_frequent, next_step
from models.clusters.kernel import GRID, Kernel, to_grid
from models.clusters.lexicon import Lexicon
from models.clusters.memory import Memory, cluster_id
from models.clusters.thresholds import suggest_thresholds
from models.errors import SampleTooSmall
from models.records import Post

SEEDS = st.integers(0, 2**32 - 1)


def unit_rows(n, dim, seed):
    rows = np.random.default_rng(seed).standard_normal((n, dim))
    return to_grid(rows / np.linalg.norm(rows, axis=1, keepdims=True))


@given(SEEDS, st.integers(1, 50), st.integers(2, 80))
@settings(max_examples=50, deadline=None)
def test_sums_of_grid_rows_do_not_depend_on_their_order(seed, n, dim):
    rows = unit_rows(n, dim, seed)
    probe = unit_rows(1, dim, seed + 1)[0]
    assert (rows @ probe).sum() == probe @ rows[::-1].sum(axis=0) == math.fsum(rows[i] @ probe for i in range(n))


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_the_grid_keeps_a_cosine_within_3e_4_and_scales_any_row_to_unit_length(seed):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((40, 256)) + rng.standard_normal(256)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    grid = to_grid(unit)
    assert np.abs(grid @ grid.T - unit @ unit.T).max() < 3e-4
    np.testing.assert_allclose(np.linalg.norm(to_grid(3 * unit), axis=1), 1.0, atol=1e-3)
    assert not to_grid(np.zeros((2, 5))).any()


@given(SEEDS, st.integers(1, 40), st.floats(0.2, 0.9))
@settings(max_examples=60, deadline=None)
def test_a_merge_leaves_no_two_clusters_nearer_than_the_threshold_and_no_sum_is_lost(seed, n, t_merge):
    rows = unit_rows(n, 4, seed)
    kernel = Kernel(4, 0.95, t_merge)
    for start in range(0, n, 9):
        kernel.place(rows[start : start + 9])
        kernel.merge()
        alive = np.flatnonzero(kernel.counts[: kernel.size])
        sims = kernel.sums[alive] @ kernel.sums[alive].T / np.outer(kernel.counts[alive], kernel.counts[alive])
        assert (sims[~np.eye(len(alive), dtype=bool)] < t_merge).all()
    assert kernel.counts.sum() == n
    np.testing.assert_array_equal(kernel.sums.sum(axis=0), rows.sum(axis=0))
    before = kernel.sums[kernel.counts > 0]
    kernel.compact()
    np.testing.assert_array_equal(kernel.sums[: kernel.size], before)


@given(SEEDS, st.sampled_from([0.0, 0.3, 0.6]), st.integers(1, 30))
@settings(max_examples=40, deadline=None)
def test_rows_do_not_depend_on_blocks_and_survive_packing(seed, share, cut):
    rng = np.random.default_rng(seed)
    vectors, words = unit_rows(30, 12, seed), [f"w{i}" for i in range(20)]
    terms = [[words[k] for k in rng.integers(0, 20, rng.integers(0, 6))] for _ in range(30)]
    whole, parts = Lexicon(12, share), Lexicon(12, share)
    rows, packed = whole.rows(vectors, terms)
    blocks = [parts.rows(vectors[a:b], terms[a:b]) for a, b in ((0, cut), (cut, 30))]
    assert np.array_equal(rows, np.concatenate([block for block, _ in blocks])) and rows.shape == (30, whole.width)
    assert packed == blocks[0][1] + blocks[1][1] and np.array_equal(whole.unpack(packed), rows)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=2e-3)


@given(SEEDS, st.sampled_from([0.0, 0.6]))
@settings(max_examples=20, deadline=None)
def test_packed_posts_times_a_sum_are_exact(seed, share):
    rng = np.random.default_rng(seed)
    lexicon = Lexicon(12, share)
    _, packed = lexicon.rows(unit_rows(9, 12, seed), [[f"w{k}" for k in rng.integers(0, 20, 4)] for _ in range(9)])
    total = rng.integers(-(2**30), 2**30, lexicon.width).astype(float)
    exact = [sum(int(a) * int(b) for a, b in zip(row, total, strict=True)) for row in lexicon.unpack(packed) * GRID]
    assert lexicon.products(packed, total).tolist() == exact and lexicon.products([], total).size == 0


def test_a_similarity_is_the_shares_of_meaning_and_of_words():
    lexicon = Lexicon(2, 0.25)
    lexicon.rows(np.tile([1.0, 0.0], (40, 1)), [["rain"]] * 40)  # so that the words below are rare
    (a, b, c), _ = lexicon.rows(np.array([[1.0, 0], [0.6, 0.8], [0, 1]]), [["riverton"]] * 3)
    assert a @ b == pytest.approx(0.75 * 0.6 + 0.25, abs=1e-3) and a @ c == pytest.approx(0.25, abs=1e-3)
    (x, y), _ = lexicon.rows(np.array([[1.0, 0], [1.0, 0]]), [[], ["riverton"]])
    assert x @ x == pytest.approx(1.0, abs=1e-3) and x @ y == pytest.approx(0.75**0.5, abs=1e-3)


def test_rare_words_weigh_more_and_counters_fade():
    lexicon = Lexicon(2, 0.5)
    vectors = np.tile([1.0, 0.0], (300, 1))
    lexicon.rows(vectors, [["help", f"place{i}"] for i in range(300)])
    (a, b, c), _ = lexicon.rows(vectors[:3], [["help", "riverton"], ["help", "riverton"], ["help", "marisol"]])
    assert a @ b > 0.95 and a @ c < 0.6
    lexicon.seen = 99_999
    lexicon.rows(vectors[:1], [["help"]])
    assert lexicon.seen == 50_000 and 0 < max(lexicon.table) <= 160


def test_a_post_without_a_vector_takes_its_share_of_the_mean():
    kernel = Kernel(3, 0.1, 0.1)
    kernel.place(to_grid(np.array([[1.0, 0, 0], [0.8, 0.6, 0]])))
    mean = kernel.mean(0)
    assert kernel.remove(0, None)
    np.testing.assert_allclose(kernel.mean(0), mean, atol=1e-3)
    assert not kernel.remove(0, None) and kernel.counts[0] == 0


def test_a_burst_is_zero_at_a_steady_rate_and_about_the_number_of_posts_out_of_nothing():
    steady = Rates(at=0.0)
    for i in range(3_000):
        steady.forward(30.0 * i, 1e4, 600.0, 21_600.0)
        steady.add(Rates(30.0 * i, 1.0, 1.0, 1.0))
    assert abs(steady.burst(600.0, 21_600.0)) < 1.0
    sudden = Rates(0.0, 9.0, 9.0, 0.0)
    assert sudden.burst(600.0, 21_600.0) == pytest.approx(9.0)


@given(st.permutations(range(25)), st.integers(0, 25))
@settings(max_examples=50, deadline=None)
def test_the_examples_kept_do_not_depend_on_order_or_on_merges(order, cut):
    members = [member_of(Post(f"p{i}", "t", 0.0, 0.0), (), b"") for i in range(25)]
    one, two, whole = (Cluster(str(k), Rates(0.0), 0.0, 0.0, 0, 0.0) for k in range(3))
    for i, k in enumerate(order):
        (one if i < cut else two).keep_example(members[k], 6)
    for member in members:
        whole.keep_example(member, 6)
    one.absorb(two, 6)
    assert one.examples == whole.examples and len(whole.examples) == 6


def test_an_account_is_known_by_its_remembered_posts_and_those_it_forgot_cost_bounded_memory():
    memory = Memory(posts=4, members=1, ids=1)
    for n in range(100):
        memory.repeat(f"a{n}/1", "c")
        assert len(memory.accounts) <= 12
    assert [*memory.named_by(["a98", "a99/1", "a99"])] == [["a98", "a98/1"], ["a99/1"], ["a99", "a99/1"]]
    assert [*memory.named_by(["a1"])] == [["a1"]]  # nothing that is remembered


def test_whoever_invents_sources_does_not_fill_a_cluster_and_every_post_is_counted_and_taken_back():
    def said(n: int, source: str) -> Member:
        return member_of(Post(id=f"p{n}", text="t", created_at=1.0, seen_at=1.0, source=source), (), b"")

    clusters = [Cluster(name, Rates(at=1.0), 1.0, 1.0, 0, 1.0) for name in "ab"]
    posts = [said(n, f"s{n}" if n % 2 else "bluesky") for n in range(4 * MAX_SOURCES)]
    for n, member in enumerate(posts):
        clusters[n % 3 == 0].count(member)
    clusters[0].absorb(clusters[1], keep=3)
    counted = clusters[0].sources
    assert len(counted) <= MAX_SOURCES + 1 and counted["bluesky"] == len(posts) // 2
    assert sum(counted.values()) == len(posts)
    for member in posts:
        clusters[0].forget(member)
    assert "bluesky" not in counted and sum(counted.values()) < len(posts) // 2


def test_redirects_are_followed_to_the_end_and_compressed():
    memory = Memory(10, 10, 10)
    for i in range(5):
        memory.redirect(f"c{i}", f"c{i + 1}")
    assert memory.find("c0") == "c5" and memory.redirects["c0"] == "c5" and memory.find("elsewhere") == "elsewhere"


def test_an_id_is_the_same_for_the_same_post_and_differs_by_salt_edit_and_attempt():
    one = Post("p1", "a", 1.0, 2.0)
    edited = Post("p1", "b", 1.0, 3.0, kind="update")
    ids = {cluster_id(one, 0, ""), cluster_id(one, 1, ""), cluster_id(one, 0, "x"), cluster_id(edited, 0, "")}
    assert len(ids) == 4 and cluster_id(one, 0, "") == cluster_id(Post("p1", "z", 9.0, 9.0), 0, "")
    assert all(len(i) == 13 and i.isalnum() and i.islower() for i in ids)


def test_growth_is_told_at_five_ten_twenty_fifty_a_hundred():
    assert [next_step(n) for n in (0, 3, 5, 9, 10, 20, 50, 100, 999)] == [5, 5, 10, 10, 20, 50, 100, 200, 1000]


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 5), max_size=12), st.integers(1, 12))
def test_an_event_names_the_most_frequent_sources_and_no_more(counts, most):
    told = most_frequent(counts, most)
    assert list(told.items()) == sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most]


def test_start_thresholds_follow_the_background_of_the_stream_and_ignore_a_hot_topic():
    rng = np.random.default_rng(0)
    unrelated = rng.standard_normal((3_000, 64))
    common = rng.standard_normal(64)

    def unit(x):
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    plain, alike = (suggest_thresholds(unit(x), words=False) for x in (unrelated, unrelated + 0.6 * common))
    assert abs(plain.background) < 0.01 and plain.t_attach > plain.t_merge > plain.background
    assert plain.spread == pytest.approx(1 / 8, abs=0.01)  # cosines of random 64-d rows deviate by 1/sqrt(64)
    assert alike.t_merge > alike.background > 0.2
    hot = np.concatenate([unit(unrelated), np.tile(unit(common[None]), (300, 1))])  # one post in eleven the same
    assert suggest_thresholds(hot, words=False).t_attach == pytest.approx(plain.t_attach, abs=0.03)
    assert suggest_thresholds(hot, seed=3) == suggest_thresholds(hot, seed=3)
    wordy, wordier = suggest_thresholds(unit(unrelated)), suggest_thresholds(unit(unrelated + 0.6 * common))
    assert 0.14 < wordy.t_merge < wordier.t_merge < wordier.t_attach < 0.35
    with pytest.raises(SampleTooSmall):
        suggest_thresholds(unit(unrelated[:50]))
