"""Alerts in an area: which of them say they are there, or name a place there.

    area_of("Jacmel"), area_of("18.1,-72.7,18.4,-72.4")      → Area(box, reach_km)

A query's own area (models/filters.py) reads the post, and takes of several places of one name the one that lies there;
here the alert is read as it stands, with the places that it tells.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from models.errors import QueryError
from models.filters import area_problem, located
from models.places.gazetteer import radius_km, within
from models.records import AlertPost

__all__ = ["Area", "area_of", "lies_there"]


ROUNDED_KM = 0.1  # alerts tell how far a place reaches to so much


class Area(NamedTuple):
    """Where posts are asked for."""

    box: tuple[float, ...]  # south, west, north, east, degrees WGS 84; west > east crosses the date line
    reach_km: float  # half its longer side


@lru_cache(maxsize=256)
def area_of(asked: str) -> Area | str:
    """What is asked for by the name of a place, or by four numbers; else what is wrong with it.

    The first time it reads the table of places, which takes a moment: on an event loop ask in a thread.
    """
    try:
        box = located(asked)["area"]
    except QueryError as error:
        return str(error)
    return area_problem(box) or Area(tuple(box), radius_km(box))


def lies_there(area: Area, post: AlertPost) -> bool:
    """Does a post say it is in the area, or name a place there? A country or province wider than it is not in it."""
    if post.geo is not None:
        return within(area.box, post.geo.lat, post.geo.lon)
    reach = area.reach_km + ROUNDED_KM
    return any(
        within(area.box, place.lat, place.lon) and (place.kind == "town" or place.radius_km <= reach)
        for place in post.places
    )
