"""Which words move a reading: the parts add up, and the words that say it say most of it."""

from __future__ import annotations

import pytest

from models.encoders.ready import load, ready
from models.errors import QueryError
from models.moving_words import MOST_WORDS, moving_words, moving_words_told
from models.queries import load_queries
from models.records import Post


@pytest.fixture(scope="module")
def made():
    return ready(load("flood"), load_queries())


def post(text: str, lang: str = "en") -> Post:
    return Post("p", text, 0.0, 0.0, lang)


def test_the_words_and_the_rest_add_up_to_the_readings_log_odds(made):
    asked = post("Please send drinking water, the well in our street is broken")
    moved = moving_words(made.matcher, made.encoder, asked, "need.water")
    assert moved.rest + sum(word.by for word in moved.words) == pytest.approx(moved.log_odds, abs=1e-2)
    (match, *_) = made.matcher.match(["p"], made.encoder.encode([asked.text]), made.encoder.version, [asked])
    assert match.query_id == "need.water" and moved.log_odds == pytest.approx(sum(match.terms.values()), abs=1e-2)


def test_each_word_moves_by_what_the_post_without_it_lacks(made):
    text = "Please send drinking water"
    moved = moving_words(made.matcher, made.encoder, post(text), "need.water")
    for word in moved.words:
        left = moving_words(made.matcher, made.encoder, post(text[: word.start] + " " + text[word.end :]), "need.water")
        assert word.by == pytest.approx(moved.log_odds - left.log_odds, abs=2e-3)


def test_the_word_that_says_what_is_needed_moves_most(made):
    text = "Please send drinking water to our street"
    moved = moving_words(made.matcher, made.encoder, post(text), "need.water")
    most = max(moved.words, key=lambda word: word.by)
    assert text[most.start : most.end] == "water"
    assert "“water” +" in moving_words_told(moved, text)


@pytest.mark.parametrize(
    ("text", "lang"), [("我们需要饮用水和食物请帮助我们", "zh"), ("🙏", "und"), ("", "und"), ("water " * 900, "en")]
)
def test_any_text_is_taken_apart_within_bounds_and_without_overlap(made, text, lang):
    moved = moving_words(made.matcher, made.encoder, post(text, lang), "need.water")
    assert len(moved.words) <= MOST_WORDS
    assert all(a.end <= b.start for a, b in zip(moved.words, moved.words[1:], strict=False))
    assert len(moved.words) > 1 or lang == "und"


def test_a_query_that_is_gone_is_said_to_be(made):
    with pytest.raises(QueryError, match=r"no query need\.boats"):
        moving_words(made.matcher, made.encoder, post("water"), "need.boats")
