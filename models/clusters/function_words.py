"""Words that say nothing of what a post is about: models/data/function_words.tsv, a line a language.

    "the" in function_words("en")        → True; and in any other language

Made by `training.function_words` of everyday sentences, games, sentences on health and the written posts.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

__all__ = ["function_words"]

CRUMBS = {"amp", "htt", "http", "https"}  # of links and signs that a platform cut


@cache
def function_words(lang: str) -> frozenset[str]:
    """Folded, of this language (BCP 47) and of English, which stands in posts of all languages."""
    known = _words()
    own = known.get(lang) or known.get(lang.partition("-")[0], frozenset())
    return own | known["en"] | CRUMBS


@cache
def _words() -> dict[str, frozenset[str]]:
    lines = (files("models") / "data" / "function_words.tsv").read_text(encoding="utf-8").splitlines()
    return {lang: frozenset(words.split(",")) for lang, words in (line.split("\t") for line in lines)}
