"""Words of urgency and vulnerability in a post: children, dialysis, trapped.

They are shown beside an alert's priority, so that a reader sees at once who is in danger, in his own language. They
change neither reading nor priority: both are read from the whole sentence, "no one is trapped" too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import msgspec

from models.words import any_of, folded, longest_part

__all__ = ["signs_in", "words_of_signs"]

_FILE = Path(__file__).parent / "data" / "signs.yaml"
_LISTED_AS = {"arq": "ar", "ary": "ar"}  # Algerian and Moroccan Arabic share these words
# What Arabic joins to the front of a word, as `folded`: "and", "so", "in", "to", "as", two of them at most, and "the".
_JOINED = {"ar": "(?:[وفبلک]{0,2}(?:ال)?|و?لل)"}


@cache
def words_of_signs() -> dict[str, dict[str, list[str]]]:
    """Sign → language → words, in the order in which signs are told. A word after a `-` means something else."""
    return msgspec.yaml.decode(_FILE.read_bytes(), type=dict[str, dict[str, list[str]]])


class _Listed(NamedTuple):
    """The words of a language, by what must stand in a text where they stand: patterns are made when it does."""

    any_part: re.Pattern[str]  # matches in a text with one of the parts
    said: dict[str, list[tuple[str, tuple[str, ...]]]]  # part → the words with it, by sign
    else_meant: dict[str, tuple[frozenset[str], tuple[str, ...]]]  # sign → parts and words that mean something else
    before: str  # pattern of what may be joined to their front


def signs_in(text: str, lang: str) -> list[str]:
    """The signs whose words in the post's language stand in the text; English ones where the language has no list.

    Of that language alone: "son" is a child in English and "they are" in Spanish.
    """
    text, known = folded(text), _listed(lang.partition("-")[0].lower())
    if not known.any_part.search(text):  # as four texts in five: 3 µs instead of 11, one part after another
        return []
    found: set[str] = set()
    for part in filter(text.__contains__, known.said):
        for sign, words in known.said[part]:
            if sign not in found and any_of(words, known.before).search(_without_else_meant(text, sign, known)):
                found.add(sign)
    return [sign for sign in words_of_signs() if sign in found]


def _without_else_meant(text: str, sign: str, known: _Listed) -> str:
    parts, words = known.else_meant[sign]
    return any_of(words, known.before).sub("|", text) if any(map(text.__contains__, parts)) else text


@cache
def _listed(lang: str) -> _Listed:
    signs = words_of_signs()
    lang = _LISTED_AS.get(lang, lang)
    known = lang if any(lang in lists for lists in signs.values()) else "en"
    said: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    else_meant = {}
    for sign, lists in signs.items():
        by_part: dict[str, list[str]] = {}
        for word in lists.get(known, ()):
            if word[0] != "-":
                by_part.setdefault(longest_part(word), []).append(word)
        for part, words in by_part.items():
            said.setdefault(part, []).append((sign, tuple(words)))
        others = tuple(word[1:] for word in lists.get(known, ()) if word[0] == "-")
        else_meant[sign] = frozenset(map(longest_part, others)), others
    return _Listed(_any_of_parts(said), said, else_meant, _JOINED.get(known, ""))


def _any_of_parts(parts: Iterable[str]) -> re.Pattern[str]:
    """By first letters: each alternative is then tried by its first one alone."""
    begun = groupby(sorted(parts), key=itemgetter(0))
    return re.compile("|".join(f"{re.escape(c)}(?:{'|'.join(re.escape(p[1:]) for p in same)})" for c, same in begun))
