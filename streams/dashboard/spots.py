"""Where the posts of the page are: what its map shows. Pure, but for the table of places.

A post stands where it says it is, else at the place it most likely names: a name is no position, so each spot tells how
far its place reaches.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from models.areas import Area, area_of
from models.errors import QueryError
from models.places.gazetteer import Gazetteer, box_around
from models.records import Alert, Geo, NamedPlace
from streams.dashboard.filters import Filter
from streams.dashboard.page_model import Kept, fitting
from streams.dashboard.readings import Said, readings

__all__ = ["Spot", "Spots", "spots"]

CELL = 0.02  # degrees, some two kilometres: posts that say where they are stand together within so much
MOST = 500  # spots told: those with most posts


class Spot(Struct, frozen=True, omit_defaults=True):
    """Posts in one place."""

    area: str  # what to ask for to see them (`Filter.area`)
    lat: float  # degrees WGS 84: the middle of a place, or of where posts say they are
    lon: float
    kinds: dict[str, int]  # how many posts of each kind, as people corrected them
    name: str = ""  # of the place they name; none where they say where they are
    confidence: float = 1.0  # that this place is meant, mean of the posts
    radius_km: float = 0.0  # how far the place reaches
    wide: bool = False  # a country or a province: its middle says little


class Spots(Struct, frozen=True, omit_defaults=True):
    """Answer of /api/spots. placed: posts that are somewhere, of the MOST biggest spots or not; standing: all that fit
    and stand. box: the area that was asked for, south, west, north, east; problem: why there is none."""

    spots: list[Spot]
    placed: int
    standing: int
    box: tuple[float, ...] | None = None
    problem: str = ""


def spots(kept: Sequence[Kept], wanted: Filter, said: Said) -> Spots:
    """Where those posts are that fit all that is wanted but its area: a map shows what lies beside it too."""
    everywhere = replace(wanted, area="")
    fit, standing = fitting(kept, everywhere, said)
    by_place: dict[NamedPlace | tuple[int, int], list[Alert]] = {}
    for alert, _, _ in fit:
        if not everywhere.stands(alert, said):
            continue
        if alert.post.geo is not None:
            by_place.setdefault(_cell(alert.post.geo), []).append(alert)
        elif alert.post.places:
            by_place.setdefault(_place(alert.post.places[0]), []).append(alert)
    biggest = sorted(by_place.items(), key=lambda item: -len(item[1]))[:MOST]
    placed = sum(map(len, by_place.values()))
    found = Spots([_spot(place, alerts, said) for place, alerts in biggest], placed, standing)
    if not wanted.area:
        return found
    area = area_of(wanted.area)
    return replace(found, box=area.box) if isinstance(area, Area) else replace(found, problem=area)


def _cell(geo: Geo) -> tuple[int, int]:
    return math.floor(geo.lat / CELL), math.floor(geo.lon / CELL)


def _place(named: NamedPlace) -> NamedPlace:
    """The place alone: not how this post wrote it, nor how sure that is."""
    return NamedPlace("", named.name, named.kind, named.lat, named.lon, named.radius_km, 1.0)


def _spot(place: NamedPlace | tuple[int, int], alerts: Sequence[Alert], said: Said) -> Spot:
    kinds = dict(Counter((readings(alert, said).main or alert.query_id).partition(".")[0] for alert in alerts))
    if isinstance(place, NamedPlace):
        sure = round(sum(alert.post.places[0].confidence for alert in alerts) / len(alerts), 2)
        wide = place.kind != "town"
        return Spot(asked_as(place), place.lat, place.lon, kinds, place.name, sure, place.radius_km, wide)
    at = [alert.post.geo for alert in alerts if alert.post.geo is not None]
    lat, lon = (round(sum(where) / len(at), 3) for where in zip(*((geo.lat, geo.lon) for geo in at), strict=True))
    south, west = (number * CELL for number in place)
    return Spot(_told((south, west, min(south + CELL, 90.0), min(west + CELL, 180.0))), lat, lon, kinds)


@lru_cache(maxsize=2048)
def asked_as(place: NamedPlace) -> str:
    """What asks for the area of a place: its name where that means no other, or with its kind, else its box."""
    name, _, beside = place.name.partition(",")
    for asked in (place.name, f"{name} ({place.kind}),{beside}"):
        with contextlib.suppress(QueryError):  # several are called so
            found, _ = Gazetteer.bundled().choose(asked)
            if (found.kind, found.lat, found.lon) == (place.kind, place.lat, place.lon):
                return asked
    return _told(box_around(place.lat, place.lon, place.radius_km))


def _told(box: Iterable[float]) -> str:
    return ",".join(f"{degrees:.4f}".rstrip("0").rstrip(".") for degrees in box)
