"""Words read as they were meant: one kind of noise a test, and what must stay as it stands."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.encoders.normalise import NormalisedEncoder, Normaliser
from models.text import Cleaning

WORDS = "the a of in to we need water people house bridge please help under near today tomorrow food now not day"
SEEN = {word: 1000 // place for place, word in enumerate(WORDS.split(), 1)}
READ = Normaliser(SEEN, {"u": "you", "ppl": "people", "2moro": "tomorrow", "the": "tea"}).read


@pytest.mark.parametrize(
    "noised, meant",
    [
        ("we need watre now", "we need water now"),  # two letters exchanged
        ("we need wayer now", "we need water now"),  # the key beside
        ("we need wter now", "we need water now"),  # a letter lost
        ("we need waater now", "we need water now"),  # a letter twice
        ("we nee d water", "we need water"),  # a word apart
        ("help inthe house", "help in the house"),  # two together
        ("pleaaaase help the people", "please help the people"),  # a letter held down
        ("help u ppl 2moro", "help you people tomorrow"),  # short forms
        ("we need w4t3r now", "we need water now"),  # digits for letters
        ("Pleese help, we need WATRE!", "Please help, we need WATER!"),  # capitals and marks stay
    ],
)
def test_noise_is_read_as_what_was_meant(noised, meant):
    assert READ(noised) == meant


@pytest.mark.parametrize(
    "text",
    [
        "we need water near the bridge today",  # known words, though "need" is one slip from "nee d"
        "people in Watre need the food now",  # a name
        "nou bezwen dlo ak manje souple",  # another language
        "нужна вода в школе",
        "we need 20 of the 4x4 now",
        "we need water, @watre #wateer HTTPURL",  # what cleaning put there, and tags
        "we to day",  # both halves are words
        "",
        " … ",
    ],
)
def test_what_is_known_named_or_of_another_language_stays(text):
    assert READ(text) == text


def test_a_slip_is_read_as_the_likelier_word_and_two_words_only_where_they_are_likelier():
    read = Normaliser({"water": 10, "waver": 1, "we": 50, "are": 50, "a": 100, "late": 5, "later": 1}).read
    assert read("we are wazer") == "we are water"
    assert read("we a weare") == "we a we are"  # (50/217)² is more than any slip


@settings(max_examples=50)
@given(st.text())
def test_any_text_is_read_and_what_was_read_of_known_words_is_settled(text):
    READ(text)
    known = " ".join(word for word in text.lower().split() if word in SEEN)
    assert READ(known) == known


def test_an_encoder_reads_the_cleaned_text_normalised():
    class Told:
        version, dim, cleaning = "told", 1, Cleaning()

        def encode(self, texts):
            self.texts = list(texts)
            return np.ones((len(texts), 1), np.float32)

    told = Told()
    encoder = NormalisedEncoder(told, Normaliser(SEEN))
    assert encoder.encode(["@me we need watre https://x.org/y"]).shape == (1, 1)
    assert told.texts == ["@USER we need water HTTPURL"] and encoder.version == "told-normalised" and encoder.dim == 1
