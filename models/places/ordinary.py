"""Words that name a place in one language and mean something else in another: "pero" is Peru, and "but" in Spanish.

    is_ordinary("pero", "es")      → True; in a post of another language it may be Peru

In a text without capitals, as many write from a phone, nothing else tells them apart. The table of places marks what
people write all day in any language (`gazetteer`), but spares countries and what few write; here a name is left out in
its own language alone. Made by `training.place_words` of the written posts and of everyday sentences (Tatoeba).
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from models.places.names import keys

__all__ = ["is_ordinary"]


def is_ordinary(said: str, lang: str) -> bool:
    """Is what a post says there a word of its language (BCP 47) rather than the name of a place?"""
    known = _words()
    return keys(said) in (known.get(lang) or known.get(lang.partition("-")[0], frozenset()))


@cache
def _words() -> dict[str, frozenset[str]]:
    """Keys by language: a line each, the language, a tab, and the keys with commas between."""
    lines = (files("models") / "data" / "place_words.tsv").read_text(encoding="utf-8").splitlines()
    return {lang: frozenset(told.split(",")) for lang, told in (line.split("\t") for line in lines)}
