"""The one back-off: what is tried until it is done, and what goes on for ever although connections break."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential

__all__ = ["Good", "end_task", "keep_up", "stop_if_cancelled", "until_done"]

Good = Callable[[], None]
Told = Callable[[BaseException, float], None]


async def keep_up(
    session: Callable[[Good], Awaitable[None]],
    errors: tuple[type[BaseException], ...],
    told: Told,
    first_s: float = 1.0,
    longest_s: float = 60.0,
) -> None:
    """Run sessions one after another, for ever; other exceptions than `errors` end it.

    session: is given `good`, to be called once its connection stands. One that fails before that doubles the bound of
    the pause before the next (with jitter), up to `longest_s`; after one that stood, pauses begin at `first_s` again.
    told: hears each error and the pause that follows.
    """
    while True:
        await until_done(partial(_one, session, errors, told, first_s), errors, told, first_s, longest_s)
        await asyncio.sleep(first_s)


async def _one(
    session: Callable[[Good], Awaitable[None]], errors: tuple[type[BaseException], ...], told: Told, first_s: float
) -> None:
    """Run a session; its error goes on only where its connection never stood."""
    stood = False

    def good() -> None:
        nonlocal stood
        stood = True
        stop_if_cancelled()

    try:
        await session(good)
    except errors as error:
        stop_if_cancelled()
        if not stood:
            raise
        told(error, first_s)


async def until_done(
    work: Callable[[], Awaitable[None]],
    errors: tuple[type[BaseException], ...],
    told: Told,
    first_s: float = 1.0,
    longest_s: float = 60.0,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Do it until none of these errors ends it. Each doubles the bound of the pause (with jitter) that follows.

    told: hears each error and the pause that follows. pause: waits so many seconds; what it raises ends this.
    """

    def note(state: RetryCallState) -> None:
        assert state.outcome is not None and state.next_action is not None  # tenacity fills both before a sleep
        told(state.outcome.exception() or RuntimeError(), state.next_action.sleep)

    async for attempt in AsyncRetrying(
        sleep=pause,
        wait=wait_random_exponential(multiplier=first_s, max=longest_s),
        retry=retry_if_exception_type(errors),
        before_sleep=note,
        reraise=True,
    ):
        with attempt:
            await work()


async def end_task(task: asyncio.Task) -> None:
    """Cancel a task and wait until it has ended; its error is for whoever watches it.

    To await the task itself and suppress its cancellation would swallow ours, where we are cancelled meanwhile.
    """
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # seen: else asyncio tells of it when the task is forgotten


def stop_if_cancelled() -> None:
    """Raise CancelledError if this task was told to end.

    A loop that goes on after errors asks this after each: `asyncio.wait_for` in Python 3.11, which aiokafka awaits
    connections with, gives its own result or error in place of a cancellation that comes in the same moment.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
