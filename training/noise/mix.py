"""The twelve transformations of RoLASER, ours for other languages, and `mix_all`, which draws among them.

Source: Nishimwe, Sagot, Bawden 2024, appendix A (after NL-Augmenter, Dhole et al. 2021). The word lists are our own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from random import Random

from msgspec import Struct

from models.errors import ConfigError
from training.noise import letters
from training.noise.romanise import romanise
from training.noise.words import LISTS, WordList, read_lang_lists, read_word_list

__all__ = ["KINDS", "MIX_RATE", "NEUTRAL", "PAPER", "draw_mix", "kinds_of", "noise", "own_lists", "transform"]

PAPER = ("abr1", "abr2", "abr3", "cont", "dysl", "fing", "homo", "leet", "slng", "spac", "spel", "week")
NEUTRAL = ("abrv", "accs", "elon", "fing", "leet", "lost", "roma", "spac", "vowl")  # for languages beside English
MIX_RATE = 0.1  # the paper's p_all

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = ("January February March April June July August September October November December").split()  # May is short
_SHORT = {"Tuesday": "Tue|Tues", "Thursday": "Thu|Thurs|Thur", "Wednesday": "Wed|Weds", "September": "Sept|Sep"}


class Kind(Struct, frozen=True):
    """One transformation: what it does to a text, and the chance per site that the paper gives it."""

    run: Callable[[str, Random, float, str, Mapping[str, WordList]], str]  # text, rng, p, lang, lists
    p: float = 1.0  # without a chance of its own in the paper: every site
    scaled: bool = False  # mix_all draws ½, 1 or 1½ times p


def _from_list(name: str, p: float = 1.0, scaled: bool = False) -> Kind:
    return Kind(lambda text, rng, p, lang, lists: lists[name].replace(text, rng, p), p, scaled)


def _week(text: str, rng: Random, p: float, lang: str, lists: Mapping[str, WordList]) -> str:
    """Days and months shortened, with or without a stop, and spelt out; only where they are capitalised."""

    def swap(match: re.Match) -> str:
        if rng.random() >= p:
            return match.group()
        name = match.group("name")
        if not name:
            return _FULL_OF[match.group("short")]
        return rng.choice(_SHORT.get(name, name[:3]).split("|")) + rng.choice(("", "."))

    return _WEEK.sub(swap, text)


_FULL_OF = {short: name for name in (*_DAYS, *_MONTHS) for short in _SHORT.get(name, name[:3]).split("|")}
_FULL_OF |= {"Sept": "September"}
# Sun, Sat, Mar, Jan … are words and names too: they are spelt out only before a stop or a number.
_WEEK = re.compile(
    rf"\b(?:(?P<name>{'|'.join((*_DAYS, *_MONTHS))})\b|(?P<short>{'|'.join(sorted(_FULL_OF, key=len, reverse=True))})(?:\.|(?=\s\d)))"
)


def _roma(text: str, rng: Random, p: float, lang: str, lists: Mapping[str, WordList]) -> str:
    return romanise(text, rng, lang) if rng.random() < p else text


def _abrv(text: str, rng: Random, p: float, lang: str, lists: Mapping[str, WordList]) -> str:
    words = lists.get(f"abrv.{lang}")
    return words.replace(text, rng, p) if words else text


KINDS: dict[str, Kind] = {
    "abr1": _from_list("abr1", 0.1, scaled=True),
    "abr2": _from_list("abr2"),
    "abr3": _from_list("abr3"),
    "cont": _from_list("cont"),
    "dysl": _from_list("dysl"),
    "fing": Kind(lambda text, rng, p, lang, lists: letters.fing(text, rng, p, lang), 0.05, scaled=True),
    "homo": _from_list("homo", 0.5, scaled=True),
    "leet": Kind(lambda text, rng, p, lang, lists: letters.leet(text, rng, p), 0.1, scaled=True),
    "slng": _from_list("slng"),
    "spac": Kind(lambda text, rng, p, lang, lists: letters.spac(text, rng, p), 0.1, scaled=True),
    "spel": _from_list("spel", 0.2, scaled=True),
    "week": Kind(_week),
    "abrv": Kind(_abrv, 0.5, scaled=True),
    "accs": Kind(lambda text, rng, p, lang, lists: letters.accs(text, rng, p)),
    "elon": Kind(lambda text, rng, p, lang, lists: letters.elon(text, rng, p), 0.1, scaled=True),
    "lost": Kind(lambda text, rng, p, lang, lists: letters.lost(text, rng, p)),
    "roma": Kind(_roma),
    "vowl": Kind(lambda text, rng, p, lang, lists: letters.vowl(text, rng, p), 0.2, scaled=True),
}


@cache
def own_lists() -> Mapping[str, WordList]:
    """The project's own word lists: by transformation, and `abrv.<lang>` for short forms of other languages."""
    lists = {name: read_word_list(LISTS / f"{name}.tsv") for name in ("abr1", "abr2", "dysl", "homo", "slng", "spel")}
    lists |= {name: read_word_list(LISTS / f"{name}.tsv").both_ways() for name in ("abr3", "cont")}
    return lists | {f"abrv.{lang}": words for lang, words in read_lang_lists(LISTS / "abrv.tsv").items()}


