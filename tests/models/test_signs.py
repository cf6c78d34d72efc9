"""Words of urgency and vulnerability: which are found, in which language, and what they change."""

import unicodedata

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import signs
from models.alerts import make_alerts
from models.language import LANGUAGES
from models.queries import load_queries
from models.records import Match, Post
from models.signs import signs_in, words_of_signs
from models.words import any_of, folded

KNOWN = st.sampled_from(sorted({lang for lists in words_of_signs().values() for lang in lists}))
WATER = next(q for q in load_queries() if q.id == "need.water")


@pytest.mark.parametrize(
    ("lang", "text", "signs"),
    [
        ("en", "Two kids and a DIALYSIS patient are stuck under the stairs", ["children", "dialysis", "trapped"]),
        ("es", "mi abuela está en el techo con el bebé, sin oxígeno", ["babies", "older people", "oxygen", "trapped"]),
        ("tr", "hamile eşim enkazın altında", ["pregnant", "trapped"]),
        ("ar", "أمي مقعدة وتحتاج أكسجين", ["disability", "oxygen"]),
        ("ar", "حليب للأطفال ولرضيع", ["children", "babies"]),
        ("ar", "فالعالقين والمسنين بحاجة لأكسجين", ["older people", "oxygen", "trapped"]),
        ("ary", "بالأنسولين وكالطفل", ["children", "insulin"]),
        ("ar", "لمسنا معاقبة", []),  # "we felt", "punishment": no "to the elderly", no "disabled"
        ("tr", "DİYALİZ HASTASI, ÇATIDA SIKIŞTI", ["dialysis", "trapped"]),
        ("en", "he can’t breathe", ["oxygen"]),
        ("fa", "دارند میمیرند، بچه‌ها", ["children", "dying"]),
        ("zh", "老人和孩子被困在屋顶", ["children", "older people", "trapped"]),
        ("ja", "車椅子の祖母が屋根の上にいます", ["older people", "disability", "trapped"]),
        ("pt-BR", "a água subiu e minha avó não anda", ["older people", "disability", "drowning"]),
        ("en", "STRANDED, neck-deep; Lolo and Lola stuck on 2nd flr", ["older people", "trapped", "drowning"]),
        ("en", "we are running out of food, two hours left to give", []),
        ("tl", "NASA BUBONG na kami, may baby, dialysis si lola", ["babies", "older people", "dialysis", "trapped"]),
        ("hi-Latn", "dadi chhat par hai, insulin khatam", ["older people", "insulin", "trapped"]),
        ("ne", "छोरी र गर्भवती दिदी घरभित्र पुरिएका छन्", ["children", "pregnant", "trapped"]),
        ("my", "ကလေးနဲ့ အဘွား ပိတ်မိနေတယ်", ["children", "older people", "trapped"]),
        ("el", "ΓΙΑΓΙΆ και μωρό στα κεραμίδια, χωρίς ινσουλίνη", ["babies", "older people", "insulin", "trapped"]),
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


@pytest.mark.parametrize(
    ("lang", "otherwise", "meant", "sign"),
    [
        ("ko", "진통제가 필요해요", "진통이 시작됐어요", "pregnant"),
        ("ko", "아이폰 충전기, 아이티, 딸기", "아이를 찾아요", "children"),
        ("ko", "딸기 나눔", "딸기를 든 딸이 있어요", "children"),
        ("vi", "đường kẹt xe", "đường kẹt xe, mẹ kẹt trên mái", "trapped"),
        ("vi", "quyết liệt, giao thông tê liệt, liệt kê", "mẹ liệt nằm trên bàn", "disability"),
        ("tr", "ağaç yolu engelliyor", "engelli çocuk", "disability"),
        ("tr", "DEDEKTÖR lazım", "dedem evde", "older people"),
        ("uk", "літній одяг", "літній жінці потрібна вода", "older people"),
        ("ar", "مقعد فارغ في السيارة", "زوجي مقعد", "disability"),
        ("fr", "des fils électriques", "mon fils de 7 ans", "children"),
        ("fr", "la route est bloquée", "la route est bloquée, mes parents sont bloqués", "trapped"),
        ("it", "strada bloccata", "mamma è bloccata al primo piano", "trapped"),
        ("ht", "wout la bloke", "mwen bloke nan chanm nan", "trapped"),
        ("bn", "পুলিশ তিনজনকে আটক করেছে", "ছাদে বসে আটকে আছি", "trapped"),
        ("en", "stuck in traffic again", "stuck in traffic, then stuck in the flood", "trapped"),
        ("en", "warnings fell on deaf ears", "my deaf aunt", "disability"),
        ("fr", "une voiture piégée", "une famille piégée par l'eau", "trapped"),
        ("hi", "जलस्तर में वृद्धि", "वृद्ध महिला अकेली है", "older people"),
        ("bn", "পানি বৃদ্ধি পাচ্ছে", "একজন বৃদ্ধ মানুষ", "older people"),
        ("ne", "बुढीगण्डकी नदी बढ्यो", "बुढी आमा एक्लै छिन्", "older people"),
        ("zh", "全市交通瘫痪", "爷爷瘫痪在床", "disability"),
        ("de", "Winde wehen stark", "Wehen alle 5 Minuten", "pregnant"),
    ],
)
def test_a_word_that_means_something_else_beside_others_is_no_sign_there(lang, otherwise, meant, sign):
    assert sign not in signs_in(otherwise, lang) and sign in signs_in(meant, lang)


SAID = [word.lstrip("-") for by in words_of_signs().values() for words in by.values() for word in words]
JOINED = [a + b + the for a in ("", *"وفبلك") for b in ("", *"وفبلك") for the in ("", "ال")] + ["لل", "ولل"]


@given(
    st.lists(st.sampled_from(SAID) | st.sampled_from(JOINED) | st.text(max_size=3), max_size=4),
    st.sampled_from(["", " ", "\n", "*"]),
    KNOWN,
)
def test_the_signs_are_those_of_every_words_own_pattern(parts, between, lang):
    def stands(words, text):
        joined = JOINED if lang == "ar" else [""]
        return any(any_of((front + word,)).search(text) for word in words for front in joined)

    text, expected = folded(between.join(parts)), []
    for sign, by in words_of_signs().items():
        otherwise = tuple(word[1:] for word in by.get(lang, []) if word.startswith("-"))
        left = any_of(otherwise).sub("|", text) if otherwise else text
        if stands([word for word in by.get(lang, []) if not word.startswith("-")], left):
            expected.append(sign)
    assert signs_in(text, lang) == expected


def test_every_word_is_found_as_it_stands_in_the_list_and_every_language_is_one_we_know():
    lists = [(sign, lang, words) for sign, by in words_of_signs().items() for lang, words in by.items()]
    assert len({lang for _, lang, _ in lists}) >= 25 and {lang for _, lang, _ in lists} <= set(LANGUAGES)
    for sign, lang, words in lists:
        for word in words:
            found = sign in signs_in(f"… {word.strip('-*')} …", lang)
            assert found != word.startswith("-"), (sign, lang, word)


def test_a_language_is_read_by_its_own_words_as_soon_as_one_sign_lists_it(monkeypatch):
    lists = {"children": {"en": ["child"]}, "trapped": {"en": ["trapped"], "sv": ["instängd*"]}}
    monkeypatch.setattr(signs, "words_of_signs", lambda: lists)
    monkeypatch.setattr(signs, "_listed", signs._listed.__wrapped__)  # what was read before stays kept
    assert signs.signs_in("vi är instängda", "sv") == ["trapped"]
    assert signs.signs_in("a child is trapped", "sv") == []
    assert signs.signs_in("a child is trapped", "nl") == ["children", "trapped"]


def test_what_is_passed_over_holds_a_word_of_its_sign():
    for sign, by in words_of_signs().items():
        for lang, words in by.items():
            said = tuple(word for word in words if word[0] != "-")
            idle = [word for word in words if word[0] == "-" and not any_of(said).search(folded(word.strip("-*")))]
            assert not idle, (sign, lang, idle)


def test_an_alert_carries_the_signs_and_nothing_else_of_it_hangs_on_them():
    said = ["No water for the children", "No water for the people"]
    posts = [Post(f"x:a/{n}", text, 1.0, 1.0, lang="en") for n, text in enumerate(said)]
    matches = [Match(p.id, WATER.id, "v", "alert", 0.9, 0.5, "Water", "en", 0.8) for p in posts]
    first, second = make_alerts(posts, matches, {WATER.id: WATER}, "e")
    assert first.evidence.signs == ["children"] and second.evidence.signs == []
    same = msgspec.structs.replace(first, alert_id="", evidence=second.evidence, post=second.post)
    assert same == msgspec.structs.replace(second, alert_id="")
