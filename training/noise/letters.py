"""Noise on letters, for any language: slips, leet, white space, accents, lengthening, dropped vowels.

Every function takes `p`, the chance that one site (a letter, a gap, a word) is changed, and draws each site for itself.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterator
from random import Random

from training.noise.keyboards import neighbours_of

__all__ = ["accs", "elon", "fing", "leet", "lost", "spac", "vowl"]

_LEET = {
    "a": "4@", "b": "8", "e": "3", "g": "96", "i": "1!", "l": "1|", "o": "0", "q": "9", "s": "5$", "t": "7+", "z": "2",
    # The same game in Cyrillic and Greek.
    "а": "4@", "б": "6", "в": "8", "е": "3", "з": "3", "о": "0", "ч": "4", "т": "7", "α": "4@", "ε": "3", "ο": "0", "σ": "6",
}  # fmt: skip
_WORD = re.compile(r"[^\W\d_]+")
_VOWELS = frozenset("aeiouyàáâãäåæèéêëìíîïòóôõöøùúûüýœăđơưıạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ")
# What people type for a letter that loses no mark on decomposition.
_PLAIN = str.maketrans(
    {
        "đ": "d",
        "Đ": "D",
        "ł": "l",
        "Ł": "L",
        "ø": "o",
        "Ø": "O",
        "ı": "i",
        "ß": "ss",
        "æ": "ae",
        "Æ": "Ae",
        "œ": "oe",
        "ё": "е",
        "Ё": "Е",
        "أ": "ا",
        "إ": "ا",
        "آ": "ا",
        "ة": "ه",
        "ى": "ي",
        "ؤ": "و",
        "ئ": "ي",
    }
)
_ARABIC_MARKS = re.compile("[\u064b-\u0652\u0670]")


def hits(count: int, p: float, rng: Random) -> Iterator[int]:
    """Places of `count` that are drawn, each with chance p; skips from one to the next, so cost is by hits."""
    if p <= 0:
        return
    if p >= 1:
        yield from range(count)
        return
    scale, place = 1 / math.log1p(-p), -1
    while (place := place + 1 + int(min(math.log(1 - rng.random()) * scale, count))) < count:
        yield place


def fing(text: str, rng: Random, p: float, lang: str = "en") -> str:
    """Letters struck on the key beside theirs ("butter fingers"), on the keyboard of the language."""
    beside = neighbours_of(lang)
    letters = list(unicodedata.normalize("NFD", text) if lang == "ko" else text)
    for i in hits(len(letters), p, rng):
        near = beside.get(letters[i].lower())
        if near:
            letters[i] = _in_case(rng.choice(near), letters[i])
    changed = "".join(letters)
    return unicodedata.normalize("NFC", changed) if lang == "ko" else changed


def leet(text: str, rng: Random, p: float) -> str:
    """Letters written as the digits and signs that look like them; accents do not hinder it."""
    letters = list(text)
    for i in hits(len(letters), p, rng):
        letter = letters[i].lower()
        forms = _LEET.get(letter) or _LEET.get(unicodedata.normalize("NFD", letter)[:1])
        if forms:
            letters[i] = rng.choice(forms)
    return "".join(letters)


def spac(text: str, rng: Random, p: float) -> str:
    """Spaces lost with chance p, and put after any other character with chance p / 2 (the paper's .1 and .05)."""
    letters = list(text)
    lost = [i for i in hits(len(letters), p, rng) if letters[i] == " "]
    for i in hits(len(letters), p / 2, rng):
        # Never inside a letter with its marks: nobody types that.
        if letters[i] != " " and not (i + 1 < len(letters) and unicodedata.category(letters[i + 1])[0] == "M"):
            letters[i] += " "
    for i in lost:
        letters[i] = ""
    return "".join(letters)


def without_accents(text: str) -> str:
    """Latin and Greek letters without their marks, ё as е, Arabic without hamza carriers and vowel signs."""
    if text.isascii():
        return text
    plain = []
    for letter in text.translate(_PLAIN):
        base = unicodedata.normalize("NFD", letter)
        # й is a letter of its own, as are the marked letters of Indic scripts; only Latin and Greek shed marks.
        plain.append(base[0] if len(base) > 1 and (base[0].isascii() or "\u0370" <= base[0] <= "\u03ff") else letter)
    return _ARABIC_MARKS.sub("", "".join(plain))


def accs(text: str, rng: Random, p: float) -> str:
    """Words that have accents written without, each with chance p."""
    return _words(text, rng, p, without_accents, lambda word: not word.isascii() and without_accents(word) != word)


def lost(text: str, rng: Random, p: float) -> str:
    """Every Latin letter with an accent gone, as some SMS gateways drop what they cannot send: "vètman" → "vtman".

    Not where that takes more than a fifth of the text (Vietnamese): nobody could read it.
    """
    if text.isascii() or rng.random() >= p:
        return text
    left = "".join(c for c in text if c.isascii() or not unicodedata.name(c, "").startswith("LATIN "))
    return left if len(left) >= 0.8 * len(text) else text


def elon(text: str, rng: Random, p: float) -> str:
    """A letter of a word held down: "pleaaase"; the last vowel, else the last letter."""

    def longer(word: str) -> str:
        at = max((i for i, letter in enumerate(word) if letter.lower() in _VOWELS), default=len(word) - 1)
        return word[:at] + word[at] * rng.randint(3, 5) + word[at + 1 :]

    return _words(text, rng, p, longer, lambda word: len(word) > 2)


def vowl(text: str, rng: Random, p: float) -> str:
    """Words of four letters and more without their inner vowels: "people" → "pple", "dengan" → "dngn"."""

    def shorter(word: str) -> str:
        return word[0] + "".join(c for c in word[1:-1] if c.lower() not in _VOWELS) + word[-1]

    return _words(text, rng, p, shorter, lambda word: len(word) > 3 and shorter(word) != word)


def _words(text: str, rng: Random, p: float, change: Callable[[str], str], eligible: Callable[[str], bool]) -> str:
    if p <= 0:
        return text
    return _WORD.sub(lambda m: change(m.group()) if eligible(m.group()) and rng.random() < p else m.group(), text)


def _in_case(letter: str, like: str) -> str:
    return letter.upper() if like.isupper() and len(letter.upper()) == 1 else letter
