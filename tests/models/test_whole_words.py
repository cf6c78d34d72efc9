"""Words that must stand in a text, or must not: found however people spell them, and only whole."""

import unicodedata
from itertools import groupby

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from models.filters import Where
from models.records import Post
from models.words import JOINER, any_of, folded, longest_part
from tests.hostile.test_cost import assert_in_proportion


def stands(word: str, text: str) -> bool:
    return bool(any_of((word,)).search(folded(text)))


@pytest.mark.parametrize(
    "one, other",
    [
        ("diyaliz", "DİYALİZ"),
        ("ısıtıcı", "ISITICI"),
        ("istanbul", "İSTANBUL"),
        ("i\u0307stanbul", "İstanbul"),  # as programs make it small that know no Turkish
        ("νερό", "ΝΕΡΟ"),
        ("πόδας", "ΠΟΔΑΣ"),
        ("ἄνθρωποι", "άνθρωποι"),
        ("ребёнок", "ребенок"),
        ("أطفال", "اطفال"),
        ("إسعاف", "اسعاف"),
        ("آلاف", "الاف"),
        ("مستشفى", "مستشفي"),
        ("مدرسة", "مدرسه"),
        ("کمک", "كمك"),
        ("پانی", "پاني"),
        ("ماء", "مـــاء"),
        ("مياه", "مِيَاه"),
        ("مياه", "ﻣﻴﺎﻩ"),  # letters of old systems
        ("מים", "מַיִם"),
        ("can't", "can’t"),
        ("кров'ю", "кровʼю"),
        ("straße", "STRASSE"),
        ("help", "ＨＥＬＰ"),
    ],
)
def test_a_word_is_found_in_each_of_its_spellings(one, other):
    for word, text in ((one, other), (other, one)):
        assert stands(word, f"({text}!)") and not stands(word, f"x{text}") and not stands(word, f"{text}x 1{text}")
        post = Post("p", text, 0, 0)
        assert not Where(must=[word]).refusal(post) and Where(must_not=[word]).refusal(post)


def test_what_shows_nothing_parts_no_word_of_a_script_without_spaces():
    assert stands("ទឹកស្អាត", "ត្រូវការទឹក\u200bស្អាត")


@pytest.mark.parametrize("word, other", [("má", "ma"), ("kẹt", "két"), ("año", "ano"), ("їжа", "іжа"), ("мій", "мии")])
def test_an_accent_that_makes_another_word_counts(word, other):
    assert not stands(word, other) and not stands(other, word) and stands(word, word.upper())


@pytest.mark.parametrize("text", ["بچه‌ها", "بچه ها", "این بچه‌ام"])
def test_a_persian_word_is_found_before_the_ending_that_a_joiner_parts_from_it(text):
    assert stands("بچه", text) and not stands("بچه", "بچهها")


@pytest.mark.parametrize("text", ["می‌خواهیم", "میخواهیم", "می خواهیم"])
def test_a_joiner_in_a_word_that_is_asked_for_may_be_left_out_or_a_space(text):
    assert stands("می‌خواهیم", text) and stands("می‌خواه*", text) and longest_part("می‌خواه*") in folded(text)
    assert stands("می خواهیم", text) == (text != "میخواهیم")


GAPS = f" {JOINER}"
WORDS = st.text(f"ab{GAPS}*", max_size=12).filter(lambda word: "a" in word or "b" in word)


def by_letters(word: str, text: str) -> bool:
    """Does the word stand in the text? A place at a time, every way to share the blanks between its parts."""
    open_end = word.strip().endswith("*")
    bare = word.strip().rstrip("*").strip(GAPS)
    parts = ["".join(part) for _, part in groupby(bare, GAPS.__contains__)]

    def goes_on(at: int, parts: list[str]) -> bool:
        if not parts:
            return open_end or not text[at : at + 1].isalnum()
        if parts[0][0] not in GAPS:
            return text.startswith(parts[0], at) and goes_on(at + len(parts[0]), parts[1:])
        most = len(text) - at - len(text[at:].lstrip(GAPS))
        return any(goes_on(at + n, parts[1:]) for n in range(" " in parts[0], most + 1))

    return any(goes_on(at, parts) for at in range(len(text)) if not text[at - 1 : at].isalnum())


@given(WORDS, st.text(f"ab{GAPS}*", max_size=16))
@example("a\u200c \u200c \u200cb", "a\u200cb")
@example("a\u200c \u200c \u200cb", "a b")
@example("\u200ca\u200c", " a b")
def test_a_word_stands_where_its_letters_stand_with_any_blanks_where_it_has_one(word, text):
    assert stands(word, text) == by_letters(word, text)


@settings(max_examples=60, deadline=None)
@given(WORDS, st.text(f"ab{GAPS}", min_size=1, max_size=3))
@example("می\u200c \u200c \u200cخواهیم", " \u200c")
@example("\u200ca", " ")
def test_no_word_makes_a_text_cost_more_than_its_length(word, unit):
    begun = word.partition(JOINER)[0]
    assert_in_proportion(any_of((word,)).search, lambda length: begun + unit * (length // len(unit)), 10_000)


@given(st.text(st.characters(max_codepoint=127)))
def test_of_ascii_nothing_but_case_is_left_out(text):
    assert folded(text) == text.lower()


@given(st.text("αάΐϊΫύὕὦωςσΣ", max_size=5))
def test_greek_is_compared_without_accents(text):
    bare = "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
    assert folded(text) == bare.lower().replace("ς", "σ")
