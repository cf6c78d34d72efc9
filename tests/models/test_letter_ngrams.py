"""Groups of letters: what slips, leet, accents and stray spaces leave alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.encoders.letter_ngrams import SIZE, fold, letter_groups

ROWS = 49_152


def groups(text: str) -> list[int]:
    return letter_groups([text], ROWS)[0].tolist()


@pytest.mark.parametrize(
    ("written", "standard"),
    [
        ("w4t3r pl3a5e", "water please"),
        ("wa ter plea se", "water please"),
        ("waterplease", "water please"),
        ("WATER, Please!", "water please"),
        ("heeeelp us noooow", "help us now"),
        ("h!lp us", "hilp us"),
        ("necesitámos água", "necesitamos agua"),
        ("ЗДЕСЬ нужна в0да", "здесь нужна вода"),
    ],
)
def test_ways_of_writing_a_text_have_the_same_groups(written, standard):
    assert groups(written) == groups(standard) != []


def test_one_slip_changes_at_most_four_groups():
    right, wrong = groups("evacuation centre"), groups("evacjation centre")
    assert sum(a != b for a, b in zip(right, wrong, strict=True)) == SIZE


def test_a_stop_is_no_letter_but_a_sign_inside_a_word_is():
    assert fold("help!") == fold("help") and fold("he!p") == fold("help")


def test_marks_that_are_vowels_stay():
    assert fold("पानी") != fold("पन")


def test_short_texts_have_no_group():
    assert groups("") == groups("!!") == groups("sos") == [] and len(groups("救援")) == 1


@given(st.lists(st.text(max_size=40), max_size=8))
def test_a_text_has_the_same_groups_alone_and_among_others(texts):
    found, owner = letter_groups(texts, ROWS)
    assert found.dtype == np.int32 and ((found >= 0) & (found < ROWS)).all() and (np.diff(owner) >= 0).all()
    for place, text in enumerate(texts):
        np.testing.assert_array_equal(found[owner == place], letter_groups([text], ROWS)[0])


@given(st.text(alphabet="abcdefghijkmnoprstu ", max_size=60))
def test_as_many_groups_as_windows_of_four_over_the_letters(text):
    letters = [a for a, b in zip(fold(text), "\0" + fold(text), strict=False) if a != b]
    windows = ["".join(letters[i : i + SIZE]) for i in range(len(letters) - SIZE + 1)]
    found = groups(text)
    assert len(found) == len(windows)
    assert len(set(found)) <= len(set(windows))  # the same window, the same row


def test_rows_are_used_evenly():
    rng = np.random.default_rng(1)
    texts = ["".join(rng.choice(list("abcdefghkmnoprstu"), 50)) for _ in range(2_000)]
    counts = np.bincount(letter_groups(texts, 1024)[0], minlength=1024)
    # Rows drawn by chance for the 17 · 16³ windows would vary by the root of 68 windows a row, 12 %.
    assert counts.std() < 0.18 * counts.mean()
