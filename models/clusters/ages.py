"""What is asked of every live cluster now and then, in arrays: when it was touched, whether it was told, whether it
bursts. To walk over thousands of clusters for it would be a cost a post that grows with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from models.clusters.cluster import Cluster
from models.clusters.config import ClusterConfig

__all__ = ["Ages"]

_RATES = [("level", "i8"), ("fast", "f8"), ("slow", "f8"), ("rates_at", "f8"), ("event_at", "f8")]
_ROW = np.dtype([("post", "i8"), ("at", "f8"), ("many", "?"), ("told", "?"), *_RATES])
SLACK = 1e-6  # of a burst, by which arrays may round another way than one cluster's own rates


class Ages:
    """A row for each slot, as it was when last noted; rows of slots that ended mean nothing."""

    def __init__(self) -> None:
        self._rows = np.zeros(0, _ROW)

    def note(self, slots: Iterable[int], clusters: Sequence[Cluster | None]) -> None:
        """These slots changed. clusters: by slot."""
        if len(clusters) > len(self._rows):
            more = max(len(clusters), len(self._rows) * 3 // 2) - len(self._rows)
            self._rows = np.concatenate([self._rows, np.zeros(more, _ROW)])
        found = [(slot, c) for slot in slots if (c := clusters[slot]) is not None]
        if found:
            self._rows[[slot for slot, _ in found]] = np.array([_row(c) for _, c in found], _ROW)

    def move(self, keep: Sequence[int]) -> None:
        """Gaps were closed: keep[new] is the old slot."""
        self._rows[: len(keep)] = self._rows[list(keep)]

    def told(self, live: np.ndarray) -> np.ndarray:
        """(size,) bool: live slots that were told."""
        told: np.ndarray = live & self._rows["told"][: len(live)]
        return told

    def quiet(
        self,
        live: np.ndarray,
        posts: int,
        clock: float,
        many: tuple[int, float],
        single: tuple[int, float],
        most_s: float,
    ) -> list[int]:
        """Live slots that got nothing for more than so many posts and at least so many seconds, or for longer than
        `most_s`, however few posts came.

        live: (size,) bool. many, single: (posts, seconds) for clusters of several posts and of one.
        """
        rows = self._rows[: len(live)]
        least, seconds = (np.where(rows["many"], m, s) for m, s in zip(many, single, strict=True))
        silent_s = clock - rows["at"]
        passed = (posts - rows["post"] > least) & (silent_s >= seconds)
        ended: list[int] = np.flatnonzero(live & (passed | (silent_s > most_s))).tolist()
        return ended

    def stalest(self, live: np.ndarray, born: np.ndarray, most: int) -> list[int]:
        """At most so many live slots: those that were never told first, then single posts, then the longest quiet, then
        the oldest. born: by slot."""
        slots = np.flatnonzero(live)
        rows = self._rows[slots]
        worth = (rows["told"].astype(np.int64) << 62) + (rows["many"].astype(np.int64) << 61) + rows["post"]
        if most < len(slots):  # a few of thousands: to sort them all costs ten times as much
            few = worth <= np.partition(worth, most - 1)[most - 1]
            slots, worth = slots[few], worth[few]
        found: list[int] = slots[np.lexsort((born[slots], worth))[:most]].tolist()
        return found

    def calming(self, live: np.ndarray, clock: float, config: ClusterConfig) -> list[int]:
        """Live slots that were told as bursting and may burst less by now, where nothing came since (`Rates.burst`, in
        arrays: of thousands that burst hardly any are such, and a look at each would cost ten times as much)."""
        slots = np.flatnonzero(live & (self._rows["level"][: len(live)] > 0))
        rows = self._rows[slots]
        age, bars = clock - rows["rates_at"], np.array([-np.inf, *config.burst_levels])
        fast = rows["fast"] * np.exp(-age / config.burst_fast_s) / config.burst_fast_s
        slow = np.maximum(rows["slow"] * np.exp(-age / config.burst_slow_s), 0.0) / config.burst_slow_s
        burst = (fast - slow) / np.sqrt(slow / config.burst_fast_s + config.burst_fast_s**-2.0)
        less = burst < bars[np.minimum(rows["level"], len(bars) - 1)] + SLACK
        found: list[int] = slots[less & (clock - rows["event_at"] >= config.quiet_s)].tolist()
        return found


def _row(c: Cluster) -> tuple[int, float, bool, bool, int, float, float, float, float]:
    rates = c.rates
    many, told = c.posts > 1, c.version > 0
    return c.touched_post, c.touched_s, many, told, c.burst_level, rates.fast, rates.slow, rates.at, c.event_s
