"""Groups of four letters of a text run together: what is left of its spelling after slips, leet and stray spaces.

    "w4ter  pls" → uatr, atrp, trpi, rpis   ← "wa ter pls"

A static encoder that only knows pieces reads "w4ter" or "wa ter" as pieces of something else. Groups of letters are
features beside the pieces, over the text without its spaces, after folding: case, accents, doubled letters, and the
classes of letters that people swap for digits and signs. They also let related spellings of thin languages and
dialects share what they learn. Compare fastText's character n-grams (Bojanowski et al. 2017), which stay inside words.

A group's row is its hash modulo the number of rows the bundle has, as there. Chinese characters count as two letters,
so that a group holds two or three of them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np

__all__ = ["KEPT", "letter_groups", "without_doubles"]

SIZE = 4
KEPT = 1 << 16  # characters of a table that fills itself, some 5 MB; the scripts we serve have half as many

# One letter for each class that leet and slips of the eye mix up; the digit or sign goes with the letters it stands
# for.
_CLASSES = {"aа4@αάɑ": "a", "8вβ": "b", "3εзэ": "e", "q96б": "g", "l1|iі": "i", "0оοσ": "o", "5$": "s", "7+т": "t",
            "2z": "z", "w": "u", "v": "u", "y": "i", "đ": "d", "ł": "i", "ø": "o", "ı": "i", "æ": "ae",
            "œ": "oe", "ß": "s"}  # fmt: skip
_FOLDED = {char: letter for chars, letter in _CLASSES.items() for char in chars}
_INNER_SIGN = re.compile(r"(?<=\w)!(?=\w)")  # h!lp, but not help!


def _fold(char: str) -> str | None:
    """What a character is written as here; None for spaces, punctuation and marks."""
    if "一" <= char <= "鿿" or "㐀" <= char <= "䶿":
        return char + chr(0xF0000 + ord(char))
    letters = []
    for part in unicodedata.normalize("NFKD", char.casefold()):
        if part in _FOLDED:
            letters.append(_FOLDED[part])
        elif part.isalnum() or (unicodedata.category(part) in ("Mn", "Mc") and not unicodedata.combining(part)):
            letters.append(part)  # vowel signs of Indic scripts are marks that do not combine
    return "".join(letters) or None


class _Letters(dict[int, str | None]):
    """A translation table that fills itself: each character is looked up once, and forgotten where there are too many.

    123 posts with all of Unicode left 1.1 million entries behind. What goes is None, not "": `str.translate` keeps a
    quick way for ASCII, which an empty string ends.
    """

    def __missing__(self, code: int) -> str | None:
        if len(self) >= KEPT:
            self.clear()
        folded = self[code] = _fold(chr(code))
        return folded


_TABLE = _Letters()


def fold(text: str) -> str:
    """The letters of `text` in their classes, run together. Doubled ones are still there."""
    return (_INNER_SIGN.sub("i", text) if "!" in text else text).translate(_TABLE)


def without_doubles(folded: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The texts end to end as code points, a doubled one once, uint32; and the place of the text that each is of."""
    codes = np.frombuffer("".join(folded).encode("utf-32-le", "surrogatepass"), np.uint32)
    owner = np.repeat(np.arange(len(folded)), [len(text) for text in folded])
    single = np.ones(len(codes), bool)
    single[1:] = (codes[1:] != codes[:-1]) | (owner[1:] != owner[:-1])
    return codes[single], owner[single]


def letter_groups(texts: Sequence[str], rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The ids in [0, rows) of every group of four letters, a doubled letter once, int32; and the place of the text that
    each is of, rising.

    All texts at once: one by one took four times as long.
    """
    codes, owner = without_doubles([fold(text) for text in texts])
    count = max(0, len(codes) - SIZE + 1)
    mixed = codes[:count]
    for place in range(1, SIZE):
        mixed = mixed * np.uint32(0x01000193) ^ codes[place : place + count]  # FNV-1, over letters
    mixed = (mixed ^ (mixed >> np.uint32(15))) * np.uint32(0x2C1B3C6D)
    ids = ((mixed ^ (mixed >> np.uint32(13))) % np.uint32(rows)).astype(np.int32)
    inside = owner[:count] == owner[len(codes) - count :]
    return ids[inside], owner[:count][inside]
