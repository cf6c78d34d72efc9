"""What the page lists, to be taken along: every alert kept that fits the filter, as a file. For the role label: no
deletion reaches what was taken along.

| path | answers |
|---|---|
| /api/alerts.csv?(filter) | CSV with HXL hashtags (outputs/table.py) |
| /api/alerts.geojson?(filter) | a FeatureCollection (outputs/geojson.py) |

Both with what people said of each, who and when (outputs/judged.py).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from models.moments import rfc3339
from models.records import Alert
from streams.dashboard.asked import filter_of, require
from streams.dashboard.feed import Feed
from streams.dashboard.lessons import Lessons
from streams.dashboard.page_model import fitting, without_author
from streams.outputs.geojson import collection_lines
from streams.outputs.table import MARK, csv_lines

__all__ = ["Downloads"]


class Downloads:
    """The handlers and what they share."""

    def __init__(self, feed: Feed, lessons: Lessons) -> None:
        self.feed, self.lessons = feed, lessons

    def table(self) -> list[Route]:
        return [Route("/api/alerts.csv", self.csv), Route("/api/alerts.geojson", self.geojson)]

    async def csv(self, request: Request) -> Response:
        require(request, "label")
        told = await asyncio.to_thread(_joined, csv_lines(await self._listed(request), self.lessons.labels))
        return _file(MARK + told, "text/csv; charset=utf-8", "csv")

    async def geojson(self, request: Request) -> Response:
        require(request, "label")
        alerts = reversed(await self._listed(request))
        told = await asyncio.to_thread(_joined, collection_lines(alerts, self.lessons.labels))
        return _file(told, "application/geo+json", "geojson")

    async def _listed(self, request: Request) -> list[Alert]:
        """Newest first, as the page shows them: without authors and links that are none."""
        board = self.feed.board
        found, _ = await asyncio.to_thread(
            fitting, board.kept(), board.asked(await filter_of(request)), self.lessons.labels
        )
        now = (board.alert(alert.alert_id) for alert, _, _ in found)  # what was withdrawn meanwhile is not taken along
        return [without_author(alert) for alert in now if alert is not None and alert.status == "active"]


def _joined(lines: Iterable[str]) -> str:
    return "\n".join([*lines, ""])


def _file(text: str, kind: str, ending: str) -> Response:
    name = f"alerts-{rfc3339(time.time())[:19].replace(':', '')}Z.{ending}"
    return Response(text, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})
