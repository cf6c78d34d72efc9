"""How sure a figure is: by repeated runs, by drawing its rows again, and whether two groups of runs differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from scipy import stats

__all__ = ["Interval", "bootstrap", "mean_interval", "welch_p"]


class Interval(Struct, frozen=True):
    """mean ± half_width covers the expected value with the given level, if runs are independent and near normal."""

    mean: float
    half_width: float
    runs: int


def mean_interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """Student's t interval of the mean; half_width is nan for one run."""
    n = len(values)
    if n < 2:
        return Interval(float(np.mean(values)), float("nan"), n)
    reach = stats.t.ppf((1 + level) / 2, n - 1) * np.std(values, ddof=1) / np.sqrt(n)
    return Interval(float(np.mean(values)), float(reach), n)


def welch_p(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided p of the means being equal, variances not assumed so. Two constant groups give 1.0 or 0.0."""
    if np.std(first) == 0 and np.std(second) == 0:
        return float(np.mean(first) == np.mean(second))
    return float(stats.ttest_ind(first, second, equal_var=False).pvalue)


def bootstrap(
    statistic: Callable[[np.ndarray], float], rows: int, seed: int, repeats: int = 200, level: float = 0.95
) -> tuple[float, float]:
    """(low, high) that hold `level` of the statistic's values over `repeats` samples of as many rows with replacement.

    statistic: of (rows,) row numbers; nan values are left out, and all nan gives nan. Source: Efron 1979, percentile
    method. For a statistic of single rows or of row pairs that belong together; not for one over all pairs of rows,
    where a row drawn twice would be compared with itself.
    """
    rng = np.random.default_rng(seed)
    values = np.array([statistic(rng.integers(0, rows, rows)) for _ in range(repeats)], float)
    values = values[~np.isnan(values)]
    if not len(values):
        return float("nan"), float("nan")
    low, high = np.quantile(values, ((1 - level) / 2, (1 + level) / 2))
    return float(low), float(high)
