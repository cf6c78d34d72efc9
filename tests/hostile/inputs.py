"""Texts and lines made to cost as much as they can, by name and by a generator.

Each text is a function of its length in characters, so that a test can ask whether twice the length costs twice the
work.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator

from models.posts import MAX_TEXT_CHARS

Make = Callable[[int], str]  # of so many characters


def repeated(unit: str, length: int) -> str:
    """`unit` again and again, `length` characters in all."""
    return (unit * (length // len(unit) + 1))[:length]


def drawn(letters: str, length: int) -> str:
    """`length` characters drawn from `letters`, the same in every run."""
    return "".join(random.Random(length).choices(letters, k=length))


def phone_list(length: int) -> str:
    """Different numbers, one after another."""
    return " ".join(f"+90532{n:07}" for n in range(1_000_000, 1_000_000 + length // 14))[:length]


MOJIBAKE = "".join(chr(c) for c in range(0xC2, 0xF5)) + "€‚ƒ„…†‡ˆ‰Š‹Œ" + "".join(chr(c) for c in range(0xA0, 0xC0))
ORDINARY = (
    "Water is rising on Station Road, two families with children are on the roof and need a boat. ",
    "Wir haben Decken und warmes Essen in der Turnhalle, kommt vorbei, jeder ist willkommen. ",
    "تحتاج العائلات إلى ماء وخبز وأدوية في المدرسة القديمة، الرجاء المساعدة. ",
    "हमारे गाँव में पानी भर गया है, कृपया नाव भेजें, बच्चे छत पर हैं। ",
)


def leet_words(length: int) -> str:
    """Different words in digits and signs."""
    words = (f"{drawn('abcdefgh', i % 7 + 10)[:3]}1|{i % 10}!1b" for i in range(length // 9 + 1))
    return " ".join(words)[:length]


def all_of_unicode(length: int) -> str:
    """Characters of every script."""
    codes = (0xA1 + (i * 97) % 0x2FF00 for i in range(length))
    return "".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000)


def keys(count: int, first: int = 0) -> bytes:
    """Different keys of an object."""
    return b",".join(b'"k%d":1' % i for i in range(first, count))


TEXTS: dict[str, Make] = {
    "leet words": lambda n: repeated("a1|1|1b ", n),
    "different leet words": leet_words,
    "one long leet word": lambda n: repeated("a1|1|1b", n),
    "mention chain": lambda n: repeated("a@b.co", n),
    "mentions run together": lambda n: repeated("@a", n),
    "mention and server chain": lambda n: repeated("@ab@c.de", n),
    "masked numbers in a chain": lambda n: repeated("x@y.zz+905321234567", n),
    "random mojibake": lambda n: drawn(MOJIBAKE, n),
    "mojibake of mojibake": lambda n: repeated("é".encode().decode("latin-1").encode().decode("latin-1"), n),
    "marks in the wrong order": lambda n: "a" + repeated("\u0301\u0323", n - 1),
    "marks of all classes": lambda n: "a" + drawn("\u0301\u0323\u0327\u0345\u05b0\u0334\u3099\u093c", n - 1),
    "marks of all classes, joined": lambda n: repeated("a" + "\u0301\u0323" * 15 + "\u034f", n),
    "U+FDFA": lambda n: "\ufdfa" * n,
    "Zawgyi kinzi": lambda n: repeated("\u1004\u1064", n),
    "Zawgyi stacks": lambda n: repeated("\u1031\u1000\u1060\u1061\u103a\u1033", n),
    "Zawgyi marks": lambda n: "\u1000" + repeated("\u1033\u103a\u1037", n - 1),
    "emoji": lambda n: repeated("😀🏚️👨‍👩‍👧‍👦🇹🇷", n),
    "different emoji runs": lambda n: "".join(chr(0x1F300 + i % 700) + (" " if i % 3 == 0 else "") for i in range(n)),
    "phone numbers": phone_list,
    "phone numbers in a chain": lambda n: repeated("0532 123 45 67 x", n),
    "years in a row": lambda n: repeated("2010 - ", n - 4) + "2110",
    "a digit and a sign": lambda n: repeated("1_", n - 2) + "_a",
    "digits and separators": lambda n: repeated("1-2 3(4)", n),
    "zalgo": lambda n: repeated("h\u0300\u0301\u0302\u0303\u0304\u0305\u0306\u0307", n),
    "overrides": lambda n: repeated("\u202ea\u2066", n),
    "tags": lambda n: repeated("a\U000e0041", n),
    "entities in entities": lambda n: "&" + repeated("amp;", n - 1),
    "many entities": lambda n: repeated("&amp;lt;&nbsp;", n),
    "one letter": lambda n: "a" * n,
    "links": lambda n: repeated("https://a.b/c ", n),
    "link beginnings": lambda n: repeated("https://", n),
    "dotted words": lambda n: repeated("a.", n),
    "full width": lambda n: repeated("ＨＥＬＰ", n),
    "ligatures": lambda n: repeated("ﬃﬄ", n),
    "hangul jamo": lambda n: repeated("\u1112\u1161\u11ab", n),
    "spaces": lambda n: "a" + repeated(" \u00a0\n", n - 2) + "a",
    "reposts of reposts": lambda n: repeated("RT @a: ", n),
    "Chinese": lambda n: drawn("水灾求助我们被困在屋顶上需要船", n),
    "all of Unicode": all_of_unicode,
}


def line(text: str, **fields: object) -> bytes:
    """A raw post, as a source sends it."""
    return json.dumps({"id": "h/1", "text": text} | fields, ensure_ascii=False).encode()


UNFOLDING: dict[str, str] = {  # short, and long for an encoder: 18 letters of three bytes, seven words of four
    "U+FDFA": "\ufdfa" * 22,
    "an emoji of a long name": "\U0001faf0" * 13,
}

CRY = "We are trapped on the roof of the school, send a boat. "


def crying(text: str) -> str:
    """The text as part of a post that alerts: then places and signs are looked for in it too."""
    return (CRY + text)[:MAX_TEXT_CHARS]


def crowd(*texts: str) -> bytes:
    """Posts of as many authors, in one record: near copies make a cluster, which is named and told."""
    return b"\n".join(line(text, id=f"h/{n}", author=f"a{n}") for n, text in enumerate(texts))


LINES: dict[str, Callable[[int], bytes]] = {
    "one key again and again": lambda n: b'{"k0":1,"k0":1,"k1":1,"k1":1,' + keys(n // 11, 2) + b',"id":"x"}',
    "a key twice, at the end": lambda n: b"{" + keys(n // 11) + b',"k%d":1}' % (n // 11 - 1),
    "deep and wide": lambda n: b'{"a":' + b"[[]," * (n // 5) + b"[]" + b"]" * (n // 5) + b"}",
    "unknown fields": lambda n: b'{"id":"x","text":"water",' + keys(n // 11) + b"}",
    "backslashes": lambda n: b'{"id":"x","text":"' + rb"\\" * (n // 2) + b'"}',
    "half pairs": lambda n: b'{"id":"x","text":"' + rb"\ud800" * (n // 6) + b'"}',
    "a long number": lambda n: b'{"id":"x","text":"water","created_at":' + b"1" * n + b"}",
    "a number in words": lambda n: b'{"id":"x","text":"water","created_at":"' + b"1 " * (n // 2) + b'"}',
    "a long tag": lambda n: b'{"id":"x","text":"water","lang":"' + b"a-" * (n // 2) + b'"}',
    "a long author": lambda n: b'{"id":"x","text":"water","author":"' + b"@a" * (n // 2) + b'"}',
    "a string without an end": lambda n: b"[" * 100 + b'"\\' * (n // 2),
    "empty objects": lambda n: b"{}\n" * (n // 3),
}

_PIECES = (
    "a", "b1", "1", "0", "!", "|", "@", "$", ".", "-", "_", "+", ":", "/", " ", "\n", "&", ";", "amp", "#64", "http://",
    "www.", "co", "é", "Ã", "©", "â", "€", "™", "\u0301", "\u0323", "\u200d", "\ufe0f", "😀", "🇹", "က", "\u1031",
    "\u1039", "\u1064", "ﷺ", "ﬃ", "Ａ", "[", "]", "(", ")", "RT @", "水", "ก", "م", "क", "्", "\u034f", "\u00ad",
    "\ufffd", "'", '"', "=", "tel",
)  # fmt: skip


def invented(seed: int) -> Iterator[Make]:
    """Texts without end: one to six pieces, repeated. Each says by its `__name__` what it repeats."""
    draw = random.Random(seed)
    while True:
        unit = "".join(draw.choices(_PIECES, k=draw.randint(1, 6)))

        def text(length: int, unit: str = unit) -> str:
            return repeated(unit, length)

        text.__name__ = repr(unit)
        yield text
