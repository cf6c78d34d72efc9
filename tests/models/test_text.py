"""What `clean`, `repair` and `mask` promise, as laws over any text and as examples."""

import ftfy
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from models import privacy
from models import text as of_text
from models.text import Cleaning, clean, mask, repair
from tests.hostile.test_cost import assert_in_proportion

# What interacts: entities that make entities, URLs beside mentions, joiners, marks, damage, both Burmese encodings.
PIECES = st.sampled_from(
    [
        "&amp;", "&", "amp;", "&lt;", "&#x41;", "&#65286;", "＆", "&eacute", "#", "http://", "https://t.co/a", "www.",
        ".com/x", "t.co/", "/", "@", "@bob", "@USER", "HTTPURL", "a@b.co", "[phone]", "+1 415 555 2671", "0532 123 45 67",
        "12", "-", "2023-02-06", "🙏🏽", "👨‍👩‍👧‍👧", "🏴", "\U000e0041", "1️⃣", "\u200d", "\ufe0f", "©", "’", "“", "ï¼", "Ã©", "â€™",
        "Ã", "Â ", "\u00a0", "\u202e", "\u200b", "ေ", "ျ", "က", "္", "့", "ၾကိ", "ကို", " ", "\n", "ＡＢ", "ﬁ", "\ud800", "\x00",
        "\x85", "é", "e\u0301", "в", "Ð", "Ñ€",
    ]
)  # fmt: skip
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=14).map("".join)


@given(TEXTS)
@settings(max_examples=400, deadline=None)
@example("&" + "amp;" * 30 + "lt;")
def test_cleaning_what_is_clean_changes_nothing(text):
    once = clean(text)
    assert clean(once) == once


@given(TEXTS)
@settings(max_examples=400, deadline=None)
def test_repairing_what_is_repaired_changes_nothing_and_it_can_always_be_sent(text):
    once = repair(text)
    assert repair(once) == once
    once.encode()


@given(TEXTS)
@settings(max_examples=400, deadline=None)
@example("a@b.co0a@b.co")
def test_masking_what_is_masked_changes_nothing(text):
    once = mask(text)
    assert mask(once) == once


@given(TEXTS)
@settings(max_examples=200, deadline=None)
def test_a_clean_text_is_one_line_of_single_spaces(text):
    assert clean(text) == " ".join(clean(text).split())


@given(TEXTS)
@settings(max_examples=200, deadline=None)
def test_a_repaired_text_holds_nothing_that_cannot_be_seen_or_that_turns_text_around(text):
    assert not set(repair(text)) & set(
        "\x00\x1b\x7f\u200b\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff\r\t"
    )


@pytest.mark.parametrize(
    "raw, cleaned",
    [
        ("Help @redcross at https://t.co/Ab12 now", "Help @USER at HTTPURL now"),
        ("see http://a.example/x?y=1&z=2.", "see HTTPURL."),
        ("www.example.org and t.co/xyz but and/or stays", "HTTPURL and HTTPURL but and/or stays"),
        ("RT @name: @user@mastodon.example @alice.bsky.social hi", "RT @USER: @USER @USER hi"),
        ("mail me@example.org", "mail me@example.org"),
        ("water &amp; food &lt;now&gt;", "water & food <now>"),
        ("two\nlines\t and\u00a0 spaces ", "two lines and spaces"),
        ("pray 🙏🏽 please", "pray folded hands medium skin tone please"),
        ("1️⃣ list ❤️", "keycap 1 list red heart"),
        ("it’s “quoted”", 'it\'s "quoted"'),
        ("caf\u0065\u0301", "café"),
        ("schÃ¶n und gÃ¼nstig", "schön und günstig"),
        ("救助お願いhttps://t.co/abcこれ", "救助お願いHTTPURLこれ"),
        ("", ""),
    ],
)
def test_cleaning_is_that_of_the_crisistransformers_papers(raw, cleaned):
    assert clean(raw) == cleaned


def test_the_encoder_chooses_the_mention_token_and_whether_emoji_become_words():
    assert clean("@a 🌊", Cleaning(mention_token="@MENTION", emoji_names=False)) == "@MENTION 🌊"


