"""Whether given words stand in a text: whole, however they are spelled; anywhere in scripts without spaces.

A `*` at the end of a word takes any ending. Spellings are one that differ in case, width (NFKC), letters that people
write for each other, and marks that they leave out: Greek accents, Arabic vowels. Accents of Latin letters count: in
Vietnamese they make another word.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from models.places.names import fold

__all__ = ["JOINER", "any_of", "folded", "longest_part"]

# Scripts written without spaces between words: Thai, Lao, Myanmar, Khmer, kana, Han.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff]")

# Compared as in names of places: the two letters i of Turkish, Greek, Hebrew, Arabic, ё, and what shows nothing.
_AS_IN_NAMES = re.compile("[\u0130\u0131\u0307\u0370-\u03ff\u0401\u0451\u0591-\u06ff\u1f00-\u1fff\u200b\u200d]")
_ALIKE = {c: fold(c) for c in map(chr, range(0x2010)) if _AS_IN_NAMES.match(c) and fold(c) != c.casefold()}
_ALIKE |= dict.fromkeys("’‘ʼʻ", "'")
_WRITTEN = re.compile(f"[{''.join(_ALIKE)}]")

# Parts a Persian word before its ending: بچه‌ها, children. It stays, for بچه to be found there: without it, as names are
# compared, 1,940 words of 744 posts were found no more, and 100 more were.
JOINER = "\u200c"
_PARTED = re.compile(rf"(?:\\ |{JOINER})+")  # of a word, its blanks escaped


def folded(text: str) -> str:
    """The text as words are compared."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKC", text)
    return _WRITTEN.sub(lambda found: _ALIKE[found[0]], plain).casefold()


@lru_cache(maxsize=4096)
def any_of(words: tuple[str, ...], before: str = "") -> re.Pattern[str]:
    """Matches in a `folded` text where one of the words stands. before: pattern of what may be joined to its front."""
    return re.compile("|".join(_whole(folded(word), before) for word in words))


def longest_part(word: str) -> str:
    """What stands in every `folded` text where this word, or group of words, stands."""
    return max(folded(word).replace(JOINER, " ").strip().rstrip("*").split(), key=len, default="")


def _whole(word: str, before: str) -> str:
    word = word.strip()
    open_end, word = word.endswith("*"), " ".join(word.rstrip("*").split()).strip(f" {JOINER}")
    # A joiner may be written, left out or be a space: می‌خواهیم, میخواهیم, می خواهیم. One class for all that stand
    # together: two that fit the same would try every way to share a run of blanks, seconds for 224 characters.
    said = _PARTED.sub(lambda gap: rf"[\s{JOINER}]{'+' if ' ' in gap[0] else '*'}", re.escape(word))
    if _UNSPACED.search(word):
        return said
    return rf"(?<!\w){before}{said}" if open_end else rf"(?<!\w){before}{said}(?!\w)"