def kinds_of(lang: str) -> tuple[str, ...]:
    """The paper's twelve for English, the language-neutral ones for the rest."""
    return PAPER if lang == "en" else NEUTRAL


def transform(
    kind: str,
    text: str,
    rng: Random,
    p: float | None = None,
    lang: str = "en",
    lists: Mapping[str, WordList] | None = None,
) -> str:
    """One transformation (or "mix_all", where p is p_all) with chance p per site; None is the paper's default.

    A text that has no site for it comes back as it was. `lists` replaces some or all of the project's word lists.
    """
    if kind == "mix_all":
        return noise(text, rng, MIX_RATE if p is None else p, lang, lists=lists)
    try:
        chosen = KINDS[kind]
    except KeyError:
        raise ConfigError(f"unknown noise {kind!r}: choose from mix_all, {', '.join(KINDS)}") from None
    return chosen.run(text, rng, chosen.p if p is None else p, lang, _all_lists(lists))


def draw_mix(kinds: tuple[str, ...], rng: Random, rate: float) -> list[tuple[str, float]]:
    """What one text gets: each kind with chance `rate`, in shuffled order, with its chance per site.

    That is ½, 1 or 1½ times the default, with chances ¼, ½, ¼, for the kinds that have one in the paper.
    """
    chosen = [kind for kind in kinds if rng.random() < rate]
    rng.shuffle(chosen)
    factors = rng.choices((0.5, 1.0, 1.5), (1, 2, 1), k=len(chosen))
    return [(k, KINDS[k].p * (f if KINDS[k].scaled else 1)) for k, f in zip(chosen, factors, strict=True)]


def noise(
    text: str,
    rng: Random,
    rate: float = MIX_RATE,
    lang: str = "en",
    kinds: tuple[str, ...] | None = None,
    lists: Mapping[str, WordList] | None = None,
) -> str:
    """`mix_all`: the text after a random subset of transformations. Pure: the same rng state gives the same text.

    rate: chance of each transformation to be in the subset (the paper's p_all = .1); 0 leaves the text as it is.
    """
    every = _all_lists(lists)
    for kind, p in draw_mix(kinds or kinds_of(lang), rng, rate):
        # Each has its own seed, as in the paper: what one draws does not move the others.
        text = KINDS[kind].run(text, Random(rng.getrandbits(64)), p, lang, every)
    return text


def _all_lists(lists: Mapping[str, WordList] | None) -> Mapping[str, WordList]:
    return own_lists() if lists is None else {**own_lists(), **lists}
