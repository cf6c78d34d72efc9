"""One line of a kind in ten seconds from a client that tries again and again.

While its broker is away aiokafka says so at each try of each of its parts: 335 lines a second of one worker (measured),
in which what else it says is lost, and which fill a disk before a long outage ends.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

__all__ = ["Repeats", "quieten"]

EVERY_S = 10.0


class Repeats(logging.Filter):
    """Leaves out lines whose wording was told within `every_s` seconds; the next of them says how many there were."""

    def __init__(self, every_s: float = EVERY_S, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._every_s, self._clock = every_s, clock
        self._told: dict[tuple[str, int, str], tuple[float, int]] = {}  # → when it was told, how many left out since

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is told. The wording is the line before its names and numbers are filled in."""
        kind, now = (record.name, record.levelno, str(record.msg)), self._clock()
        at, left_out = self._told.get(kind, (now - self._every_s, 0))
        if now - at < self._every_s:
            self._told[kind] = at, left_out + 1
            return False
        self._told[kind] = now, 0
        if left_out:
            record.msg = f"{record.msg} [{left_out} more of these since]"
        return True


_REPEATS = Repeats()


def quieten(package: str) -> None:
    """All loggers of an imported package; may be said again. Each by itself: a filter of the package's own logger would
    not see the lines of those below it."""
    for name in list(logging.root.manager.loggerDict):
        if name == package or name.startswith(f"{package}."):
            logging.getLogger(name).addFilter(_REPEATS)
