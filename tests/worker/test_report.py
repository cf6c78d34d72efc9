"""A worker speaks each second whatever its broker does, and says why it ends."""

from __future__ import annotations

import asyncio
import os
from types import SimpleNamespace

import faust
from faust.types import TP

from streams.worker import app as application
from streams.worker import report
from streams.worker.report import Ends
from streams.worker.watchdog import STALLED

PART = ("posts.raw", 0)


class Consumer:
    """Its answers come when they are given."""

    def __init__(self) -> None:
        self.asked: list[asyncio.Future] = []

    async def highwaters(self, *_: TP) -> dict[TP, int]:
        self.asked.append(asyncio.get_running_loop().create_future())
        return await self.asked[-1]


async def test_a_worker_whose_broker_is_frozen_waits_a_moment_and_takes_the_answer_when_it_comes(monkeypatch):
    monkeypatch.setattr(report, "EVERY_S", 0.01)
    consumer = Consumer()
    app, ends = SimpleNamespace(consumer=consumer), Ends()
    assert await ends.look(app, {PART: 3}) == ({}, {})
    assert await ends.look(app, {PART: 4}) == ({}, {}) and len(consumer.asked) == 1, "one question at a time"
    silent_s = ends.silent_s
    assert silent_s >= 0.02
    consumer.asked[0].set_result({TP(*PART): 9})
    assert await ends.look(app, {PART: 5}) == ({PART: 3}, {PART: 9}), "with the positions it was asked with"
    assert ends.known == {PART: 9} and ends.silent_s < silent_s
    assert await ends.look(app, {PART: 6}) == ({}, {}) and ends.known == {PART: 9}
    consumer.asked[1].cancel()


def test_a_worker_that_does_not_end_in_order_says_so_and_why_before_it_ends(monkeypatch, caplog):
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    application._end_anyway(RuntimeError("the coordinator is gone"))
    application._end_anyway(None)
    assert ended == [STALLED, STALLED]
    told = [record.getMessage() for record in caplog.records if record.levelname == "CRITICAL"]
    assert "it crashed: RuntimeError('the coordinator is gone')" in told[0] and "it was told to end" in told[1]


async def test_one_that_crashed_is_given_less_time_than_one_that_was_told_to_end(monkeypatch):
    given: list[tuple[float, list]] = []

    class Timer:
        def __init__(self, seconds: float, _: object, args: list) -> None:
            given.append((seconds, args))

        def start(self) -> None:
            pass

    async def stopped(_: faust.App) -> None:
        pass

    monkeypatch.setattr(application.threading, "Timer", Timer)
    monkeypatch.setattr(faust.App, "stop", stopped)
    why = RuntimeError("why")
    for crashed, reason in ((False, None), (True, why)):
        app = object.__new__(application.CrisisApp)
        app._crash_reason = reason
        monkeypatch.setattr(application.CrisisApp, "crashed", crashed)
        await app.stop()
    assert given == [(application.STOP_S, [None]), (application.CRASHED_S, [why])]
