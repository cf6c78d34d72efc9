"""Which words are frequent whatever is talked of."""

from __future__ import annotations

from math import log

import pytest

from training.function_words import Config, Text, evenness, function_words

CONFIG = Config(often=0.5, least=4, posts_often=0.5, even=0.9)


def test_evenness_is_the_entropy_of_shares_and_what_few_texts_lack_of_it():
    texts = {"water": 10, "food": 40, "shelter": 10}
    assert evenness({"water": 5, "food": 20, "shelter": 5}, texts) == 1.0
    assert evenness({"water": 5}, texts) == 0.0
    halves = -2 * 0.5 * log(0.5)  # the same share in two of three: ten of forty is five of twenty
    assert evenness({"water": 5, "shelter": 5}, texts) == pytest.approx((halves + 1 / 20) / log(3))
    assert evenness({}, texts) == 1.0 == evenness({"": 3}, {"": 3})


def texts(kind, lang="en", **said):
    """Four texts, each word in as many of them as told."""
    return [Text(lang, kind, " ".join(word for word, times in said.items() if n < times)) for n in range(4)]


def test_a_word_is_one_where_most_kinds_of_text_say_it_often():
    told = [
        *texts("sentences", the=4, dragon=0, tom=4),
        *texts("games", the=2, dragon=4),
        *texts("health", the=1, tom=1),
    ]
    assert function_words(told, {}, CONFIG) == {"en": ["the"]}
    assert function_words(told, {"en": {"the"}}, CONFIG) == {}
    assert function_words(told[:4], {}, CONFIG) == {"en": ["the", "tom"]}  # of one kind alone


def test_kinds_of_few_texts_are_not_asked_and_pairs_of_letters_are_no_words():
    few = [Text("es", "games", "dragones")] * 3
    assert function_words([*texts("sentences", "es", los=4), *few], {}, CONFIG) == {"es": ["los"]}
    assert function_words(texts("sentences", "zh", 需要水=4), {}, CONFIG) == {}


def test_a_word_of_posts_has_to_be_as_frequent_whatever_is_asked_for():
    posts = [
        Text("so", "posts", f"{'biyo' if asked == 'water' else 'cunto'} iyo", asked) for asked in ("water", "food")
    ]
    posts += [Text("so", "posts", "biyo iyo", "")] * 2  # that ask for nothing: they count as posts, and as no class
    assert function_words(posts * 5, {}, CONFIG) == {"so": ["iyo"]}
