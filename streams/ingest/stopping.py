"""Ctrl-C and SIGTERM end a source between two posts: what was read is sent and acknowledged, the cursor is saved."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["SIGNALS", "Stop", "until_stopped"]

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Asked between posts; a source that waits for its input says so, and is interrupted there only."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self._waiting = False

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Listen to the signals of this process (its main thread only) while inside."""
        before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def waiting_for_input(self) -> Iterator[None]:
        """A blocking read: a signal here raises KeyboardInterrupt."""
        self._waiting = True
        try:
            yield
        finally:
            self._waiting = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        again = self.asked.is_set()
        self.asked.set()
        if self._waiting or again:  # the second Ctrl-C does not wait for the broker
            raise KeyboardInterrupt


async def until_stopped(work: asyncio.Task) -> None:
    """Run a source's task to its end, or cancel it at the first signal. Raises what the task raised."""
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, work.cancel)
    try:
        await work
    except asyncio.CancelledError:
        if not work.cancelled():  # somebody cancelled us, not the source
            raise
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