@pytest.mark.parametrize(
    "text",
    [
        "Eau potable demandée près de l’église, s’il vous plaît",
        "Нужна вода и еда, срочно",
        "Χρειαζόμαστε νερό",
        "نحتاج إلى الماء",
        "पानी चाहिए",
        "ต้องการน้ำ",
        "水が必要です。ボートを送って！",
        "Cần nước gấp",
        "Potřebujeme vodu – ihned",
    ],
)
@pytest.mark.parametrize("encoding", [None, "windows-1252", "latin-1", "windows-1251", "cp437", "macroman"])
def test_the_cheap_look_never_misses_what_ftfy_would_repair(text, encoding):
    if encoding:
        text = text.encode().decode(encoding, "replace")
    assert clean(text, Cleaning(emoji_names=False)) == " ".join(_ftfy_until_settled(text).split())


def _ftfy_until_settled(text):
    config = ftfy.TextFixerConfig(explain=False, unescape_html=False)
    while (fixed := ftfy.fix_text(" ".join(text.split()), config)) != text:
        text = fixed
    return text


@pytest.mark.parametrize(
    "raw, shown",
    [
        ("water &amp; food", "water & food"),
        ("a \u202eevil\u202c b\x00\x07", "a evil b"),
        ("line one\r\n\r\n  line two \n", "line one\nline two"),
        ("half \ud83d pair", "half \ufffd pair"),
        ("zero\u200bwidth\ufeff \u2060join", "zerowidth join"),
        ("می\u200cخواهم", "می\u200cخواهم"),  # Persian needs this joiner
        (
            "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f 👨‍👩‍👧 ❤️",
            "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f 👨‍👩‍👧 ❤️",
        ),
        ("hidden\U000e0041\U000e0042 tags", "hidden tags"),
        ("https://a.example/?a=1&copy=2", "https://a.example/?a=1&copy=2"),
        ("it’s “quoted”, ２０ litres", "it’s “quoted”, ２０ litres"),
        ("schÃ¶n", "schön"),
    ],
)
def test_people_see_the_text_as_it_was_meant(raw, shown):
    assert repair(raw) == shown


@pytest.mark.parametrize(
    "text",
    [
        "call +90 532 123 45 67 now", "Tel:0532 123 45 67", "WhatsApp +509 3412 3456", "415-555-2671 please",
        "(415) 555-2671", "call 09171234567", "98765 43210 call me", "0300-1234567", "٠٥٣٢١٢٣٤٥٦٧", "tel 01 42 68 53 00",
        "05321234567/05327654321", "9841234567,9851234567", "9841234567 9851234567", "0812-3456-7890/0813-4567-8901",
        "0532 - 123 - 45 - 67", "☎ 22 334 455", "No.05321234567", "tel.05321234567", "tel=05321234567", "Tel/05321234567",
        "#05321234567", "@05321234567", "05321234567km", "05321234567TL", "05321234567₺", "05321234567den arayın",
        "+905321234567km", "(0532) 123 45 67TL", "05321234567, 05327654321TL", "٠٥٣٢١٢٣٤٥٦٧كم", "tel 5321234567den",
        "请打13812345678谢谢", "ติดต่อ0812345678ด่วน", "05321234567 km", "05321234567 TL", "viber://add?number=905321234567",
        "https://a.example/?phone=905321234567", "९८४१२३४५६७, ९८५१२३४५६७", "০১৭১২৩৪৫৬৭৮ / ০১৮১২৩৪৫৬৭৮", "tel:+905321234567",
        "https://wa.me/905321234567", "hotline: 911-1406", "llamar al 222 3344", "هاتف: 1234567", "电话 6553 2211", "00 33 6 12 34 56 78",
    ],
)  # fmt: skip
def test_phone_numbers_are_masked(text):
    assert "[phone]" in mask(text) and not any(c.isdecimal() for c in mask(text))


