"""What repeated runs say together: mean with its interval, and whether two groups of runs differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from scipy import stats


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
