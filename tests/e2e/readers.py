"""Everybody who reads what the pipeline tells: the page with its search and events, and followers of each format."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import httpx

from tests.e2e.harness import Pipeline

FOLLOWERS = ("json", "cap", "geojson", "text")


class Readers:
    """A dashboard of its own process, and a follower for each format, from the beginning."""

    def __init__(self, live: Pipeline, search: str) -> None:
        self._live, self._search, self._url, self._begin = live, search, "", ""

    async def start(self) -> None:
        """Return when the page answers."""
        start, env = self._live.children.start, self._live.env
        await start("dashboard", ["streams.cli", "dashboard", "--port", "0"], env)
        for form in FOLLOWERS:
            args = ["streams.cli", "alerts", "--follow", "--from-beginning", "--format", form]
            await start(form, args, env)

        async def address() -> re.Match | None:
            return re.search(r"dashboard: (\S+)", self._said("dashboard"))

        self._url = (await self._live.become(address))[1]
        self._begin = (await self._get("/api/state")).json()["event_id"]

    async def that_hold(self, words: Sequence[bytes]) -> list[str]:
        """Which of them still say one of the words; of a follower's lines the last on each alert counts."""
        found = [path for path in self._paths() if _any(words, (await self._get(path)).content)]
        found += ["/events, from the beginning"] * _any(words, await self._events())
        for form in FOLLOWERS:
            lines = self._said(form).splitlines()
            last = {name: line for line in lines if (name := _alert_of(form, line))} if form != "text" else {}
            found += [form] * any(_any(words, line.encode()) for line in last.values())
        return found

    def lines(self, form: str) -> list[str]:
        """All that a follower was told."""
        return self._said(form).splitlines()

    def _paths(self) -> tuple[str, ...]:
        return "/", "/api/state", "/api/alerts?n=1000", "/api/clusters?n=1000", f"/api/search?text={self._search}&k=50"

    async def _get(self, path: str) -> httpx.Response:
        async with httpx.AsyncClient(base_url=self._url, timeout=60.0) as client:
            return await client.get(path)

    async def _events(self) -> bytes:
        """What somebody is told who comes back after having seen nothing, up to the first figures."""
        told, headers = b"", {"Last-Event-ID": self._begin}
        async with httpx.AsyncClient(base_url=self._url, timeout=60.0) as client:
            async with client.stream("GET", "/events", headers=headers) as stream:
                async for piece in stream.aiter_bytes():
                    told += piece
                    if b"event: stats" in told:
                        break
        return told

    def _said(self, name: str) -> str:
        return (self._live.children.log_dir / f"{name}.log").read_text("utf-8", "replace")


def _any(words: Sequence[bytes], text: bytes) -> bool:
    return any(word in text for word in words)


def _alert_of(form: str, line: str) -> str:
    """Which alert a line is about; empty where it is about none."""
    if form == "cap":
        found = re.search(r"<identifier>([^.<]+)\.", line)
        return found[1] if found else ""
    try:
        told = json.loads(line)
    except ValueError:
        return ""
    return told["id"] if form == "geojson" else told["alert_id"]
