"""Which of the places of one name is meant: mostly the same in every text, so it is worked out once a name.

    named("port au prince", gazetteer).places[0]

Of several the one with most people is meant, unless the text names the country or province of another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from models.places.gazetteer import NOTHING, Gazetteer
from models.places.names import code

__all__ = ["NOTHING_BEGINS", "POSSIBLE", "Name", "meant_beside", "named"]

POSSIBLE = 0.1  # share of the people of all places of a name from which a place may be meant
MOST_LIVE_THERE = 0.3  # share of a province's people from which a town of its name is meant by it
KEPT = 2_048  # names, a kilobyte each: 30,000 posts of many crises ask for 4,071, six times in ten for one that is kept


class Name(NamedTuple):
    """What a run of words names."""

    begins: bool  # may a longer name begin with it?
    biggest: int = -1  # the place with most people; -1: nothing is called so
    places: np.ndarray = NOTHING  # read-only, all three: (k,) indices in the gazetteer, the one that is meant first
    people: np.ndarray = NOTHING  # (k,) how many live there
    shares: np.ndarray = NOTHING  # (k,) of the people of all of them
    above: Sequence[list[int]] = ()  # k: what, named beside it, tells that it is meant: its province and country
    around: frozenset[int] = frozenset()  # all of these
    features: dict[str, float] = {}  # what tells how likely the first is meant

    @property
    def named(self) -> bool:
        """Is anything called so?"""
        return self.biggest >= 0


ALONE = np.ones(1)  # the shares of one place
ALONE.flags.writeable = False
NOTHING_BEGINS, BEGINS = NO_NAME = (Name(begins=False), Name(begins=True))


def named(key: str, gazetteer: Gazetteer) -> Name:
    """What the words of this key name in posts. Most name nothing, which takes a microsecond to tell: none are kept."""
    wanted = code(key)
    return _name(wanted, gazetteer) if gazetteer.holds(wanted) else NO_NAME[gazetteer.begins(wanted)]


@lru_cache(KEPT)
def _name(wanted: int, gazetteer: Gazetteer) -> Name:
    """What the words of this code name."""
    begins = gazetteer.begins(wanted)
    places = gazetteer.indices(wanted, plain=False)
    if not len(places):
        return NO_NAME[begins]
    biggest, people = int(places[0]), gazetteer.people(places)
    if len(places) == 1:  # as most: half the time
        over = gazetteer.above(biggest)
        people.flags.writeable = False  # as the others are
        features = _features(float(people[0]), 1.0, gazetteer.is_wide(biggest))
        return Name(begins, biggest, places, people, ALONE, [over], frozenset(over), features)
    above = [gazetteer.above(index) for index in places.tolist()]
    if not gazetteer.is_country(biggest) and (at := _town_of_its_province(biggest, people, above)):
        order = [at, *(i for i in range(len(places)) if i != at)]
        places, people, above = places[order], people[order], [above[i] for i in order]
    first = int(places[0])
    alike = [i == first or i in above[0] or first in over for i, over in zip(places.tolist(), above, strict=True)]
    shares = people / people.sum()
    if gazetteer.is_country(first):  # beside "Missouri" "Mexico" is a town, in a list of countries it is none
        above = [
            over if share >= POSSIBLE and first not in over else [i for i in over if not gazetteer.is_country(i)]
            for over, share in zip(above, shares, strict=True)
        ]
    for kept in (places, people, shares):
        kept.flags.writeable = False  # every find of the name holds them
    share = float(shares[alike].sum())  # a town and its province of one name are one
    features = _features(float(people[0]), share, gazetteer.is_wide(first))
    return Name(begins, biggest, places, people, shares, above, frozenset().union(*above), features)


def meant_beside(name: Name, others: Set[int], gazetteer: Gazetteer) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """The places of a name, their shares, and what tells how likely the first is meant.

    others: the places the rest of the text names. Of this name those that lie in one of them come first.
    """
    if name.around.isdisjoint(others):
        return name.places, name.shares, name.features
    order = np.argsort([others.isdisjoint(over) for over in name.above], kind="stable")
    places = name.places[order]
    return places, name.shares[order], _features(float(name.people[order[0]]), 1.0, gazetteer.is_wide(int(places[0])))


def _features(people: float, share: float, wide: bool) -> dict[str, float]:
    return {"people": math.log10(max(people, 1.0)) - 5, "share": share, "wide": float(wide)}


def _town_of_its_province(biggest: int, people: np.ndarray, above: Sequence[Sequence[int]]) -> int:
    """Where most people of a province live in its town of the same name, that town is meant: Beirut, no governorate.

    people, above: (k,) of each place called so, the biggest first. Returns which of them is that town, 0 if none is.
    """
    least = MOST_LIVE_THERE * people[0]
    return next((at for at, over in enumerate(above) if biggest in over and people[at] >= least), 0)
