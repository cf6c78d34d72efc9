"""Codes of languages: what others write for ours, which ones posts carry, and what was likely meant by another."""

from __future__ import annotations

import msgspec
import pytest

from models import language
from models.errors import QueryError
from models.filters import Where, check_where
from models.language_tags import (
    LANGUAGES,
    NAMES,
    RENAMED,
    TAGGED,
    carried,
    in_other_script,
    normalise_tag,
    post_language,
)
from models.queries import Query, check_query, load_queries, without_void


@pytest.mark.parametrize(
    "tag, ours",
    [
        ("en-US", "en"), ("pt_br", "pt-BR"), ("pt-PT", "pt"), ("zh-TW", "zh-Hant"), ("zh-Hant-HK", "zh-Hant"),
        ("zh-CN", "zh"), ("no", "nb"), ("iw", "he"), ("in", "id"), ("fil-PH", "tl"), ("bs", "bs"), ("sh", "hr"),
        ("prs", "fa"), ("yue", "zh"), ("sr-Latn-RS", "sr-Latn"), ("hi-latn-IN", "hi-Latn"), ("ps-Latn", "ps-Latn"),
        ("tr-Latn", "tr"), ("uz-Cyrl", "uz"), ("qzx", "qzx"), ("und", "und"), ("zxx", "und"), ("", "und"),
        (None, "und"), ("english", "und"), ("x", "und"),
    ],
)  # fmt: skip
def test_every_spelling_of_a_tag_becomes_ours(tag, ours):
    assert normalise_tag(tag) == ours


def test_codes_of_three_letters_become_those_of_two():
    long = "spa eng fra fre deu ger hat swa som hau mya bur ind tgl ara fas per urd hin ben amh orm tir zho kmr bos nor"
    short = "es en fr fr de de ht sw so ha my my id tl ar fa fa ur hi bn am om ti zh ku bs nb"
    assert [normalise_tag(tag) for tag in long.split()] == short.split()
    assert normalise_tag("zho-Hant") == "zh-Hant" and normalise_tag("URD-Latn") == "ur-Latn"


def test_our_own_codes_are_what_they_were():
    assert {code: normalise_tag(code) for code in LANGUAGES} == {code: code for code in LANGUAGES}


def test_languages_in_other_letters_are_those_that_are_mostly_written_so():
    assert all(map(in_other_script, "ar hi ur ps ru uk el he ja ko zh th my am ka hy bn ta kk sr".split()))
    assert not any(map(in_other_script, "en tr vi ha so sw ht id tl ku uz az hr qzx und".split()))


def test_every_language_that_posts_can_carry_is_taken_and_no_other():
    models = language._models()
    found = {RENAMED.get(label, label) for label in models.words.labels}
    assert found - LANGUAGES == TAGGED
    romanised = {f"{code}-Latn" for code in LANGUAGES if in_other_script(code)}
    posts = found | LANGUAGES - {"no"} | romanised | {"pt-BR", "zh-Hant", "und"}  # Norwegian is nb or nn
    for code in posts:
        assert post_language(code) == post_language(code.upper()) == code
    assert {lang for query in load_queries() for lang in query.sentences} <= posts
    assert set(NAMES.values()) <= posts


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("english", "en"),
        ("Englisch", "en"),
        ("eng", "en"),
        ("spa", "es"),
        ("sp", "es"),
        ("haitian", "ht"),
        ("hat", "ht"),
        ("en-US", "en"),
        ("es-419", "es"),
        ("zh_TW", "zh-Hant"),
        ("zh-Hans", "zh"),
        ("jp", "ja"),
        ("no", "nb"),
        ("fil", "tl"),
        ("iw", "he"),
    ],
)
def test_a_code_that_no_post_carries_is_refused_with_the_one_that_is_likely_meant(typed, meant):
    told = rf"no post has the language '{typed}' \(did you mean {meant}\?\)"
    with pytest.raises(QueryError, match=told):
        post_language(typed)
    with pytest.raises(QueryError, match=f"query need.x: {told}"):  # of a query in whatever way it comes
        check_where(Where(languages=["es", typed]), "need.x")


@pytest.mark.parametrize("typed", ["xx", "klingon", "", "e n", "en;es"])
def test_where_nothing_is_near_nothing_is_guessed(typed):
    with pytest.raises(QueryError, match="write codes of ISO 639") as told:
        post_language(typed)
    assert "did you mean" not in str(told.value)


def test_a_stored_query_reads_the_languages_that_its_codes_stand_for():
    stored = Query("need.boats", "need", "boats", "Boats", {"en": ["we need a boat"]}, where=Where(["fil", "no", "xx"]))
    read = check_query(without_void(stored))
    assert read.where == Where(["tl", "nb"])
    assert not read.where.origin_refusal("tl", "sms") and read.where.origin_refusal("es", "sms")
    assert carried("xx") == ""
    nothing = msgspec.structs.replace(stored, where=Where(["xx"]))  # read nothing, and would else read everything
    with pytest.raises(QueryError, match="no post has the language 'xx'"):
        check_query(without_void(nothing))
