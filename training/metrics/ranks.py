"""Rank correlation."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

__all__ = ["spearman"]


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """Of two (n,) arrays, ties by their mean rank; nan where one is constant.

    scipy's spearmanr gives the same and warns where one is constant: a thousand times in a resampling.
    """
    a, b = rankdata(first), rankdata(second)
    return float(np.corrcoef(a, b)[0, 1]) if len(a) > 1 and np.ptp(a) and np.ptp(b) else float("nan")
