"""Batches cover every post once, keep their budget, and what comes out is in input order."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.encoders.batching import encode_in_windows, micro_batches, packed_batches, pad
from models.text import Cleaning
from tests.waiting import PATIENCE_S

LENGTHS = st.lists(st.integers(0, 90), max_size=60)


@given(lengths=LENGTHS, budget=st.integers(1, 300))
def test_micro_batches_hold_every_post_once_within_the_budget(lengths, budget):
    batches = micro_batches(lengths, budget)
    assert sorted(i for rows in batches for i in rows) == [i for i, n in enumerate(lengths) if n]
    for rows in batches:
        assert len(rows) == 1 or len(rows) * max(lengths[i] for i in rows) <= budget
    longest = [max(lengths[i] for i in rows) for rows in batches]
    assert longest == sorted(longest, reverse=True)


@given(lengths=LENGTHS, budget=st.integers(1, 300))
def test_packed_batches_hold_every_post_once_in_order_within_the_budget(lengths, budget):
    batches = packed_batches(lengths, budget)
    assert [i for rows in batches for i in rows] == [i for i, n in enumerate(lengths) if n]
    assert all(len(rows) == 1 or sum(lengths[i] for i in rows) <= budget for rows in batches)


def test_sorting_leaves_little_padding_at_a_real_length_mix():
    lengths = np.clip(np.rint(np.random.default_rng(0).gamma(3.35, 35 / 3.35, 1024)), 3, 128).astype(int)
    computed = sum(len(rows) * max(lengths[i] for i in rows) for rows in micro_batches(lengths, 256))
    assert computed < 1.03 * lengths.sum()


def test_padding_is_marked():
    ids, mask = pad([[5, 6, 7], [8]])
    assert ids.tolist() == [[5, 6, 7], [8, 0, 0]] and mask.tolist() == [[1, 1, 1], [1, 0, 0]]


def letters(cleaned: list[str]):
    """A small encoder's preparation: posts by their letters."""
    return [(rows, [cleaned[i] for i in rows]) for rows in micro_batches([len(text) for text in cleaned], 20)]


def count_letters(batch: list[str]):
    vectors = np.array([[text.count(letter) for letter in "abcd"] for text in batch], np.float32)
    return lambda: vectors


@given(texts=st.lists(st.text("abcd", max_size=15), max_size=40), window=st.integers(1, 12))
def test_row_i_is_text_i_whatever_the_window(texts, window):
    out = encode_in_windows(texts, 4, Cleaning(), letters, count_letters, window)
    expected = [[text.count(letter) for letter in "abcd"] if text else [0, 0, 0, 1] for text in texts]
    np.testing.assert_array_equal(out, np.array(expected, np.float32).reshape(-1, 4))


def test_the_next_window_is_prepared_while_this_one_is_computed():
    prepared = [threading.Event(), threading.Event()]

    def prepare(cleaned):
        prepared[int(cleaned[0])].set()
        return [(np.arange(len(cleaned)), cleaned)]

    def run(batch):
        assert prepared[1].wait(PATIENCE_S), "the second window waits for the first to be computed"
        return lambda: np.ones((len(batch), 2), np.float32)

    assert encode_in_windows(["0", "1"], 2, Cleaning(), prepare, run, window=1).tolist() == [[1, 1], [1, 1]]


def test_a_batch_is_waited_for_only_after_the_next_was_started():
    told = []

    def run(batch):
        told.append(f"start {batch[0]}")
        return lambda: told.append(f"wait {batch[0]}") or np.ones((1, 2), np.float32)

    encode_in_windows(
        ["a", "b", "c"], 2, Cleaning(), lambda texts: [(np.array([i]), [t]) for i, t in enumerate(texts)], run
    )
    assert told == ["start a", "start b", "wait a", "start c", "wait b", "wait c"]


def test_an_error_while_preparing_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        encode_in_windows(["a"] * 3, 2, Cleaning(), lambda texts: 1 / 0, count_letters, window=1)
