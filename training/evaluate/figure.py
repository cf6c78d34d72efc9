"""A figure of the alert benchmark, and how its interval is drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from training.metrics import alerting, bootstrap

__all__ = ["Drawing", "Figure", "figure"]


class Figure(Struct, frozen=True, omit_defaults=True):
    """One line of the table. n: posts it is a share or a ranking of; low, high: 95 %, by drawing posts again."""

    name: str
    value: float | None  # None: nothing to measure it on
    n: int
    low: float | None = None
    high: float | None = None


def figure(name: str, value: float | None, n: int) -> Figure:
    return Figure(name, None if value is None or np.isnan(value) else float(value), n)


class Drawing(Struct, frozen=True):
    """Figures with their intervals."""

    seed: int
    repeats: int  # 0 = no intervals

    def share(self, name: str, hits: np.ndarray, of: np.ndarray, weights: np.ndarray) -> Figure:
        """See `alerting.share`."""
        return self.of(name, lambda at: alerting.share(hits[at], of[at], weights[at]), len(hits), int(of.sum()))

    def precision(self, name: str, scores: np.ndarray, right: np.ndarray, weights: np.ndarray, n: int) -> Figure:
        """See `alerting.ranked_precision`."""
        return self.of(name, lambda at: alerting.ranked_precision(scores[at], right[at], weights[at]), len(scores), n)

    def of(self, name: str, statistic: Callable[[np.ndarray], float], rows: int, n: int) -> Figure:
        """Any statistic of row numbers."""
        value = statistic(np.arange(rows)) if rows else float("nan")
        if np.isnan(value) or not self.repeats:
            return figure(name, value, n)
        low, high = bootstrap(statistic, rows, self.seed, self.repeats)
        return Figure(name, float(value), n, low, high)
