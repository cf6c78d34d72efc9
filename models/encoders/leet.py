"""Digits and signs read as the letters they stand for: "w4t3r" and "f!re" are "water" and "fire".

A static encoder sums pieces, and the pieces of "w4t3r" say nothing. A word is read so where the letters make one that
the tokenizer knows, whole or nearly; "covid19", "10km", "gr8", "5th" stay as they are.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from functools import lru_cache

from tokenizers import Tokenizer

__all__ = ["FORMS", "Leet"]

# What a digit or sign may stand for, by the script of the letters around it; the commoner first.
FORMS = {
    "LATIN": {"4": "a", "@": "a", "8": "b", "3": "e", "6": "g", "9": "gq", "1": "il", "!": "i", "|": "li", "0": "o",
              "5": "s", "$": "s", "7": "t", "+": "t", "2": "z"},
    "CYRILLIC": {"4": "ач", "@": "а", "8": "в", "3": "ез", "6": "б", "0": "о", "7": "т"},
    "GREEK": {"4": "α", "@": "α", "3": "ε", "0": "ο", "6": "σ"},
}  # fmt: skip
_SIGN = re.compile("[0-9@$!|+]")
# The word, without quotes around it and marks after it; "@" in front is a mention's.
_CORE = re.compile(r"[\w$!|+][\w@$!|+]*(?<=[\w@$+])")
# Beside a letter on both sides, or a sign that nobody counts with.
_INSIDE = re.compile(r"[^\W\d_][0-9@$!|+]+[^\W\d_]|^[$@]|[$@]$")
# A word has up to 32 readings, each split into pieces: so many words of a post are read, none longer than anybody
# types.
_READ_WORDS, _LONGEST = 24, 32
_MOST = 5  # signs in a word: more than that nobody reads either
_LETTERS_A_PIECE = 2.5  # of a word that the tokenizer nearly knows


class Leet:
    """Reads words for one tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._word = lru_cache(maxsize=8192)(self._read_word)
        self._words = {piece.removeprefix("▁") for piece in tokenizer.get_vocab()}

    def read(self, text: str) -> str:
        """The text, with the words that can be in letters."""
        if not _SIGN.search(text):
            return text
        words = text.split(" ")
        signed = [at for at, word in enumerate(words) if len(word) <= _LONGEST and _SIGN.search(word)]
        for at in signed[:_READ_WORDS]:
            words[at] = self._word(words[at])
        return " ".join(words)

    def _read_word(self, written: str) -> str:
        if not (core := _CORE.search(written)):
            return written
        word = core.group().casefold()
        letters = [char for char in word if char.isalpha()]
        # Ordinals, units and money ("1st", "5km", "US$") would make words too: they have fewer than three letters.
        if (
            len(letters) < (2 if word[0].isalpha() and word[-1].isalpha() else 3)
            or not 0 < len(word) - len(letters) <= _MOST
        ):
            return written
        forms = FORMS.get(unicodedata.name(letters[0], "").split(" ")[0], {})
        readings = list(
            map("".join, itertools.product(*(char if char.isalpha() else forms.get(char, char) for char in word)))
        )
        known = next((reading for reading in readings if reading in self._words), None)
        if known is None and len(word) > 4 and _INSIDE.search(word) and readings[0].isalpha():
            counts = [len(split.ids) for split in self._tokenizer.encode_batch_fast(readings, add_special_tokens=False)]
            fewest = min(range(len(counts)), key=counts.__getitem__)
            if counts[fewest] * _LETTERS_A_PIECE <= len(word):
                known = readings[fewest]
        return written if known is None else written[: core.start()] + known + written[core.end() :]
