"""Laws of artificial noise, and what each transformation is for, on invented posts."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import ConfigError
from training.files import DataError
from training.noise import (
    KINDS,
    NEUTRAL,
    PAPER,
    WordList,
    draw_mix,
    kinds_of,
    noise,
    own_lists,
    read_lang_lists,
    read_word_list,
    transform,
)
from training.noise.keyboards import LAYOUT_OF, LAYOUTS, neighbours, neighbours_of
from training.noise.letters import hits, without_accents
from training.noise.romanise import romanise

TEXT = (
    "I am waiting for the police, they're two hours late. People please send water before Monday,"
    " because there is nothing to drink and the children need a doctor as soon as possible."
)
LANGS = sorted({*LAYOUT_OF, "en", "id", "vi", "sw", "ht", "zh"})
texts = st.text(max_size=80)
seeds = st.integers(0, 2**32)


@given(texts, seeds, st.sampled_from(LANGS))
def test_rate_0_leaves_any_text_as_it_is(text, seed, lang):
    assert noise(text, Random(seed), 0.0, lang) == text
    for kind in (*KINDS, "mix_all"):
        assert transform(kind, text, Random(seed), 0.0, lang) == text


@given(texts, seeds, st.floats(0, 1), st.sampled_from(LANGS))
def test_the_same_seed_gives_the_same_text_and_no_text_raises(text, seed, rate, lang):
    assert noise(text, Random(seed), rate, lang) == noise(text, Random(seed), rate, lang)
    for kind in KINDS:
        assert transform(kind, text, Random(seed), rate, lang) == transform(kind, text, Random(seed), rate, lang)


@given(seeds)
def test_another_seed_gives_another_text(seed):
    assert len({noise(TEXT, Random(f"{seed}-{i}"), 0.5) for i in range(20)}) > 10


def test_the_kinds_are_the_papers_twelve_for_english_and_neutral_ones_elsewhere():
    assert len(PAPER) == 12 and kinds_of("en") == PAPER
    assert kinds_of("ru") == NEUTRAL and "fing" in NEUTRAL
    assert {k: KINDS[k].p for k in PAPER if KINDS[k].scaled} == {
        "abr1": 0.1,
        "fing": 0.05,
        "homo": 0.5,
        "leet": 0.1,
        "spac": 0.1,
        "spel": 0.2,
    }


def _changed(before: str, after: str) -> float:
    assert len(before) == len(after)
    return sum(a != b for a, b in zip(before, after, strict=True)) / len(before)


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5, 0.9])
def test_measured_corruption_is_near_the_rate_for_letters(rate):
    text = "leo sat" * 4000
    letters = text.replace(" ", "").replace("\n", "")
    assert _changed(letters, transform("fing", letters, Random(1), rate)) == pytest.approx(rate, abs=0.015)
    assert _changed(letters, transform("leet", letters, Random(1), rate)) == pytest.approx(rate, abs=0.015)
    cyrillic = "вода" * 5000
    assert _changed(cyrillic, transform("fing", cyrillic, Random(1), rate, "ru")) == pytest.approx(rate, abs=0.015)


@pytest.mark.parametrize(
    "kind, word",
    [
        ("abr1", "please"),
        ("abr2", "people"),
        ("dysl", "angel"),
        ("homo", "there"),
        ("slng", "friend"),
        ("spel", "believe"),
        ("elon", "please"),
        ("vowl", "people"),
        ("week", "Monday"),
    ],
)
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_measured_corruption_is_near_the_rate_for_words(kind, word, rate):
    after = transform(kind, " ".join([word] * 4000), Random(2), rate).split()
    assert len(after) == 4000
    assert sum(w != word for w in after) / 4000 == pytest.approx(rate, abs=0.03)


def test_spac_loses_spaces_at_the_rate_and_puts_half_as_many_elsewhere():
    words = "ab " * 20_000
    after = transform("spac", words, Random(3), 0.1)
    assert after.replace(" ", "") == words.replace(" ", "")  # nothing but white space changes
    lost = words.count(" ") * 0.1
    put = words.count("a") * 2 * 0.05
    assert after.count(" ") == pytest.approx(words.count(" ") - lost + put, abs=150)
    assert "a b" in after and "bab" in after


def test_lost_drops_latin_letters_with_accents_unless_too_little_is_left():
    assert transform("lost", "Nou bezwen vètman ak kouvèti", Random(1), lang="ht") == "Nou bezwen vtman ak kouvti"
    for kept in ("Chúng tôi cần nước", "Нужна вода", "पानी चाहिए", "water"):
        assert transform("lost", kept, Random(1), lang="vi") == kept


@given(st.integers(0, 3000), st.floats(0, 1), seeds)
def test_hits_are_places_in_order_and_p_1_hits_all(count, p, seed):
    found = list(hits(count, p, Random(seed)))
    assert found == sorted(set(found)) and all(0 <= i < count for i in found)
    assert list(hits(count, 1, Random(seed))) == list(range(count))


def test_mix_all_samples_as_the_paper_says():
    rng, trials = Random(4), 40_000
    plans = [draw_mix(PAPER, rng, 0.1) for _ in range(trials)]
    sizes = Counter(len(plan) for plan in plans)
    # Footnote 7: 563,343 of 2 million sentences were left as they were, that is 0.9 ** 12.
    assert sizes[0] / trials == pytest.approx(563_343 / 2_000_000, abs=0.008)
    for kind in PAPER:
        assert sum(any(k == kind for k, _ in plan) for plan in plans) / trials == pytest.approx(0.1, abs=0.006)
    fing = Counter(p for plan in plans for k, p in plan if k == "fing")
    total = sum(fing.values())
    assert {round(p, 3): pytest.approx(n / total, abs=0.03) for p, n in fing.items()} == {
        0.025: 0.25,
        0.05: 0.5,
        0.075: 0.25,
    }
    assert {p for plan in plans for k, p in plan if k == "abr2"} == {1.0}  # no chance of its own: not scaled
    first = Counter(plan[0][0] for plan in plans if len(plan) > 1)
    assert min(first.values()) > 0.8 * max(first.values())  # shuffled: none goes first by its place in the list


@pytest.mark.parametrize(
    "kind, before, after",
    [
        ("abr3", "come as soon as possible", "come ASAP"),
        ("abr3", "The WHO is here, who else?", "The world health organization is here, who else?"),
        ("cont", "I am here and they are not there", "I'm here and they're not there"),
        ("cont", "We’re here, don't go", "We are here, do not go"),
        ("dysl", "QUIET please", "QUITE pelase"),
        ("abr1", "by the way we will come", "btw we wil come"),
    ],
)
def test_phrases_are_replaced_in_the_case_they_had(kind, before, after):
    assert transform(kind, before, Random(0), 1.0) == after


def test_days_and_months_are_shortened_and_spelt_out_only_where_they_are_meant():
    assert transform("week", "Monday in January", Random(0), 1.0).replace(".", "") == "Mon in Jan"
    assert transform("week", "Tues. 5 Sept 2021", Random(0), 1.0) == "Tuesday 5 September 2021"
    for innocent in ("the Sun rose", "she sat down, they may march", "Jan came", "May Day"):
        assert transform("week", innocent, Random(0), 1.0) == innocent


def test_every_keyboard_neighbour_touches_and_is_mutual():
    for name in LAYOUTS:
        beside = neighbours(name)
        assert beside and all(a in beside[b] for a, near in beside.items() for b in near)
        assert all(near for near in beside.values()), name
    assert set(neighbours("qwerty")["s"]) == set("adwezx")
    assert set(neighbours("qwerty")["p"]) == set("ol")
    assert set(neighbours("azerty")["q"]) == set("azsw")
    assert set(neighbours("russian")["о"]) >= set("рл") and set(neighbours("russian")["о"]).isdisjoint("фя")


def test_slips_stay_in_the_script_of_the_keyboard():
    for lang, text in {"ru": "помогите", "el": "νερο", "ar": "ماء", "hi": "पानी", "ka": "წყალი", "he": "מים"}.items():
        out = transform("fing", text * 50, Random(1), 0.5, lang)
        assert out != text * 50
        assert all(c in neighbours_of(lang) for c in out if c not in text)
    assert transform("fing", "water", Random(1), 1.0, "ru") != "water"  # Latin letters in any language


def test_a_slip_in_hangul_gives_syllables_again():
    out = transform("fing", "도와주세요" * 30, Random(1), 0.3, "ko")
    assert out != "도와주세요" * 30 and all("가" <= c <= "힣" for c in out)


@pytest.mark.parametrize(
    "text, plain",
    [
        ("Žádáme o vodu", "Zadame o vodu"),
        ("nước uống, xin giúp đỡ", "nuoc uong, xin giup do"),
        ("enkaz altında", "enkaz altinda"),
        ("νερό και φάρμακα", "νερο και φαρμακα"),
        ("ещё йод", "еще йод"),
        ("أين المستشفى", "اين المستشفي"),
        ("Straße", "Strasse"),
        ("पानी चाहिए", "पानी चाहिए"),
        ("water", "water"),
    ],
)
def test_accents_are_dropped_as_people_drop_them(text, plain):
    assert without_accents(text) == plain
    assert transform("accs", text, Random(0)) == plain


@pytest.mark.parametrize(
    "lang, text, options",
    [
        ("ru", "вода", {"voda"}),
        ("ru", "ВОДА", {"VODA"}),
        ("uk", "Допоможіть", {"Dopomozhit", "Dopomozhit'", "Dopomojit", "Dopomojit'"}),
        ("sr", "помоћ", {"pomoc"}),
        ("el", "νερό", {"nero", "vero"}),
        ("hi", "नमक", {"namak"}),  # the last a is silent, the middle one is not
        ("hi", "लड़का", {"ladka", "larka", "ladkaa", "larkaa"}),  # the middle one is silent
        ("hi", "मदद", {"madad"}),
        ("ar", "سلام", {"slam", "salam", "selam", "silam"}),
    ],
)
def test_other_scripts_are_typed_in_latin_as_one_writer_would(lang, text, options):
    assert {romanise(text, Random(seed), lang) for seed in range(60)} <= options


@pytest.mark.parametrize(
    "lang, text",
    [
        ("ru", "Щас придут Юля и Яна, ждём"),
        ("ar", "نحتاج إلى الماء والدواء"),
        ("hi", "हमें पानी और दवा चाहिए"),
        ("el", "Χρειαζόμαστε νερό"),
        ("bg", "Нуждаем се от вода"),
    ],
)
def test_nothing_of_the_script_is_left_after_romanisation(lang, text):
    assert transform("roma", text, Random(5), lang=lang).isascii()


def test_a_script_without_a_table_is_left_alone():
    assert romanise("水がない。ช่วยด้วย", Random(1), "ja") == "水がない。ช่วยด้วย"


@pytest.mark.parametrize(
    "lang, text",
    [
        ("id", "kami tidak bisa dengan air"),
        ("vi", "không có nước"),
        ("ja", "ありがとうございます"),
        ("th", "ขอบคุณครับ"),
        ("hi-Latn", "paani nahi hai"),
        ("es", "por favor agua"),
    ],
)
def test_other_languages_have_short_forms_of_their_own(lang, text):
    assert transform("abrv", text, Random(1), 1.0, lang) != text


def test_the_longest_phrase_wins_and_only_whole_words_count():
    words = WordList([("at", ("@",)), ("at the moment", ("atm",))])
    assert words.replace("at the moment water is at home", Random(0), 1.0) == "atm water is @ home"
    assert words.replace("at the  moment", Random(0), 1.0) == "@ the  moment"


def test_own_lists_are_real_lists_without_a_form_that_changes_nothing():
    lists = own_lists()
    assert all(len(lists[k]) >= 90 for k in ("abr1", "abr2", "abr3", "cont", "dysl", "homo", "slng", "spel"))
    assert sum(name.startswith("abrv.") for name in lists) >= 20
    assert all(
        f != standard and f for words in lists.values() for standard, forms in words._forms.items() for f in forms
    )


def test_lists_may_be_replaced_by_larger_ones():
    mine = {"spel": WordList([("flood", ("flodd",))])}
    assert transform("spel", "flood water", Random(0), 1.0, lists=mine) == "flodd water"


def test_a_damaged_list_names_the_file_and_the_line(tmp_path):
    path = tmp_path / "spel.tsv"
    path.write_text("# mine\nwater\twatre\nflood\n")
    with pytest.raises(DataError, match=r"spel.tsv, line 3: 1 columns, wanted 2"):
        read_word_list(path)
    with pytest.raises(DataError, match="missing data file"):
        read_lang_lists(tmp_path / "none.tsv")


def test_an_unknown_transformation_is_refused_with_the_choice():
    with pytest.raises(ConfigError, match="mix_all, abr1"):
        transform("typo", "water", Random(0))
