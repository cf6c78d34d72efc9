"""Digits and signs as the letters they stand for, where that makes a word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from models.encoders.leet import Leet
from models.encoders.load import FLOOD

LEET = Leet(Tokenizer.from_file(str(FLOOD / "tokenizer.json")))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("h3lp us, w4t3r please", "help us, water please"),
        ('"W4TER!!!"', '"water!!!"'),
        ("a f!re!", "a fire!"),
        ("fam1ly and fam1lies", "family and families"),
        ("нужна в0да", "нужна вода"),
        ("$tay 4way", "stay away"),
        ("people inter3sted", "people interested"),
    ],
)
def test_words_are_read_in_letters(written, meant):
    assert LEET.read(written) == meant


@pytest.mark.parametrize(
    "text",
    ["covid19 in h1n1 times", "5th, 1st and 22nd", "10km at 5pm", "US$ 20 or $20m", "help! 100+ people", "gr8 m8", "@USER HTTPURL",
     "call +509 3456-7890", "24/7", "4x4", "A1 b2 c3d4e5f6g7", "१२ किमी", "3 pm"],
)  # fmt: skip
def test_numbers_units_codes_and_money_stay(text):
    assert LEET.read(text) == text


@given(st.text(alphabet=st.characters(exclude_characters="0123456789@$!|+"), max_size=60))
def test_a_text_without_digits_and_signs_is_as_it_was(text):
    assert LEET.read(text) == text


@given(st.text(alphabet='ab l1!|04@$ехз3,."', max_size=40))
def test_what_is_read_once_stays_and_no_word_comes_or_goes(text):
    read = LEET.read(text)
    assert LEET.read(read) == read and read.count(" ") == text.count(" ")


@pytest.mark.parametrize("unit", ["a1|1|1b ", "|", "!", "w4t3r ", "a1|1|1b", "$!|+@"])
def test_of_a_text_of_signs_only_so_many_words_are_read_and_none_that_nobody_types(unit, monkeypatch):
    calls, leet = [], Leet(Tokenizer.from_file(str(FLOOD / "tokenizer.json")))
    monkeypatch.setattr(leet, "_word", lambda word: calls.append(len(word)) or word)
    leet.read(unit * (10_000 // len(unit)))
    assert len(calls) <= 24 and all(length <= 32 for length in calls)
