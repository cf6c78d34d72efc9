"""Words of urgency and vulnerability in a post: children, dialysis, trapped.

They are shown beside an alert's priority, so that a reader sees at once who is in danger, in his own language. They
change neither reading nor priority: both are read from the whole sentence, "no one is trapped" too.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from models.words import any_of, folded, longest_part

__all__ = ["signs_in", "words_of_signs"]

_FILE = Path(__file__).parent / "data" / "signs.yaml"


@cache
def words_of_signs() -> dict[str, dict[str, list[str]]]:
    """Sign → language → words, in the order in which signs are told."""
    return msgspec.yaml.decode(_FILE.read_bytes(), type=dict[str, dict[str, list[str]]])


def signs_in(text: str, lang: str) -> list[str]:
    """The signs whose words in the post's language stand in the text; English ones where the language has no list.

    Of that language alone: "son" is a child in English and "they are" in Spanish.
    """
    text = folded(text)
    return [
        sign
        for sign, parts, words in _words(lang.partition("-")[0].lower())
        if any(map(text.__contains__, parts)) and any_of(words).search(text)
    ]


@cache
def _words(lang: str) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Sign, what must stand in a text where one of its words stands, and its words."""
    signs = words_of_signs()
    known = lang if lang in signs["children"] else "en"
    found = [(sign, tuple(words[known])) for sign, words in signs.items() if known in words]
    # To look for plain parts first takes a tenth of the time: most texts hold none.
    return [(sign, tuple({longest_part(word) for word in words}), words) for sign, words in found]
