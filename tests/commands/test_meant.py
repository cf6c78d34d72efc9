"""What was likely meant by an id that no query has and a language that no post has."""

from __future__ import annotations

import pytest

from models import language
from models.errors import QueryError
from models.queries import load_queries
from streams.commands.meant import NAMES, TAGGED, no_query, post_language


def test_every_language_that_posts_can_carry_is_taken_and_no_other():
    models = language._models()
    found = {language._RENAMED.get(label, label) for label in models.words.labels}
    assert found - language.LANGUAGES == TAGGED
    carried = found | language.LANGUAGES - {"no"} | {"pt-BR", "zh-Hant", "sr-Latn", "und"}  # Norwegian is nb or nn
    for code in carried:
        assert post_language(code) == post_language(code.upper()) == code
    assert {lang for query in load_queries() for lang in query.sentences} <= carried
    assert set(NAMES.values()) <= carried


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("english", "en"),
        ("Englisch", "en"),
        ("eng", "en"),
        ("spa", "es"),
        ("sp", "es"),
        ("haitian", "ht"),
        ("en-US", "en"),
        ("zh_TW", "zh-Hant"),
        ("jp", "ja"),
        ("no", "nb"),
    ],
)
def test_what_is_no_code_of_a_language_is_refused_with_the_one_that_is_likely_meant(typed, meant):
    with pytest.raises(QueryError, match=rf"no post has the language '{typed}' \(did you mean {meant}\?\)"):
        post_language(typed)


@pytest.mark.parametrize("typed", ["xx", "klingon", "", "e n", "en;es"])
def test_where_nothing_is_near_nothing_is_guessed(typed):
    with pytest.raises(QueryError, match="write codes of ISO 639") as told:
        post_language(typed)
    assert "did you mean" not in str(told.value)


def test_an_id_that_no_query_has_is_told_with_the_nearest_one():
    assert no_query("need.watr", {"need.water", "need.food"}) == (
        "no query 'need.watr' (did you mean need.water?); `crisis query list` shows the 2 active ones"
    )
    assert "did you mean" not in no_query("x", {"need.water"})
