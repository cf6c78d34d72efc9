"""Which places a text names, and how likely each is the place that is meant.

    named_in("water rising fast in Les Cayes, send boats")      → [Mention(Les Cayes, Sud, HT …, confidence .7)]

Every run of one to five words is looked for in the table of places (models/places/gazetteer.py), as far as any name
begins with them, and the longest that is a name is taken; in scripts without spaces every run of a few letters, each
with its vowel signs (`names.runs`). A word that names nothing is looked for once more without what its language writes
onto it (`names.unjoined`).
Left out: links and mentions of people, words in small letters in a text that uses capitals (but where a language has
one country, and only its sentences begin with capitals, places of that country are found), what follows Hurricane,
Cyclone and their like in many languages, and names that are words people write all day, in any language
(models/places/gazetteer.py) or in that of the text (models/places/ordinary.py). Which of several places of one
name is meant: models/places/meant.py.

The confidence is measured, not invented: the share of such finds that a person marked in the post as a place within
the place's own reach (IDRISI-D, training part: Suwaileh, Elsayed & Imran 2023, https://github.com/rsuwaileh/IDRISI; how
well it holds on the other part: `python -m training.measure_places all`, kept in `training/results/places.json`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from models.places.gazetteer import Gazetteer, Place, radius_km, within
from models.places.meant import NOTHING_BEGINS, POSSIBLE, Name, meant_beside, named
from models.places.names import MARKS, MOST_TOGETHER, SIGNED, UNSPACED, fold, runs, unjoined, words
from models.places.ordinary import is_ordinary

__all__ = ["LEAST_CONFIDENCE", "WEIGHTS", "Find", "Mention", "finds", "lies_in", "named_in"]

READ_CHARS, MOST_WORDS = 1_000, 150  # of a post: bounds what it costs
KEPT = 16_384  # words that were asked for, most of them no names: 8,000 in 7,500 posts of many crises; some 4 MB
LETTERS = 40  # of a word that is kept
LONGEST_RUN = 8  # letters of a name in a script without spaces
LONGEST_SIGNED = 12  # the same where vowels are marks: "กรุงเทพมหานคร" (Bangkok) has ten; four names in a hundred more
SHOWN = 3  # places told of one post
LEAST_CONFIDENCE = 0.25  # below it a find is told nobody
# log-odds that a find is the place that is meant, fitted by `training.measure_places` on an earlier table. On the one
# that ships a fit gives hashtags -3.85, which would tell none: few are marked where it is fitted, many name a town. A
# fit without them gives "apart" -2.42, and the rest so that 100 posts in small letters tell 9.0 wrong places, not 5.8:
# "apart" is set by hand
WEIGHTS = {
    "bias": -3.66,
    "several": 0.4,
    "people": 0.21,
    "share": 2.67,
    "capital": 0.57,
    "after": 1.35,
    "wide": 0.96,
    "tag": -1.17,
    "apart": -1.2,
}

_IGNORED = re.compile(r"https?://\S+|www\.\S+|@\w+|＠\w+")  # each branch begins with a letter: three times as fast
_TAG = re.compile(rf"[#＃](\w(?:\w|(?![\x00-\x7f])[{MARKS}\u200b-\u200d])*)")
_HUMP = re.compile(r"(?<=[a-zà-ÿ])(?=[A-ZÀ-Þ])|(?<=[^\W\d_])(?=\d)")
_STOP = re.compile(r"[.!?:…\n]")  # a phone writes a capital behind it
# ISO 3166-1 of the only country where a language is everyday speech, by its code. Vietnamese was tried and left out,
# whose syllables are small towns: 15 wrong ones more in 337 sentences
HOMES = {"ceb": "PH", "ht": "HT", "mg": "MG", "ne": "NP", "rw": "RW", "si": "LK", "tl": "PH"}
_STORMS = frozenset(
    "hurricane hurricanes cyclone cyclones typhoon storm tropical ts huracan tormenta ciclon tifon ouragan tempete "
    "typhon furacao ciclone tempestade tifone uragano hurrikan sturm zyklon taifun bagyong bagyo badai siklon topan "
    "kasirga "
    "اعصار عاصفه".split()
)
_AFTER = frozenset(
    "in at near from around of to outside en cerca de desde a au aux dans pres du des em perto no na nel nella vicino "
    "im bei aus von nach w в у из под біля з di ke dari sa kwa nan في من الى قرب شمال جنوب شرق غرب".split()
)


class Find(NamedTuple):
    """A name of places in a text."""

    start: int
    end: int
    places: np.ndarray  # (k,) indices in the gazetteer, the one that is meant first
    shares: np.ndarray  # (k,) of the people of all of them
    features: dict[str, float]

    @property
    def confidence(self) -> float:
        """That the first is what is meant."""
        return 1 / (1 + math.exp(-sum(WEIGHTS[name] * value for name, value in self.features.items())))


class Mention(Struct, frozen=True):
    """A place that a text names."""

    text: str  # as the post writes it
    place: Place
    confidence: float  # that this place is meant


class _Word(Struct, frozen=True, gc=False):
    start: int
    end: int
    key: str
    capital: bool | None  # None: its script has none
    tag: bool = False  # of a hashtag
    part: bool = False  # of a longer one: "#KeralaFloods" names the event


class _Hit(NamedTuple):
    """Where a name stands, and what the words there and before tell of how likely it is one."""

    start: int
    end: int
    name: Name
    features: dict[str, float]


def named_in(text: str, gazetteer: Gazetteer | None = None, most: int = SHOWN, lang: str = "und") -> list[Mention]:
    """The places a text names, each once, the likeliest first, but before it what is told inside of it.

    lang: of the text, whose words are no names.
    """
    told: dict[int, Mention] = {}
    found = _bundled_finds(text, lang) if gazetteer is None else finds(text, gazetteer, lang)
    gazetteer = gazetteer or Gazetteer.bundled()
    for confidence, find in sorted(((find.confidence, find) for find in found), key=lambda pair: -pair[0]):
        index = int(find.places[0])
        said = text[find.start : find.end]
        if confidence >= LEAST_CONFIDENCE and index not in told and not is_ordinary(said, lang):
            told[index] = Mention(said, gazetteer.place(index), round(confidence, 2))
    return [told[index] for index in _narrow_first([*told], gazetteer)[:most]]


def _narrow_first(told: list[int], gazetteer: Gazetteer) -> list[int]:
    """Where the first is a country or province, the likeliest place of it before it: "Sardegna … Olbia" is in Olbia.

    Of 142 posts of IDRISI-D where that is another, the town was in place in 69 %, the wide one in 76 %.
    """
    while inside := next((index for index in told if told[0] in gazetteer.above(index)), None):
        told = [inside, *(index for index in told if index != inside)]
    return told


def lies_in(text: str, area: Sequence[float], gazetteer: Gazetteer | None = None, lang: str = "und") -> bool:
    """Does a text name a place in an area (south, west, north, east)?

    Of several places of one name the one there is meant, as long as a tenth of the people of all of them live there:
    where a query has an area, something happens in it. A country or province wider than the area does not lie in it.
    For the same reason a place counts there in small letters too, whatever else in the text has capitals: "Nou nan
    delmas" (of 67 Haitian messages that name Potoprens so, 45 were lost to a query with its area).
    """
    known = gazetteer or Gazetteer.bundled()
    said = _bundled_finds(text, lang) if gazetteer is None else finds(text, known, lang)
    if _any_in(area, text, said, known, lang):
        return True
    letters = [word[0] for word in text.split()]
    mixed = any(map(str.isupper, letters)) and any(map(str.islower, letters))
    if not mixed:
        return False
    small = _bundled_finds(text, lang, True) if gazetteer is None else finds(text, known, lang, small=True)
    return _any_in(area, text, small, known, lang)


def _any_in(area: Sequence[float], text: str, found: Sequence[Find], gazetteer: Gazetteer, lang: str) -> bool:
    reach = radius_km(area)
    for find in found:
        if is_ordinary(text[find.start : find.end], lang):
            continue
        for index, share in zip(find.places.tolist(), find.shares.tolist(), strict=True):
            meant = find._replace(features=find.features | {"share": 1.0, "apart": 0.0}).confidence
            if share < POSSIBLE or meant < LEAST_CONFIDENCE:
                continue
            place = gazetteer.place(index)
            if within(area, place.lat, place.lon) and (place.kind == "town" or place.radius_km <= reach * 1.01):
                return True
    return False


@lru_cache(maxsize=1024)
def _bundled_finds(text: str, lang: str, small: bool = False) -> list[Find]:
    """A post is asked about by many queries, and once more for its alert."""
    return finds(text, Gazetteer.bundled(), lang, small)


def finds(text: str, gazetteer: Gazetteer, lang: str = "und", small: bool = False) -> list[Find]:
    """Every name of places in a text, in its order, none within another. lang: of the text; small: count words in small
    letters, as where nothing has a capital, although others do."""
    every = _words(text[:READ_CHARS])[:MOST_WORDS]
    capitals = {word.capital for word in every}
    cased = not small and False in capitals and True in capitals
    home = HOMES.get(lang.partition("-")[0], "") if cased else ""
    if home and _capital_inside(text, every):
        home = ""
    strict = cased and not home
    storms = {word.key for before, word in pairwise(every) if before.key in _STORMS}
    names = _names(gazetteer)
    found: list[_Hit] = []
    end = 0  # of the last name
    for at, word in enumerate(every):
        if at < end:
            continue
        longest = None
        if not ((strict and word.capital is False and not word.tag) or word.key in _AFTER or word.key in storms):
            name = names[word.key]
            longest = None if name is NOTHING_BEGINS else _longest(every, at, name, strict, gazetteer)
        if longest is not None and (not home or _stands(word, longest[1], home, gazetteer)):
            taken, name = longest
            end = at + taken
            features = {
                "bias": 1.0,
                "several": float(taken > 1),
                "capital": float(strict or (cased and word.capital is not False)),
                "after": float(at > 0 and every[at - 1].key in _AFTER),
                "tag": float(word.part),
            }
            found.append(_Hit(word.start, every[end - 1].end, name, features))
        elif not word.key.isascii() and UNSPACED.search(word.key):
            found += _unspaced(word, text[word.start : word.end], gazetteer)
    return _weighed(found, gazetteer)


def _capital_inside(text: str, every: Sequence[_Word]) -> bool:
    """Has a word a capital that begins no sentence?"""
    return any(word.capital and not _STOP.search(text, last.end, word.start) for last, word in pairwise(every))


def _stands(word: _Word, name: Name, home: str, gazetteer: Gazetteer) -> bool:
    """Is it a name although its writer uses no capitals inside a sentence? In small letters of what lies at home."""
    return word.tag or word.capital is not False or gazetteer.place(int(name.places[0])).country == home


def _words(text: str) -> list[_Word]:
    """The words outside of links and handles; a hashtag's parts are words."""
    plain = _IGNORED.sub(lambda found: " " * len(found.group()), text)
    if "#" not in plain and "＃" not in plain:
        return [_word(plain, start, end) for start, end in words(plain)]
    tags = {at: found.span(1) for found in _TAG.finditer(text) for at in range(*found.span(1))}
    every: list[_Word] = []
    for start, end in words(plain):
        if (tag := tags.get(start)) is None:
            every.append(_word(plain, start, end))
            continue
        cuts = [start, *(start + cut.start() for cut in _HUMP.finditer(plain[start:end])), end]
        part = tag != (start, end) or len(cuts) > 2
        every += [_word(plain, a, b, True, part) for a, b in pairwise(cuts)]
    return every


