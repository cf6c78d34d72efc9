"""Words that must stand in a text, or must not: found however people spell them, and only whole."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.filters import Where
from models.records import Post
from models.words import any_of, folded, longest_part


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


@given(st.text(st.characters(max_codepoint=127)))
def test_of_ascii_nothing_but_case_is_left_out(text):
    assert folded(text) == text.lower()


@given(st.text("αάΐϊΫύὕὦωςσΣ", max_size=5))
def test_greek_is_compared_without_accents(text):
    bare = "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
    assert folded(text) == bare.lower().replace("ς", "σ")
