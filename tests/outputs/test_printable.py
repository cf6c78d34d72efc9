"""Text written by strangers cannot move a terminal's cursor, hide itself or turn the reading direction."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.outputs.printable import MARKS, printable, safe_json, shorten, web_link
from tests.outputs.invented import HOSTILE

ANY = st.text(st.characters(), max_size=60)


@given(ANY)
def test_nothing_printable_is_a_control_or_a_direction_mark(text):
    for char in printable(text):
        assert unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp"), hex(ord(char))
        assert unicodedata.bidirectional(char) not in (
            "LRE",
            "RLE",
            "LRO",
            "RLO",
            "PDF",
            "LRI",
            "RLI",
            "FSI",
            "PDI",
        )


@given(ANY)
def test_making_it_printable_twice_changes_nothing(text):
    assert printable(printable(text)) == printable(text)


def test_hostile_text_keeps_its_words_and_loses_its_power():
    assert printable(HOSTILE) == "<script>alert(1)</script> [2J]0;owned dnes 31m & ]]>"


def test_a_tower_of_accents_is_cut_down():
    assert printable("Z" + "\u0301" * 300 + "!") == "Z" + "\u0301" * MARKS + "!"


@pytest.mark.parametrize(
    "text",
    ["မြန်မာဘာသာ ကျေးဇူးပြု၍", "पानी चाहिए कृपया", "نحتاج إلى ماء", "می‌خواهم", "👨‍👩‍👧 ขอน้ำดื่ม", "Tiếng Việt"],
)
def test_real_scripts_pass_unchanged(text):
    assert printable(text) == text


@given(ANY)
def test_safe_json_is_the_same_json(text):
    encoded = json.dumps({"text": text}, ensure_ascii=False).encode("utf-8", "ignore")
    assert json.loads(safe_json(encoded)) == json.loads(encoded)
    assert not any("\x7f" <= c <= "\x9f" or "\u202a" <= c <= "\u202e" for c in safe_json(encoded))


@pytest.mark.parametrize(
    "url",
    [
        None,
        "",
        "javascript:alert(1)",
        "data:text/html,x",
        "https://a b",
        'https://x/"onclick=',
        "ftp://x/y",
        "https://",
        " https://example.org",
        "https://x\n.org",
        "https://" + "a" * 3000,
        "https://bank.example:443@evil.example/",
    ],
)
def test_only_plain_web_addresses_become_links(url):
    assert web_link(url) is None


def test_a_web_address_stays():
    assert web_link("https://example.org/p?a=1&b=ü#x") == "https://example.org/p?a=1&b=ü#x"
    assert web_link("https://m.example/@ayse/11") == "https://m.example/@ayse/11"


def test_shortening_says_that_it_cut():
    assert shorten("abcdef", 4) == "abc…" and shorten("abc", 4) == "abc"
