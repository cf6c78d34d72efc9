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
    "MARKS",
    "MOST_TOGETHER",
    "SIGNED",
    "UNSPACED",
    "code",
    "digest",
    "fold",
    "keys",
    "runs",
    "unjoined",
    "words",
]

MOST_TOGETHER = 5  # words of the longest name that is looked for
# Scripts written without spaces between words: those whose vowels are marks on a letter, Thai, Lao, Myanmar, Khmer; and
# kana, Han.
_SIGNED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
SIGNED = re.compile(f"[{_SIGNED}]+")
UNSPACED = re.compile(f"[{_SIGNED}\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


def _marks() -> str:
    """Ranges of a character class: marks of every script, by Unicode, but what makes an emoji of a digit or a letter.

    Without them a vowel sign would end a word, and Burmese "နေပါ" (stays) and "နီပေါ" (Nepal) be one.
    """
    every = [c for c in range(0x300, 0x1F000) if unicodedata.category(chr(c)) in ("Mn", "Mc")]
    kept = {c for c in every if not (0x20D0 <= c <= 0x20FF or 0xFE00 <= c <= 0xFE0F)}
    firsts, lasts = sorted(c for c in kept if c - 1 not in kept), sorted(c for c in kept if c + 1 not in kept)
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in zip(firsts, lasts, strict=True))


MARKS = _marks()
# Marks and joiners that show nothing go on a word. The look ahead saves 30 % where a word ends in ASCII, as most do
_WORD = re.compile(rf"[^\W_]+(?:(?![\x00-\x7f])(?:[{MARKS}\u200c\u200d]+|\u200b+(?=[^\W_]))[^\W_]*)*")
# Left out at will: accents of Latin, Greek, Cyrillic; vowels of Hebrew, Arabic, Syriac; Mongolian variants of letters;
# joiners.
_ACCENTS = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0652\u0670\u0730-\u074a"
    "\u180b-\u180d\u180f\u200b-\u200d]"
)
# What no reader parts: a letter and its marks; in Thai and Lao the vowels written before and after it, and silent
# letters; in Myanmar and Khmer the letters below it; in Myanmar also that which ends the syllable.
_PIECE = re.compile(
    rf"[\u0e40-\u0e44\u0ec0-\u0ec4]*.(?:[{MARKS}\u200c\u200d\u0e30\u0e32\u0e33\u0e45\u0eb0\u0eb2\u0eb3\u0ebd]"
    r"|(?<=[\u1039\u17d2])\w|\w(?=[\u0e31-\u0e3a]?\u0e4c|\u0ecc|\u1037?\u103a|\u1039|\u17cd))*",
    re.DOTALL,
)
_LETTERS = str.maketrans("أإآٱىةكي", "ااااىهکی")  # one letter for those that are written for each other
_LETTERS |= str.maketrans("ىı", "یi")

# What is written onto a name: "and", "in", "to", "the" before it, "in", "from", "of" behind it. Of Hebrew's only those
# before which more places than words stand; no cases of Russian, no endings in Latin letters: words of many other
# languages end so too
_JOINED = re.compile(
    "^(?:وال|بال|لل|فال|ال|و|ب|ل|ف|ک)(?=[\u0621-\u06ff]{3})"
    "|^ו?[בלמ](?=[א-ת]{3})"
    "|^[በከለየ](?=[\u1200-\u137f]{3})"
    "|(?<=[\u0900-\u097f]{3})(?:मा|को|बाट|ले|का|की|मध्ये)$"
    "|(?<=[\u0980-\u09ff]{4})(?:\u09af\u09bc|তে|ে|ের|র)$"
    "|(?<=[\u0a80-\u0aff]{3})(?:માં|થી|ના|ની|નું)$"
    "|(?<=[\u0b80-\u0bff]{3})(?:யில்|யின்|க்கு|(?P<tamil>ில்|ின்|ிலிருந்து))$"
    "|(?<=[\u0c00-\u0c7f]{3})(?:లో|కు|కి)$"
    "|(?<=[\u0d00-\u0d7f]{3})യിൽ$"
    "|(?<=[\u0d80-\u0dff]{3})(?:ේ|ට)$"
    "|(?<=[\u0531-\u058f]{3})(?:ում|ից|ի)$"
    "|(?<=[\u10d0-\u10ff]{2}[აეიოუ])(?:ში|დან)$|(?<=[\u10d0-\u10ff]{3})(?P<georgian>ში|დან)$"
    "|(?<=[가-힣]{2})(?:에서|에|으로|로|의)$|(?<=[가-힣]{3})[은는이가을를도과와]$"
    "|(?<=[\u0400-\u04ff]{5})(?:[дт][ае]н?|[ғқ]а|[гк]е)$"
)
_WHOLE = {"tamil": "\u0bcd", "georgian": "ი"}  # what the name ends in alone


def unjoined(key: str) -> str:
    """A word without what is written onto it in its script: Arabic "and" or "in", Bengali "of"; any other as it is."""
    return _JOINED.sub(lambda found: _WHOLE.get(found.lastgroup or "", ""), key)


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


def runs(word: str, most: int) -> list[tuple[int, int, int, str]]:
    """The parts of a word in a script without spaces that may be names, as start, end, letters and key.

    Whole letters (`_PIECE`), up to `most` of them, and two characters or more; in order of their start, the shorter
    first.
    """
    whole = fold(word)
    if not UNSPACED.search(whole):
        return []
    spans = [piece.span() for piece in _PIECE.finditer(word)]
    pieces = [(start, end, whole[start:end] if whole == word else fold(word[start:end])) for start, end in spans]
    pieces = [piece for piece in pieces if piece[2]]  # not what shows nothing
    ends = [0] * (len(pieces) + 1)  # where the script ends that a piece is of
    for at in reversed(range(len(pieces))):
        if UNSPACED.fullmatch(pieces[at][2]):
            ends[at] = max(ends[at + 1], at + 1)
    found = []
    for at, (start, _, key) in enumerate(pieces):
        if len(key) > 1 and ends[at]:
            found.append((start, pieces[at][1], 1, key))
        for last in range(at + 1, min(at + most, ends[at])):
            _, end, part = pieces[last]
            key += part
            found.append((start, end, last + 1 - at, key))
    return found


CODE_BYTES = 5  # of 500,000 names one in two million others has the same
BEGINNINGS = 2**21  # bits, one for each remainder of a code; what names of several words begin with fills 5 % of them


def digest(key: str) -> bytes:
    """The hash by which a name is kept."""
    return blake2b(key.encode(), digest_size=CODE_BYTES).digest()


def code(key: str) -> int:
    """The same as a number."""
    return int.from_bytes(blake2b(key.encode(), digest_size=CODE_BYTES).digest(), "big")
