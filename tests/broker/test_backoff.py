"""Pauses between connections: longer while none stands, from the start again after one that stood."""

from __future__ import annotations

import asyncio

import pytest

from streams.broker.backoff import end_task, keep_up
from tests.waiting import PATIENCE_S

FIRST_S, LONGEST_S = 0.001, 0.02


class Enough(Exception):
    """Ends the test."""


async def pauses(plan: str) -> list[float]:
    """The pauses told for sessions that fail (f) or stand for a while and then break (s)."""
    left, heard = list(plan), []

    async def session(good):
        if not left:
            raise Enough
        if left.pop(0) == "s":
            good()
        raise OSError("gone")

    with pytest.raises(Enough):
        await keep_up(session, (OSError,), lambda error, pause_s: heard.append(pause_s), FIRST_S, LONGEST_S)
    return heard


async def test_pauses_grow_to_their_bound_and_no_further():
    heard = await pauses("f" * 12)
    assert len(heard) == 12 and heard[0] <= FIRST_S and max(heard) <= LONGEST_S
    assert max(heard[6:]) > FIRST_S  # 2^6 times the first bound is beyond the longest: one of six draws is above 1 / 20


async def test_after_a_session_that_stood_pauses_begin_anew():
    heard = await pauses("ffffffff" + "s" + "f" + "s")
    assert heard[8] == FIRST_S and heard[9] <= FIRST_S and heard[10] == FIRST_S


async def test_what_is_no_trouble_of_a_connection_ends_it():
    async def session(good):
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        await keep_up(session, (OSError,), lambda *told: None)


@pytest.mark.parametrize("stands", [False, True])
async def test_a_cancellation_that_a_library_turned_into_its_own_answer_ends_it_all_the_same(stands):
    """As `asyncio.wait_for` in Python 3.11 does where both come in one moment."""
    begun = asyncio.Event()

    async def session(good):
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not stands:
                raise OSError("refused") from None
        good()
        await asyncio.Event().wait()

    task = asyncio.create_task(keep_up(session, (OSError,), lambda error, pause_s: None, FIRST_S, LONGEST_S))
    await begun.wait()
    task.cancel()
    await asyncio.wait([task], timeout=PATIENCE_S)
    assert task.cancelled()


async def test_who_is_cancelled_while_another_task_ends_is_cancelled():
    """A search that was dropping a window when the dashboard stopped went on for ever, and so did the dashboard."""
    begun, cleared, over = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow_to_end() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            cleared.set()
            await over.wait()

    slow = asyncio.create_task(slow_to_end())
    await begun.wait()
    waiting = asyncio.create_task(end_task(slow))
    await cleared.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    over.set()
    await asyncio.wait({slow})
    assert slow.cancelled()


async def test_the_error_of_a_task_that_is_ended_is_nobody_elses():
    async def fails() -> None:
        raise ValueError("mine")

    task = asyncio.create_task(fails())
    await asyncio.wait({task})
    await end_task(task)
