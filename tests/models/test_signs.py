"""Words of urgency and vulnerability: which are found, in which language, and what they change."""

import unicodedata

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.alerts import make_alerts
from models.language import LANGUAGES
from models.queries import load_queries
from models.records import Match, Post
from models.signs import signs_in, words_of_signs
from models.words import any_of, folded

KNOWN = st.sampled_from(sorted(words_of_signs()["children"]))
WATER = next(q for q in load_queries() if q.id == "need.water")


@pytest.mark.parametrize(
    ("lang", "text", "signs"),
    [
        ("en", "Two kids and a DIALYSIS patient are stuck under the stairs", ["children", "dialysis", "trapped"]),
        ("es", "mi abuela está en el techo con el bebé, sin oxígeno", ["babies", "older people", "oxygen", "trapped"]),
        ("tr", "hamile eşim enkazın altında", ["pregnant", "trapped"]),
        ("ar", "أمي مقعد وتحتاج أكسجين", ["disability", "oxygen"]),
        ("zh", "老人和孩子被困在屋顶", ["children", "older people", "trapped"]),
        ("ja", "車椅子の祖母が屋根の上にいます", ["older people", "disability", "trapped"]),
        ("pt-BR", "a água subiu e minha avó não anda", ["older people", "disability", "drowning"]),
        ("nl", "we have an infant here", ["babies"]),  # no list of its own: the English one
        ("en", "lovely weather for football today", []),
        ("es", "los vecinos son buenos", []),  # a child in English, "they are" in Spanish
        ("en", "she was kidding about the kidney beans", []),
    ],
)
def test_signs_are_told_in_their_order_by_whole_words_of_the_post_s_language(lang, text, signs):
    assert signs_in(text, lang) == signs


@given(st.text(), st.sampled_from(["en", "ar", "zh", "und", ""]))
def test_any_text_is_looked_through_whatever_its_case_and_width(text, lang):
    found = signs_in(text, lang)
    assert found == [sign for sign in words_of_signs() if sign in found]
    assert found == signs_in(unicodedata.normalize("NFKC", text), lang)


SAID = [word for by in words_of_signs().values() for words in by.values() for word in words]


@given(st.lists(st.sampled_from(SAID) | st.text(max_size=3), max_size=4), st.sampled_from(["", " ", "\n", "*"]), KNOWN)
def test_the_signs_are_those_of_every_words_own_pattern(parts, between, lang):
    text = between.join(parts)
    known = {sign: by[lang] for sign, by in words_of_signs().items() if lang in by}
    expected = [sign for sign, words in known.items() if any_of(tuple(words)).search(folded(text))]
    assert signs_in(text, lang) == expected


def test_every_word_is_found_as_it_stands_in_the_list_and_every_language_is_one_we_know():
    lists = [(sign, lang, words) for sign, by in words_of_signs().items() for lang, words in by.items()]
    assert len({lang for _, lang, _ in lists}) >= 25 and {lang for _, lang, _ in lists} <= set(LANGUAGES)
    for sign, lang, words in lists:
        for word in words:
            assert sign in signs_in(f"… {word.rstrip('*')} …", lang), (sign, lang, word)


def test_an_alert_carries_the_signs_and_nothing_else_of_it_hangs_on_them():
    said = ["No water for the children", "No water for the people"]
    posts = [Post(f"x:a/{n}", text, 1.0, 1.0, lang="en") for n, text in enumerate(said)]
    matches = [Match(p.id, WATER.id, "v", "alert", 0.9, 0.5, "Water", "en", 0.8) for p in posts]
    first, second = make_alerts(posts, matches, {WATER.id: WATER}, "e")
    assert first.evidence.signs == ["children"] and second.evidence.signs == []
    same = msgspec.structs.replace(first, alert_id="", evidence=second.evidence, post=second.post)
    assert same == msgspec.structs.replace(second, alert_id="")
