"""A vault that is away when a worker starts is told at once; one that goes later is told, and waited for."""

from __future__ import annotations

import os
import signal

import pytest
from redis.asyncio import Redis

from models.errors import ServiceError
from streams.config import load_settings
from streams.embedded.redis import EmbeddedRedis
from streams.view import vault as vaults
from streams.worker import runtime
from streams.worker.runtime import AWAY, Runtime
from tests.waiting import until


@pytest.fixture
def server():
    with EmbeddedRedis(password="hunter2") as running:
        yield running


@pytest.fixture
async def worker(redis_url, tmp_path, monkeypatch):
    """worker(vault_url) → a Runtime that has not started, and needs no broker until it has reached the vault."""
    monkeypatch.setattr(runtime, "require_topics", lambda _: None)
    (tmp_path / "key").write_text("k" * 40)

    made: list[Runtime] = []

    def make(vault_url: str) -> Runtime:
        private = {"key_file": tmp_path / "key", "vault_url": vault_url}
        made.append(Runtime(load_settings(redis={"url": redis_url}, privacy=private), reads_posts=False))
        return made[-1]

    yield make
    for one in made:
        await one.stop()


async def test_no_worker_starts_without_its_vault_or_with_the_wrong_password_and_says_why(worker, server, monkeypatch):
    monkeypatch.setattr(vaults, "ANSWERS_S", 0.5)
    async with Redis.from_url(server.url) as admin:
        pid = (await admin.info("server"))["process_id"]
    os.kill(pid, signal.SIGSTOP)
    try:
        frozen, strange = server.url, server.url.replace("hunter2", "hunter3")
        for url, why in (("redis://127.0.0.1:1/0", "refused|Connect call failed"), (frozen, "no answer")):
            with pytest.raises(ServiceError, match=rf"no vault at 127\S+ \(.*({why}).*CRISIS_PRIVACY__VAULT_URL"):
                await worker(url).start()
    finally:
        os.kill(pid, signal.SIGCONT)
    with pytest.raises(ServiceError, match="no vault at 127.*(WRONGPASS|invalid)") as told:
        await worker(strange).start()
    assert "hunter" not in str(told.value)


async def test_a_vault_that_goes_is_told_once_and_so_is_that_it_came_back(worker, server, monkeypatch, caplog):
    monkeypatch.setattr(vaults, "ANSWERS_S", 0.2)
    monkeypatch.setattr(runtime, "LOOK_S", 0.01)
    async with Redis.from_url(server.url) as admin:
        pid = (await admin.info("server"))["process_id"]
        made = worker(server.url)
        await made._reach_vault()
        os.kill(pid, signal.SIGSTOP)
        try:
            await until(lambda: made.vault_trouble == AWAY)
        finally:
            os.kill(pid, signal.SIGCONT)
        await until(lambda: not made.vault_trouble)
        await admin.config_set("maxmemory-policy", "noeviction")
        await admin.config_set("maxmemory", 1)  # full: it answers, and keeps nothing
        await until(lambda: made.vault_trouble == AWAY)
        await admin.config_set("maxmemory", 0)
        await until(lambda: not made.vault_trouble)
    said = [r.getMessage() for r in caplog.records if "the vault" in r.getMessage()]
    assert len(said) == 4 and said[0].startswith(AWAY) and said[1] == said[3] == "the vault answers again"
