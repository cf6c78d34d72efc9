"""Which places a text names, and how likely each is the place that is meant.

    named_in("water rising fast in Les Cayes, send boats")      → [Mention(Les Cayes, Sud, HT …, confidence .7)]

Every run of one to five words is looked for in the table of places (models/places/gazetteer.py), the longest first; in
scripts without spaces every run of two to eight letters. Left out: links and mentions of people, words in small letters
in a text that uses capitals, what follows Hurricane, Cyclone and their like in many languages, and names that are words
people write all day. Of several places of one name the one with most people is meant, unless the text names the country
or province of another.

The confidence is measured, not invented: the share of such finds that a person marked in the post as a place within
the place's own reach (IDRISI-D, training part: Suwaileh, Elsayed & Imran 2023, https://github.com/rsuwaileh/IDRISI; how
well it holds on the other part: `python -m training.measure_places all`, kept in `training/results/places.json`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from models.places.gazetteer import Gazetteer, Place, radius_km, within
from models.places.names import MOST_TOGETHER, UNSPACED, fold, unjoined, words

__all__ = ["LEAST_CONFIDENCE", "WEIGHTS", "Find", "Mention", "finds", "lies_in", "named_in"]

READ_CHARS, MOST_WORDS = 1_000, 150  # of a post: bounds what it costs
LONGEST_RUN = 8  # letters of a name in a script without spaces
SHOWN = 3  # places told of one post
LEAST_CONFIDENCE = 0.25  # below it a find is told nobody
MOST_LIVE_THERE = 0.3  # share of a province's people from which a town of its name is meant by it
POSSIBLE = 0.1  # share of the people of all places of a name from which a place may be meant
# log-odds that a find is the place that is meant, fitted by `training.measure_places` on an earlier table. On the one
# that ships a fit gives hashtags -3.85, which would tell none: few are marked where it is fitted, many name a town
WEIGHTS = {
    "bias": -3.66,
    "several": 0.4,
    "people": 0.21,
    "share": 2.67,
    "capital": 0.57,
    "after": 1.35,
    "wide": 0.96,
    "tag": -1.17,
}

_IGNORED = re.compile(r"https?://\S+|www\.\S+|[@＠]\w+")
_TAG = re.compile(r"[#＃](\w+)")
_HUMP = re.compile(r"(?<=[a-zà-ÿ])(?=[A-ZÀ-Þ])|(?<=[^\W\d_])(?=\d)")
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


Hit = tuple[int, int, np.ndarray, dict[str, float]]  # where a name stands, its places, and what tells how likely one is


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


class _Word(NamedTuple):
    start: int
    end: int
    key: str
    capital: bool | None  # None: its script has none
    tag: bool  # of a hashtag
    part: bool  # of a longer one: "#KeralaFloods" names the event


def named_in(text: str, gazetteer: Gazetteer | None = None, most: int = SHOWN) -> list[Mention]:
    """The places a text names, the likeliest first, each once."""
    told: dict[int, Mention] = {}
    found = _bundled_finds(text) if gazetteer is None else finds(text, gazetteer)
    gazetteer = gazetteer or Gazetteer.bundled()
    for find in sorted(found, key=lambda find: -find.confidence):
        index = int(find.places[0])
        if find.confidence >= LEAST_CONFIDENCE and index not in told:
            told[index] = Mention(text[find.start : find.end], gazetteer.place(index), round(find.confidence, 2))
    return list(told.values())[:most]


def lies_in(text: str, area: Sequence[float], gazetteer: Gazetteer | None = None) -> bool:
    """Does a text name a place in an area (south, west, north, east)?

    Of several places of one name the one there is meant, as long as a tenth of the people of all of them live there:
    where a query has an area, something happens in it. A country or province wider than the area does not lie in it.
    """
    found = _bundled_finds(text) if gazetteer is None else finds(text, gazetteer)
    gazetteer = gazetteer or Gazetteer.bundled()
    reach = radius_km(area)
    for find in found:
        for index, share in zip(find.places.tolist(), find.shares.tolist(), strict=True):
            meant = find._replace(features=find.features | {"share": 1.0}).confidence
            if share < POSSIBLE or meant < LEAST_CONFIDENCE:
                continue
            place = gazetteer.place(index)
            if within(area, place.lat, place.lon) and (place.kind == "town" or place.radius_km <= reach * 1.01):
                return True
    return False


@lru_cache(maxsize=1024)
def _bundled_finds(text: str) -> list[Find]:
    """A post is asked about by many queries, and once more for its alert."""
    return finds(text, Gazetteer.bundled())


def finds(text: str, gazetteer: Gazetteer) -> list[Find]:
    """Every name of places in a text, in its order, none within another."""
    every = list(_words(text[:READ_CHARS]))[:MOST_WORDS]
    cased = sum(word.capital is False for word in every) > 0 and any(word.capital for word in every)
    storms = {word.key for before, word in zip(every, every[1:], strict=False) if before.key in _STORMS}
    found: list[Hit] = []
    at = 0
    while at < len(every):
        taken = 1
        for length in range(min(MOST_TOGETHER, len(every) - at), 0, -1):
            some = every[at : at + length]
            before = every[at - 1] if at else None
            if some[0].key not in storms and (hit := _hit(some, before, cased, gazetteer)) is not None:
                found.append((some[0].start, some[-1].end, *hit))
                taken = length
                break
        else:
            found += _unspaced(every[at], gazetteer)
        at += taken
    return [_weighed(one, found, gazetteer) for one in found]


def _words(text: str) -> Iterator[_Word]:
    """The words outside of links and handles; a hashtag's parts are words."""
    tags = {(found.start(1), found.end(1)) for found in _TAG.finditer(text)}
    plain = _IGNORED.sub(lambda found: " " * len(found.group()), text)
    for start, end in words(plain):
        tag = any(a <= start < b for a, b in tags)
        part = any(a <= start < b and (a, b) != (start, end) for a, b in tags)
        cuts = [start, *(start + cut.start() for cut in _HUMP.finditer(plain[start:end])), end] if tag else [start, end]
        for a, b in zip(cuts, cuts[1:], strict=False):
            letter = plain[a]
            yield _Word(
                a,
                b,
                fold(plain[a:b]),
                None if letter.lower() == letter.upper() else letter.isupper(),
                tag,
                part or len(cuts) > 2,
            )