@pytest.mark.parametrize(
    "text",
    [
        "M 7.8 quake at 04:17 on 2023-02-06", "06.02.2023 04:17:35", "06/02/2023", "20230206", "2023-02-06 04:17:35",
        "2023-02-06T04:17:35Z", "37.225812 37.014432", "37.2258, 37.0144", "-37.225812,144.963058", "25,000,000 people",
        "$1,500,000", "1.500.000 TL", "1 500 000 euros", "Rs 9876543210", "25 000 000", "1999-2023", "6.4 magnitude",
        "https://example.org/status/1622436198123456789", "order 123456", "12345678901234567890", "text FOOD to 90999",
        "10:30-12:45", "N 36° 12' 43\" E 37° 09'", "5-6 families, 40-50 people", "2022/2023 2023/2024", "500-1000 families",
        "call before 2023-02-06", "contact us by 06.02.2023", "call for 1.500.000 blankets", "we called 1200 people",
        "37.225812,37.014432,36.2021", "1,500,000 people and 2,500,000 blankets", "lots 12,13,14,15,16,17,18",
        "https://example.org/a?id=05321234567", "order=12345678", "#20230206", "1234567km", "25000000TL", "9876543210TL",
        "9876543210元", "1234567abc", "0532123456ab12", "05321234567_x",
    ],
)  # fmt: skip
def test_dates_magnitudes_coordinates_and_prices_are_not_taken_for_phone_numbers(text):
    assert mask(text) == text


def test_e_mail_addresses_are_masked_but_mentions_are_not():
    assert mask("write to first.last+aid@relief.example.org now") == "write to [email] now"
    assert mask("write name (at) gmail [dot] com or a.b{at}relief.example") == "write [email] or [email]"
    assert mask("name (at) gmail") == "[email]" and mask("meet (at) noon") == "meet (at) noon"
    assert mask("@user@mastodon.example @bob hello") == "@user@mastodon.example @bob hello"


def test_a_list_of_numbers_is_masked_without_asking_about_each():
    assert mask("98765 43210, " * 300) == "[phone], " * 300


HOSTILE = [
    "&" + "amp;" * 2500, "＆" + "#65286;" * 1400, "@" * 10_000, "🙏" * 10_000, "1 " * 5000, "0532 123 45 67 " * 600,
    "a" * 10_000, "a." * 5000, "http://" * 1400, "\u200d" * 10_000, "Ã" * 10_000, "Ã©" * 5000, "&#" * 5000, "a@" * 5000,
    "(1" * 5000, "ေ" * 10_000, "ကိုျ" * 2500, "\u0301" * 10_000, "www." * 2500, "a-" * 5000 + "@", "1.1." * 2500,
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=lambda t: ascii(t[:6]))
@pytest.mark.parametrize("function", [clean, repair, mask])
def test_hostile_text_costs_in_proportion_to_its_length(function, text):
    assert_in_proportion(function, lambda length: text[:length], len(text))  # .05 s; quadratic searches took minutes


PARTS = st.sampled_from(
    [
        "http://", "HTTPS://x.io/a", "www.", "Www.a.b", "t.co/", "a.com/b", "@bob", "@a.b.social", ".", "/", "@", " ",
        "\n", "\u00a0", "a", "é", "水", "9", "(", ")",
    ]
)  # fmt: skip


@given(st.lists(PARTS | st.characters(), max_size=25).map("".join))
@settings(max_examples=500, deadline=None)
def test_links_and_mentions_are_found_by_the_word_as_in_the_whole_text(written):
    def by(found):
        return f"<{found.group()}>"

    assert of_text.replace_links(written, by) == of_text._URL.sub(by, written)
    assert of_text.replace_mentions(written, by) == of_text._MENTION.sub(by, written)


@given(st.lists(PARTS | st.sampled_from(["a@b.co", ".@x", "[at]", "(dot)", "+"]), max_size=25).map("".join))
@settings(max_examples=500, deadline=None)
def test_addresses_are_found_by_the_word_as_in_the_whole_text(written):
    plain = privacy._SPELT_EMAIL.sub(privacy.EMAIL, privacy._EMAIL.sub(privacy.EMAIL, written))
    many = privacy._ENOUGH_DIGITS.search(plain)
    assert privacy._mask_once(written) == (privacy._Numbers(plain).masked() if many else plain)


def test_signs_that_stand_for_a_sentence_are_read_among_words_and_not_without_end():
    blessing = "\ufdfa"
    said = f"We pray for the Prophet {blessing} and for our brothers {blessing} under the rubble {blessing}"
    assert clean(said) == said
    alone = clean(blessing * 22)
    assert alone == blessing * 4 == clean(alone)


def test_a_short_text_of_emoji_is_read_to_about_twice_its_bytes_and_ordinary_ones_whole():
    long_name = "\U0001faf0"
    text = long_name * 13
    assert len(clean(text)) <= 2 * len(text.encode()) + 48
    assert clean("\U0001f64f" * 5).count("folded hands") == 5
