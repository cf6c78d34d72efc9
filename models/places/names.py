"""How names of places are compared: words without case, accents and the marks that are written or left out at will.

The table of places (`training.places`) and the texts of posts are read by the same rules.
"""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b

__all__ = [
    "BEGINNINGS",
    "CODE_BYTES",
    "MOST_TOGETHER",
    "UNSPACED",
    "code",
    "digest",
    "fold",
    "keys",
    "unjoined",
    "words",
]

MOST_TOGETHER = 5  # words of the longest name that is looked for
# Scripts written without spaces between words: Thai, Lao, Myanmar, Khmer, kana, Han.
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_WORD = re.compile(r"[^\W_]+(?:[\u0300-\u036f\u0900-\u0dff\u064b-\u065f\u200c\u200d]+[^\W_]*)*")
_ACCENTS = re.compile("[\u0300-\u036f\u0640\u064b-\u0652\u0670\u200b-\u200d]")  # Latin, Greek, Cyrillic; Arabic vowels
_LETTERS = str.maketrans("أإآٱىةكي", "ااااىهکی")  # one letter for those that are written for each other
_LETTERS |= str.maketrans("ىı", "یi")


_JOINED = re.compile("^(?:وال|بال|لل|فال|ال|و|ب|ل|ف|ک)(?=[\u0621-\u06ff]{3,})")


def unjoined(key: str) -> str:
    """An Arabic word without "and", "in", "to" and "the" written before it; any other as it is."""
    return _JOINED.sub("", key)


def fold(text: str) -> str:
    """The text as names are compared."""
    if text.isascii():  # most words of most posts: nothing of the rest changes them
        return text.lower()
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text.casefold()))
    return unicodedata.normalize("NFC", plain).translate(_LETTERS)


def words(text: str) -> list[tuple[int, int]]:
    """Start and end of each word of a text: letters and digits, parted by everything else."""
    return [found.span() for found in _WORD.finditer(text)]


def keys(name: str) -> str:
    """A whole name as it is kept: its words, folded, with one space between."""
    return " ".join(fold(name[start:end]) for start, end in words(name))


CODE_BYTES = 5  # of 500,000 names one in two million others has the same
BEGINNINGS = 2**21  # bits, one for each remainder of a code; what names of several words begin with fills 5 % of them


def digest(key: str) -> bytes:
    """The hash by which a name is kept."""
    return blake2b(key.encode(), digest_size=CODE_BYTES).digest()


def code(key: str) -> int:
    """The same as a number."""
    return int.from_bytes(digest(key), "big")
