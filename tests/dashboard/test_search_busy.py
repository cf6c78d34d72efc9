"""Searches share one thread: more than a few at a time are told to come again, and nobody waits behind them."""

from __future__ import annotations

import asyncio
import time

import pytest

from models.errors import ServiceError
from models.records import Post
from streams.dashboard.app import create_dashboard
from streams.dashboard.routes import SEARCHES
from streams.view.connect import connect
from streams.view.live import LiveView
from tests.dashboard.serving import FedSearcher, frame, settings_for, visiting
from tests.waiting import until


class Slow(FedSearcher):
    """Finds what it should once `go` is set, or breaks."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)
        self.go, self.asked, self.breaks = asyncio.Event(), 0, False

    async def search(self, *wanted: object) -> list:
        self.asked += 1
        await self.go.wait()
        if self.breaks:
            raise ServiceError("search is still loading its encoder")
        return await super().search(*wanted)


@pytest.fixture
async def slow(redis_url):
    """(a client, its searcher)"""
    settings = settings_for(redis_url)
    redis = connect(settings.redis)
    posts = [Post("s1", "people trapped under a roof", time.time(), time.time(), "en", "sms")]
    searcher = Slow(settings, [frame(posts)])
    async with visiting(create_dashboard(settings, LiveView(redis, settings), searcher)) as client:
        yield client, searcher
    await redis.aclose()


def search(client, text="a roof"):
    return client.get("/api/search", params={"text": text})


async def full(client, searcher):
    """As many searches as may wait."""
    asked = searcher.asked + SEARCHES
    waiting = [asyncio.create_task(search(client)) for _ in range(SEARCHES)]
    await until(lambda: searcher.asked == asked)
    return waiting


async def test_one_search_too_many_is_told_when_to_come_again_and_the_others_are_answered(slow):
    client, searcher = slow
    waiting = await full(client, searcher)
    for _ in range(3):
        refused = await search(client)
        assert refused.status_code == 429 and int(refused.headers["retry-after"]) > 0
        assert "try again" in refused.text
    assert searcher.asked == SEARCHES, "what is refused reaches no encoder"
    assert (await client.get("/api/alerts")).status_code == 200, "all else is served meanwhile"
    searcher.go.set()
    answers = await asyncio.gather(*waiting)
    assert [answer.status_code for answer in answers] == [200] * SEARCHES
    assert [hit["id"] for answer in answers for hit in answer.json()["hits"]] == ["s1"] * SEARCHES
    assert (await search(client)).status_code == 200


async def test_a_search_that_fails_gives_its_place_back_and_one_without_words_takes_none(slow):
    client, searcher = slow
    searcher.breaks = True
    waiting = await full(client, searcher)
    searcher.go.set()
    assert [answer.status_code for answer in await asyncio.gather(*waiting)] == [503] * SEARCHES
    searcher.breaks = False
    assert [(await search(client, " ")).status_code for _ in range(2 * SEARCHES)] == [400] * 2 * SEARCHES
    assert (await search(client)).status_code == 200