def _hit(
    some: list[_Word], before: _Word | None, cased: bool, gazetteer: Gazetteer
) -> tuple[np.ndarray, dict[str, float]] | None:
    """The places these words name together, and what tells how likely one is meant."""
    if some[0].key in _AFTER or some[-1].key in _AFTER:
        return None
    if cased and (some[0].capital is False or some[-1].capital is False) and not some[0].tag:
        return None
    key = " ".join(word.key for word in some)
    found = gazetteer.indices(key, plain=False)
    if not len(found) and len(some) == 1 and (bare := unjoined(key)) != key:
        found = gazetteer.indices(bare, plain=False)
    if not len(found):
        return None
    return found, {
        "bias": 1.0,
        "several": float(len(some) > 1),
        "capital": float(cased),
        "after": float(before is not None and before.key in _AFTER),
        "tag": float(some[0].part),
    }


def _unspaced(word: _Word, gazetteer: Gazetteer) -> Iterator[Hit]:
    """Names inside a run of a script without spaces."""
    for run in UNSPACED.finditer(word.key):
        if len(word.key) != word.end - word.start:
            return  # folding moved its letters: where a name stands is not known
        spans = [(at, length) for at in range(*run.span()) for length in range(2, min(LONGEST_RUN, run.end() - at) + 1)]
        named = gazetteer.known([word.key[at : at + length] for at, length in spans])
        end = run.start()
        for at, length in sorted((spans[i] for i in np.flatnonzero(named)), key=lambda span: (span[0], -span[1])):
            if at < end:
                continue
            found = gazetteer.indices(word.key[at : at + length], plain=False)
            if len(found):
                several = {"bias": 1.0, "several": float(length > 2), "tag": float(word.part)}
                yield word.start + at, word.start + at + length, found, several
                end = at + length


def _weighed(one: Hit, every: Sequence[Hit], gazetteer: Gazetteer) -> Find:
    """The find with the place that is meant first: one that lies in another place named here, else the biggest."""
    start, end, places, features = one
    people = gazetteer.people(places)
    places, people = _town_before_its_province(places, people, gazetteer)
    above = {int(other[2][0]) for other in every if other[0] != start}
    inside = np.array([bool(set(gazetteer.above(int(index))) & above) for index in places])
    order = np.argsort(~inside, kind="stable")
    shares = people / people.sum()
    first = int(places[order[0]])
    alike = [i == first or i in gazetteer.above(first) or first in gazetteer.above(i) for i in places.tolist()]
    share = 1.0 if inside.any() else float(shares[alike].sum())  # a town and its province of one name are one
    wide = gazetteer.is_wide(int(places[order[0]]))
    told = {"people": math.log10(max(float(people[order[0]]), 1.0)) - 5, "share": share, "wide": float(wide)}
    return Find(start, end, places[order], shares[order], features | told)


def _town_before_its_province(
    places: np.ndarray, people: np.ndarray, gazetteer: Gazetteer
) -> tuple[np.ndarray, np.ndarray]:
    """Where most people of a province live in its town of the same name, that town is meant: Beirut, no governorate.

    places: those with most people first.
    """
    first = int(places[0])
    for at in range(1, len(places)):
        if first in gazetteer.above(int(places[at])) and people[at] >= MOST_LIVE_THERE * people[0]:
            order = [at, *(i for i in range(len(places)) if i != at)]
            return places[order], people[order]
    return places, people
