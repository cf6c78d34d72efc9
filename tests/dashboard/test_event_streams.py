"""Streams of events over real connections: packed, and only so many of one person."""

from __future__ import annotations

import asyncio
import contextlib

import httpx
import httpx_sse

from tests.dashboard.serving import served, settings_for
from tests.waiting import PATIENCE_S

TOKENS = {"ana": "ana-has-sixteen-letters", "bob": "bob-has-sixteen-letters"}


def settings_of(redis_url: str, tmp_path):
    path = tmp_path / "tokens"
    path.write_text("".join(f"{name} look {token}\n" for name, token in TOKENS.items()))
    return settings_for(redis_url, token_file=str(path))


def client_of(name: str, url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, timeout=PATIENCE_S, headers={"Authorization": f"Bearer {TOKENS[name]}"})


async def test_a_person_opens_so_many_streams_and_others_theirs_and_a_closed_one_is_room_again(
    redis_url, tmp_path, monkeypatch
):
    monkeypatch.setattr("streams.dashboard.feed.MOST_OWN", 2)
    with served(settings_of(redis_url, tmp_path)) as server:
        async with client_of("ana", server.url) as ana, client_of("bob", server.url) as bob:
            async with contextlib.AsyncExitStack() as bobs:
                async with contextlib.AsyncExitStack() as anas:
                    for client, stack in ((ana, anas), (ana, anas), (bob, bobs)):
                        stream = await stack.enter_async_context(client.stream("GET", "/events"))
                        assert stream.status_code == 200
                    refused = await ana.get("/events")
                    assert refused.status_code == 429 and "2 pages of ana" in refused.text
                    assert int(refused.headers["retry-after"]) > 0
                    assert (await ana.get("/api/state")).status_code == 200
                async with asyncio.timeout(PATIENCE_S):
                    while True:
                        async with ana.stream("GET", "/events") as again:
                            if again.status_code == 200:
                                break
                        await asyncio.sleep(0.05)


async def test_events_are_packed_for_who_takes_gzip_and_read_one_by_one(redis_url, tmp_path):
    with served(settings_of(redis_url, tmp_path)) as server:
        for takes in ("gzip", "identity"):
            async with client_of("ana", server.url) as ana:
                packed = {"accept-encoding": takes}
                async with httpx_sse.aconnect_sse(ana, "GET", "/events", headers=packed) as source:
                    assert source.response.headers.get("content-encoding", "identity") == takes
                    events = source.aiter_sse()
                    for _ in range(3):
                        assert "health" in (await anext(events)).json()
