"""A worker speaks each second whatever its broker does, and says why it ends."""

from __future__ import annotations

import asyncio
import os
from types import SimpleNamespace

import faust
import pytest
from faust.types import TP

from streams.config import load_settings
from streams.view.health import Known, judge
from streams.view.status import WorkerStatus
from streams.worker import app as application
from streams.worker import report
from streams.worker.report import Ends, _trouble
from streams.worker.watchdog import STALLED

PART = ("posts.raw", 0)
UNTROUBLED = SimpleNamespace(trouble="")
WELL = SimpleNamespace(vault_trouble="", takeover=UNTROUBLED, sender=UNTROUBLED)  # but for its broker


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
    now = 100.0
    app, ends = SimpleNamespace(consumer=consumer), Ends(lambda: now)
    assert await ends.look(app, {PART: 3}) == ({}, {})
    assert await ends.look(app, {PART: 4}) == ({}, {}) and len(consumer.asked) == 1, "one question at a time"
    now += 4
    assert ends.silent_s == 4.0
    consumer.asked[0].set_result({TP(*PART): 9})
    assert await ends.look(app, {PART: 5}) == ({PART: 3}, {PART: 9}), "with the positions it was asked with"
    now += 4
    assert ends.known == {PART: 9} and ends.silent_s == 0.0, "it was not asked since"
    assert await ends.look(app, {PART: 6}) == ({}, {}) and ends.known == {PART: 9}
    consumer.asked[1].cancel()


async def test_what_the_broker_answers_within_its_time_is_no_silence_and_what_it_refuses_is(monkeypatch):
    """An answer waits for the fetch before it, 1.5 s of a look each second; a broker that dies is told after three."""
    now, answers = 100.0, [{PART: 9}, {PART: 9}, None, None]

    async def answered(*_: object) -> dict | None:
        nonlocal now
        now += 2.8
        return answers.pop(0)

    monkeypatch.setattr(report, "_ends", answered)
    ends = Ends(lambda: now)
    for silent_s in (0.0, 0.0, 2.8, 5.6):
        assert not _trouble(WELL, ends, None)
        await ends.look(SimpleNamespace(), {PART: 3})
        assert ends.silent_s == pytest.approx(silent_s)
    assert _trouble(WELL, ends, None) == "the broker does not answer it"


async def test_a_broker_that_dies_is_told_within_four_seconds_so_that_the_page_says_it_within_five(monkeypatch):
    now, loop = 100.0, asyncio.get_running_loop()

    async def a_second_passes(_: object, timeout: float) -> tuple[set, set]:
        nonlocal now
        now += timeout
        return set(), set()

    monkeypatch.setattr(asyncio, "wait", a_second_passes)
    monkeypatch.setattr(report, "_ends", lambda *_: asyncio.wait_for(loop.create_future(), None))
    ends, looked = Ends(lambda: now), 0
    died = now - report.EVERY_S  # right after it answered the last look
    while not _trouble(WELL, ends, None):
        await ends.look(SimpleNamespace(), {PART: 3})
        looked += 1
    assert now - died <= 4.0 and looked == 3
    ends._asked.cancel()


def a_worker(tell, **more):
    """An app whose runtime hands its words to `tell`, and stands at 3."""
    work = SimpleNamespace(computing=False, returned=dict, turns=dict, longest_s=lambda _: 0.0)
    runtime = SimpleNamespace(
        work=work,
        tell=tell,
        vault_trouble="",
        pace=SimpleNamespace(told=lambda _: None),
        encoder=SimpleNamespace(version="v"),
        takeover=UNTROUBLED,
        sender=UNTROUBLED,
        bars=SimpleNamespace(held_at=lambda _: {"need.water": 2}),
        serving=SimpleNamespace(current=SimpleNamespace(name="v")),
    )
    runtime.__dict__.update(more)
    consumer = SimpleNamespace(stands=lambda: {TP(*PART): 3})
    return SimpleNamespace(should_stop=False, rebalancing=False, runtime=runtime, consumer=consumer)


async def reports(app, settings) -> None:
    async with asyncio.timeout(10):
        await report.report_forever(app, settings, ["normalise"], SimpleNamespace(beat=lambda: None), None, {})


async def test_a_new_worker_says_that_it_is_there_before_it_asks_the_broker_how_far_behind_it_is(monkeypatch):
    happened: list[str] = []

    async def asked(*_: object) -> dict:
        happened.append("asked")
        return {PART: 9}

    async def tell(status: object) -> None:
        happened.append(f"told {status.lag}")
        app.should_stop = happened.count("asked") == 1 and len(happened) == 3

    monkeypatch.setattr(report, "EVERY_S", 0.01)
    monkeypatch.setattr(report, "_ends", asked)
    app = a_worker(tell)
    await reports(app, load_settings())
    assert happened == ["told {'posts.raw': 0}", "asked", "told {'posts.raw': 6}"]


@pytest.mark.parametrize("trouble", ["", "the vault does not answer"])
async def test_a_worker_whose_vault_is_away_says_so_reads_nothing_and_is_not_ended_for_it(monkeypatch, trouble):
    words, ended = [], []

    async def nine(*_: object) -> dict:
        return {PART: 9}

    async def tell(status: WorkerStatus) -> None:
        words.append(status)
        app.should_stop = len(words) == 20 or bool(ended)

    async def end(*_: object) -> None:
        ended.append(words[-1].stands_s)

    async def answers(_: object) -> bool:
        return True

    for name, value in (("EVERY_S", 0.01), ("_ends", nine), ("_end_stalled", end), ("_broker_answers", answers)):
        monkeypatch.setattr(report, name, value)
    settings = load_settings()
    settings = settings.model_copy(update={"worker": settings.worker.model_copy(update={"stall_s": 0.05})})
    app = a_worker(tell, vault_trouble=trouble)
    await reports(app, settings)
    assert bool(ended) != bool(trouble), "who waits for nothing is ended"
    agents = {"normalise": ("posts.raw", 1)}
    health = judge(Known(0.0, {"w": words[-1]}, lag={"posts.raw": 6}), agents)
    assert words[-1].message == trouble and (health.level == "down") == bool(trouble)
    assert words[-1].held == {"need.water": 2}, "what its bars hold back"


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
