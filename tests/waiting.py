"""Waiting for what must become so. No test judges how long that takes: a busy machine may take any time.

What never comes is ended after PATIENCE_S, with a word on what was waited for; pytest-timeout (pyproject.toml) ends
what hangs elsewhere.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 480.0
LOOK_S, LONGEST_LOOK_S = 0.01, 0.25  # between two looks, at first and in the end: what comes at once is seen at once,
LONGER = 1.3  # and who waits long takes little time from what is waited for


def wait_until(condition: Callable[[], T], told: Callable[[], object] = lambda: "") -> T:
    """What `condition` returns as soon as that is true. told: what is said if it never is.

    Raises AssertionError after PATIENCE_S.
    """
    deadline, look_s = time.monotonic() + PATIENCE_S, LOOK_S
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {PATIENCE_S:g} s: {told()}"
        time.sleep(look_s)
        look_s = min(LONGEST_LOOK_S, look_s * LONGER)
    return found


async def until(condition: Callable[[], T | Awaitable[T]], told: Callable[[], object] = lambda: "") -> T:
    """`wait_until` on an event loop; the condition may be asked with `await`."""
    deadline, look_s = time.monotonic() + PATIENCE_S, LOOK_S
    while True:
        found = condition()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {PATIENCE_S:g} s: {told()}"
        await asyncio.sleep(look_s)
        look_s = min(LONGEST_LOOK_S, look_s * LONGER)
