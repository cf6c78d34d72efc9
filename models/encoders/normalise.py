"""Text as it was meant, by the words one knows: slips, words run together or apart, letters held down, short forms.

A word that is known stays, and so does what looks like a name or stands in a text of another language. For the rest the
likeliest reading is taken, by a noisy channel (Kernighan, Church, Gale 1990): how often the known word was seen, times
the chance of the one slip that makes it what stands there; a reading as two words has the chance of both.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from models.encoders.leet import FORMS
from models.encoders.protocol import Encoder
from models.text import Cleaning, clean

__all__ = ["NormalisedEncoder", "Normaliser"]

_URL = Cleaning().url_token
_CORE = re.compile(r"[^\W_](?:[\w@$!|+'’]*[^\W_])?")  # the word, without marks around it
_LETTERS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_HELD = re.compile(r"(.)\1{2,}")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_SHORTEST = 4  # letters of a word that is taken for a slip: nearly every shorter one is a slip of another
_LONGEST = 24
_KNOWN_SHARE = 0.4  # of a text's words that must be known: below it is another language
_MOST_WORDS = 200  # of a text that are looked at: posts have fewer


class Normaliser:
    """Reads for one list of words. Pure; the same text gives the same text, and known words are never changed."""

    def __init__(self, words: Mapping[str, int], short: Mapping[str, str] = MappingProxyType({})) -> None:
        """words: how often each was seen, lower case; short: what a form that is no known word means."""
        total = sum(words.values()) or 1
        self._chance = {word: seen / total for word, seen in words.items() if len(word) > 1 or word in ("a", "i")}
        self._short = {form: meant for form, meant in short.items() if form not in self._chance}
        self._word = lru_cache(maxsize=65536)(self._read_word)

    def read(self, text: str) -> str:
        """The text with the words that can be read as known ones."""
        tokens = text.split(" ")
        cores = [found.group().lower() for token in tokens[:_MOST_WORDS] if (found := _CORE.search(token))]
        known = sum(core in self._chance or core in self._short for core in cores)
        if known < _KNOWN_SHARE * len(cores):
            return text
        read: list[str] = []
        for place, token in enumerate(self._joined(tokens)):
            found = _CORE.search(token) if place < _MOST_WORDS else None
            if found is None or token[0] in "@#" or token == _URL:
                read.append(token)
                continue
            begins = not read or read[-1].endswith((".", "!", "?", ":"))
            read.append(token[: found.start()] + self._word(found.group(), begins) + token[found.end() :])
        return " ".join(read)

    def _joined(self, tokens: Sequence[str]) -> list[str]:
        """Neighbours of which one is no word and which together are one, as that one: "wat er" → "water"."""
        joined: list[str] = []
        for token in tokens:
            if joined and token and joined[-1].isalpha() and (tail := _LETTERS.match(token)):
                whole = (joined[-1] + tail.group()).lower()
                parts = joined[-1].lower() in self._chance, tail.group().lower() in self._chance
                if whole in self._chance and not all(parts):
                    joined[-1] += token
                    continue
            joined.append(token)
        return joined

    def _read_word(self, written: str, begins: bool) -> str:
        word = written.lower().replace("’", "'")
        if word in self._chance or len(word) > _LONGEST:
            return written
        if word in self._short:
            return _in_case(written, self._short[word])
        if not word.isalpha():
            return _in_case(written, self._without_digits(word) or written)
        if not word.isascii() or (written[0].isupper() and not begins and not written.isupper()):
            return written  # another script, or a name
        for held in (_HELD.sub(r"\1\1", word), _HELD.sub(r"\1", word)):
            if held in self._chance:
                return _in_case(written, held)
        if len(word) < _SHORTEST:
            return written
        slip = 1 / (2 * len(_ALPHABET) * len(word))  # chance of that one slip among all
        readings = [(self._chance[found] * slip, found) for found in _one_slip(word) & self._chance.keys()]
        for at in range(1, len(word)):
            first, second = word[:at], word[at:]
            if first in self._chance and second in self._chance:
                readings.append((self._chance[first] * self._chance[second], f"{first} {second}"))
        return _in_case(written, max(readings)[1]) if readings else written

    def _without_digits(self, word: str) -> str | None:
        """The known word whose letters the digits and signs stand for, the likeliest of several."""
        signs = sum(not char.isalpha() for char in word)
        if not 0 < signs <= 5 or len(word) - signs < 2:
            return None
        choices = (char if char.isalpha() else FORMS["LATIN"].get(char, char) for char in word)
        readings = [found for found in map("".join, itertools.product(*choices)) if found in self._chance]
        return max(readings, key=self._chance.__getitem__, default=None)


class NormalisedEncoder:
    """An `Encoder` that reads cleaned text normalised."""

    def __init__(self, encoder: Encoder, normaliser: Normaliser) -> None:
        self.encoder, self.dim, self.cleaning = encoder, encoder.dim, encoder.cleaning
        self.version = f"{encoder.version}-normalised"
        self._normaliser = normaliser

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(n, dim) float32 unit rows in input order."""
        return self.encoder.encode([self._normaliser.read(clean(text, self.cleaning)) for text in texts])


def _one_slip(word: str) -> set[str]:
    """Words of which this one is a slip: a letter left out, put in, exchanged for another or for the one after it."""
    splits = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    missing = {a + letter + b for a, b in splits for letter in _ALPHABET}
    other = {a + letter + b[1:] for a, b in splits if b for letter in _ALPHABET}
    swapped = {a + b[1] + b[0] + b[2:] for a, b in splits if len(b) > 1}
    return missing | other | swapped | {a + b[1:] for a, b in splits if b}


def _in_case(written: str, meant: str) -> str:
    """As the writer had it: all in capitals, or the first letter."""
    if written.isupper() and len(written) > 1:
        return meant.upper()
    return meant[0].upper() + meant[1:] if written[0].isupper() else meant
