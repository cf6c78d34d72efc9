"""Whether given words stand in a text: whole, without case and width (NFKC); anywhere in scripts without spaces.

A `*` at the end of a word takes any ending.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

__all__ = ["any_of", "folded", "longest_part"]

# Scripts written without spaces between words: Thai, Lao, Myanmar, Khmer, kana, Han.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff]")


def folded(text: str) -> str:
    """The text as words are compared."""
    return unicodedata.normalize("NFKC", text).casefold()


@lru_cache(maxsize=4096)
def any_of(words: tuple[str, ...]) -> re.Pattern[str]:
    """Matches in a `folded` text where one of the words stands."""
    return re.compile("|".join(_whole(folded(word)) for word in words))


def longest_part(word: str) -> str:
    """What stands in every `folded` text where this word, or group of words, stands."""
    return max(folded(word).strip().rstrip("*").split(), key=len, default="")


def _whole(word: str) -> str:
    word = word.strip()
    open_end, word = word.endswith("*"), word.rstrip("*").strip()
    said = r"\s+".join(re.escape(part) for part in word.split())
    if _UNSPACED.search(word):
        return said
    return rf"(?<!\w){said}" if open_end else rf"(?<!\w){said}(?!\w)"