def _word(text: str, start: int, end: int, tag: bool = False, part: bool = False) -> _Word:
    letter = text[start]
    capital = letter.isupper() or (None if letter.lower() == letter.upper() else False)
    return _Word(start, end, fold(text[start:end]), capital, tag, part)


class _Names(dict[str, Name]):
    """What each word names alone, by its key; a table that fills itself, and is emptied where it holds too many."""

    def __init__(self, gazetteer: Gazetteer) -> None:
        self._gazetteer = gazetteer

    def __missing__(self, key: str) -> Name:
        name = named(key, self._gazetteer)
        if not (name.named or key.isascii()) and (bare := unjoined(key)) != key:
            name = named(bare, self._gazetteer)._replace(begins=name.begins)
        if len(key) <= LETTERS:  # a few thousand long ones would fill memory
            if len(self) >= KEPT:
                self.clear()
            self[key] = name
        return name


_names = lru_cache(8)(_Names)


def _longest(
    every: Sequence[_Word], at: int, name: Name, strict: bool, gazetteer: Gazetteer
) -> tuple[int, Name] | None:
    """How many words from here on name places together, the most that do, and what they name.

    name: what the first names alone. strict: in a text where words in small letters are no names.
    """
    first = every[at]
    small = strict and not first.tag
    longest = (1, name) if name.named else None
    begins, key = name.begins, first.key
    for length, word in enumerate(every[at + 1 : at + MOST_TOGETHER], 2):
        if not begins:
            break
        key = f"{key} {word.key}"
        name = named(key, gazetteer)
        if name.named and word.key not in _AFTER and not (small and word.capital is False):
            longest = length, name
        begins = name.begins
    return longest


