"""A worker's Redis may be frozen or gone for any time: what was asked of it is answered when it is back."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
from redis.exceptions import RedisError

from models.errors import ServiceError
from streams.config import load_settings
from streams.embedded.redis import EmbeddedRedis, find_redis_server
from streams.view import connect as connecting
from streams.view.attempts import Attempts
from streams.view.connect import connect
from tests.services.needs import lacking


@pytest.fixture
def server():
    try:
        found = find_redis_server()
    except ServiceError as error:
        lacking(error)
    with EmbeddedRedis(server=found) as running:
        yield running


async def test_a_frozen_redis_is_waited_for(server, monkeypatch):
    monkeypatch.setattr(connecting, "ANSWER_S", 0.2)
    client = connect(load_settings(redis={"url": server.url}).redis, patient=True)
    pid = (await client.info("server"))["process_id"]
    os.kill(pid, signal.SIGSTOP)
    asked = asyncio.create_task(client.set("during", 2))
    await asyncio.sleep(1.5)
    assert not asked.done()
    os.kill(pid, signal.SIGCONT)
    assert await asked
    await client.aclose()


async def test_a_redis_that_is_full_is_waited_for(server):
    settings = load_settings(redis={"url": server.url}).redis
    client, other = connect(settings, patient=True), connect(settings)
    await other.config_set("maxmemory-policy", "noeviction")
    await other.config_set("maxmemory", 1)
    with pytest.raises(RedisError):
        await other.set("x", 1)
    asked = asyncio.create_task(client.set("x", 1))
    await asyncio.sleep(0.5)
    assert not asked.done()
    await other.config_set("maxmemory", 0)
    assert await asked
    await client.aclose()
    await other.aclose()


async def test_a_redis_whose_disk_is_full_is_waited_for(server):
    settings = load_settings(redis={"url": server.url}).redis
    client, other = connect(settings, patient=True), connect(settings)
    await other.config_set("save", "1 1")  # with a save that fails, every write is refused
    Path((await other.config_get("dir"))["dir"], "dump.rdb", "in the way").mkdir(parents=True)
    await other.set("first", 1)
    await other.bgsave()
    while (await other.info("persistence"))["rdb_last_bgsave_status"] == "ok":
        await asyncio.sleep(0.05)
    with pytest.raises(RedisError, match="MISCONF"):
        await other.set("x", 1)
    asked = asyncio.create_task(client.set("x", 1))
    await asyncio.sleep(0.5)
    assert not asked.done()
    await other.config_set("stop-writes-on-bgsave-error", "no")
    assert await asked
    await other.config_set("save", "")  # or it would not end before it has saved
    await client.aclose()
    await other.aclose()


async def test_asking_a_frozen_redis_again_and_again_does_not_count_as_dying_on_a_record(server, monkeypatch):
    monkeypatch.setattr(connecting, "ANSWER_S", 0.1)
    settings = load_settings(redis={"url": server.url})
    client = connect(settings.redis, patient=True)
    pid = (await client.info("server"))["process_id"]
    attempts, place = Attempts(client, settings), ("embed", 0, 7)
    await attempts.begin([("embed", 0, 6)])  # the script is known
    os.kill(pid, signal.SIGSTOP)
    asked = asyncio.create_task(attempts.begin([place]))
    await asyncio.sleep(1.5)
    os.kill(pid, signal.SIGCONT)
    assert await asked == [1]
    assert await Attempts(client, settings).begin([place]) == [2], "somebody else begins it: that counts"
    await client.aclose()
