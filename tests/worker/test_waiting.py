"""Posts that wait: a worker that cannot get at them says so."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from aiokafka.errors import GroupAuthorizationFailedError

from streams.broker.backoff import end_task
from streams.config import load_settings
from streams.worker import waiting as module
from streams.worker.waiting import Waiting
from tests.waiting import until


async def test_a_worker_that_may_not_read_what_waits_says_so_until_it_may(monkeypatch):
    allowed = asyncio.Event()

    class Consumer:
        def __init__(self, *_: object, **__: object) -> None:
            pass

        async def stop(self) -> None:
            pass

        async def start(self) -> None:
            if not allowed.is_set():
                raise GroupAuthorizationFailedError("crisis-waiting")

        def assignment(self) -> set:
            return set()

        async def getmany(self, *_: object, **__: object) -> dict:
            await asyncio.sleep(0)
            return {}

    monkeypatch.setattr(module, "AIOKafkaConsumer", Consumer)
    monkeypatch.setattr(module, "AWAY_S", 0.0)
    made = Waiting(SimpleNamespace(settings=load_settings(), view=None), None)
    assert made.trouble == ""
    task = asyncio.create_task(made.run())
    try:
        await until(lambda: made.trouble)
        assert "not read" in made.trouble and "crisis-waiting" in made.trouble
        monkeypatch.setattr(module, "AWAY_S", 60.0)  # moments are not told
        assert made.trouble == ""
        monkeypatch.setattr(module, "AWAY_S", 0.0)
        allowed.set()
        await until(lambda: not made.trouble)
    finally:
        await end_task(task)
