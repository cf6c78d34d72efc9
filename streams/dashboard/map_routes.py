"""What the page's map asks for.

| path | answers |
|---|---|
| /api/spots?(filter) | Spots: where the posts are that fit all but the filter's area, and what area that is |
| /api/area?area | {"box": south, west, north, east} of a place by name, or {"problem": why it is none} |
| /api/towns?area&n | [Town] in an area, those with most people first: names to find one's way by |
"""

from __future__ import annotations

import asyncio

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from models.areas import Area, area_of
from models.errors import QueryError
from models.places.gazetteer import Gazetteer
from streams.dashboard.asked import json_of, number
from streams.dashboard.feed import Feed
from streams.dashboard.filters import Filter
from streams.dashboard.lessons import Lessons
from streams.dashboard.spots import Spots, spots

__all__ = ["MapRoutes"]

SHOWN_TOWNS, MOST_TOWNS = 40, 200


class Town(Struct, frozen=True):
    """A town by name, and where it is: degrees WGS 84."""

    name: str
    lat: float
    lon: float


class MapRoutes:
    """The handlers and what they share. Everything is looked for in threads."""

    def __init__(self, feed: Feed, lessons: Lessons) -> None:
        self.feed, self.lessons = feed, lessons

    def table(self) -> list[Route]:
        return [Route("/api/spots", self.spots), Route("/api/area", self.area), Route("/api/towns", self.towns)]

    async def spots(self, request: Request) -> Response:
        board = self.feed.board
        wanted, kept = board.asked(Filter.of(request.query_params)), board.kept()
        found: Spots = await asyncio.to_thread(spots, kept, wanted, self.lessons.labels)
        return json_of(found)

    async def area(self, request: Request) -> Response:
        found = await asyncio.to_thread(area_of, request.query_params.get("area", "")[:200])
        return json_of({"box": found.box} if isinstance(found, Area) else {"problem": found})

    async def towns(self, request: Request) -> Response:
        most = number(request, "n", SHOWN_TOWNS, MOST_TOWNS)
        return json_of(await asyncio.to_thread(_towns, request.query_params.get("area", "")[:200], most))


def _towns(asked: str, most: int) -> list[Town]:
    area = area_of(asked)
    if not isinstance(area, Area):
        raise QueryError(area)
    return [Town(place.name, place.lat, place.lon) for place in Gazetteer.bundled().towns(area.box, most)]