def _unspaced(word: _Word, written: str, gazetteer: Gazetteer) -> Iterator[_Hit]:
    """Names inside a word of a script without spaces, of those that begin together the longest."""
    every = runs(written, LONGEST_SIGNED if SIGNED.search(word.key) else LONGEST_RUN)
    known = np.flatnonzero(gazetteer.known([key for _, _, _, key in every]))
    last = 0
    for start, end, letters, key in sorted((every[at] for at in known), key=lambda run: (run[0], -run[1])):
        if start >= last and (name := named(key, gazetteer)).named:
            several = {"bias": 1.0, "several": float(letters > 2), "tag": float(word.part)}
            yield _Hit(word.start + start, word.start + end, name, several)
            last = end


def _weighed(found: Sequence[_Hit], gazetteer: Gazetteer) -> list[Find]:
    """The finds, each beside the other places named in the text."""
    told = [hit.name.biggest for hit in found]
    weighed = []
    for at, (start, end, name, features) in enumerate(found):
        places, shares, more = meant_beside(name, {*told[:at], *told[at + 1 :]}, gazetteer)
        weighed.append(Find(start, end, places, shares, features | more))
    return _set_apart(weighed, gazetteer)


def _set_apart(found: list[Find], gazetteer: Gazetteer) -> list[Find]:
    """The finds, those marked "apart" that are a small town in another country than the surest, alone of all told."""
    if len(found) < 2:
        return found
    firsts = [find.places.item(0) for find in found]
    lies = [gazetteer.country(first) for first in firsts]
    if len(set(lies)) < 2:
        return found
    sure = [find.confidence for find in found]
    home = lies[sure.index(max(sure))]
    every = zip(firsts, lies, sure, strict=True)
    told = {(first, country) for first, country, likely in every if likely >= LEAST_CONFIDENCE}
    there = Counter(country for _, country in told)
    for at, (first, country) in enumerate(zip(firsts, lies, strict=True)):
        features = found[at].features
        small = features["people"] < 0 and not features["wide"]
        if small and country != home and there[country] == ((first, country) in told):
            found[at] = found[at]._replace(features=features | {"apart": 1.0})
    return found
