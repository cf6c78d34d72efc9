"""Words of urgency and vulnerability in a post: children, dialysis, trapped.

They are shown beside an alert's priority, so that a reader sees at once who is in danger, in his own language. They
change neither reading nor priority: both are read from the whole sentence, "no one is trapped" too.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

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


def signs_in(text: str, lang: str) -> list[str]:
    """The signs whose words in the post's language stand in the text; English ones where the language has no list.

    Of that language alone: "son" is a child in English and "they are" in Spanish.
    """
    text, signs = folded(text), []
    for sign, said, else_meant in _words(lang.partition("-")[0].lower()):
        # To look for plain parts first takes a tenth of the time: most texts hold none.
        if any(map(text.__contains__, said)):
            left = else_meant.sub("|", text) if else_meant else text
            if any(words.search(left) for part, words in said.items() if part in left):
                signs.append(sign)
    return signs


@cache
def _words(lang: str) -> list[tuple[str, dict[str, re.Pattern[str]], re.Pattern[str] | None]]:
    """Sign, its words by what must stand in a text where they stand, and where they mean something else."""
    signs = words_of_signs()
    lang = _LISTED_AS.get(lang, lang)
    known = lang if any(lang in lists for lists in signs.values()) else "en"
    before, found = _JOINED.get(known, ""), []
    for sign, lists in signs.items():
        said = tuple(word for word in lists.get(known, ()) if word[0] != "-")
        else_meant = tuple(word[1:] for word in lists.get(known, ()) if word[0] == "-")
        if said:
            parts = {part: tuple(w for w in said if longest_part(w) == part) for part in map(longest_part, said)}
            by_part = {part: any_of(words, before) for part, words in parts.items()}
            found.append((sign, by_part, any_of(else_meant, before) if else_meant else None))
    return found
