"""A source that lives says so, one that ends in order takes leave, and one that dies is missed."""

from __future__ import annotations

import asyncio
import os

import pytest

from models.errors import ServiceError
from streams.config import load_settings
from streams.ingest.presence import present, present_beside
from streams.view.connect import connect
from streams.view.live import LiveView
from tests.waiting import PATIENCE_S, wait_until


@pytest.fixture
def settings(embedded_redis_url):
    return load_settings(redis={"url": embedded_redis_url})


async def sources(settings):
    async with connect(settings.redis) as redis:
        return await LiveView(redis, settings).sources()


async def said(settings, name, what):
    """Return once it has said so."""
    async with asyncio.timeout(PATIENCE_S):
        while (told := (await sources(settings)).get(name)) is None or told.message != what:
            pass


async def test_it_speaks_of_its_trouble_and_takes_leave_at_the_end(settings):
    trouble = ["the server is away"]
    async with present(settings, "bluesky", lambda: trouble[-1]):
        await said(settings, "bluesky", "the server is away")
        trouble.append("")
        await said(settings, "bluesky", "")
    assert await sources(settings) == {}


async def test_one_that_fails_leaves_its_last_word_so_that_it_is_missed(settings):
    with pytest.raises(ServiceError):
        async with present(settings, "http"):
            await said(settings, "http", "")
            raise ServiceError("the broker is gone")
    assert set(await sources(settings)) == {"http"}


def test_a_source_that_blocks_speaks_from_beside(settings):
    with present_beside(settings, "stdin"):
        wait_until(lambda: "stdin" in asyncio.run(sources(settings)))
    assert asyncio.run(sources(settings)) == {}


def test_without_redis_a_source_works_all_the_same(unused_tcp_port):
    away = load_settings(redis={"url": f"redis://127.0.0.1:{unused_tcp_port}/0"})
    with present_beside(away, "file posts.jsonl"):
        pass


def test_where_the_password_of_redis_is_for_others_to_read_a_source_works_all_the_same(tmp_path, caplog):
    kept = load_settings(redis={"password_file": str(tmp_path / "not for it")})
    with present_beside(kept, "stdin"):
        pass
    assert "the page cannot know of stdin" in caplog.text


def test_a_file_whose_name_is_no_text_is_told_with_a_mark_in_its_place(settings):
    with present_beside(settings, "file " + os.fsdecode(b"caf\xe9.jsonl")):
        wait_until(lambda: "file caf\ufffd.jsonl" in asyncio.run(sources(settings)))
    assert asyncio.run(sources(settings)) == {}


async def test_who_leaves_while_redis_has_the_word_and_has_not_answered_is_not_missed(settings, monkeypatch):
    there, put = asyncio.Event(), LiveView.put_source

    async def put_and_wait(view, *said):
        await put(view, *said)
        there.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(LiveView, "put_source", put_and_wait)
    async with present(settings, "stdin"):
        await there.wait()
        assert "stdin" in await sources(settings)
    assert await sources(settings) == {}


async def test_a_word_that_cannot_be_said_is_logged_and_ends_no_source(settings, caplog):
    asked = asyncio.Event()

    def trouble() -> str:
        asked.set()
        raise ValueError("half a pair")

    async with present(settings, "bluesky", trouble):
        await asked.wait()
    assert "presence of bluesky" in caplog.text and "half a pair" in caplog.text
