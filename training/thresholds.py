"""Where to put a threshold, and what a score is worth: rates over ordinary posts, precision over labelled ones."""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import IsotonicRegression

__all__ = ["group_weights", "lowest_reaching", "probability_curve", "rate_threshold", "weighted_quantile_over"]


def weighted_quantile_over(scores: np.ndarray, weights: np.ndarray, rate: float) -> float:
    """The lowest threshold t with weight(scores >= t) <= rate, half-way to the score below. (n,), weights sum to 1."""
    order = np.argsort(-scores, kind="stable")
    ranked, over = scores[order], np.cumsum(weights[order])
    last = int(np.searchsorted(over, rate, side="right"))  # ranked[:last] may pass
    if last == 0:
        return float(np.nextafter(ranked[0], np.float32(2)))
    if last == len(ranked):
        return float(ranked[-1])
    return float((ranked[last - 1] + ranked[last]) / 2) if ranked[last - 1] > ranked[last] else _above(ranked, last)


def rate_threshold(scores: np.ndarray, weights: np.ndarray, groups: np.ndarray, rate: float, factor: float) -> float:
    """The lowest threshold with no more than `rate` over it, and no more than `factor` times that in any one group.

    Groups with fewer than 2 posts allowed over it say too little and are left out of the second bound.
    """
    at = weighted_quantile_over(scores, weights, rate)
    for group in np.unique(groups):
        of = scores[groups == group]
        if len(of) * rate * factor >= 2:
            at = max(at, weighted_quantile_over(of, np.full(len(of), 1 / len(of)), rate * factor))
    return at


def _above(ranked: np.ndarray, last: int) -> float:
    """Ties straddle the cut: go above all of them."""
    return float(np.nextafter(ranked[last], np.float32(2)))


def lowest_reaching(scores: np.ndarray, positive: np.ndarray, target: float, enough: int) -> float | None:
    """The lowest threshold from which up the precision is `target` with `enough` posts; None if there is none."""
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(positive[order])
    n = np.arange(1, len(hits) + 1)
    reached = np.flatnonzero((hits / n >= target) & (n >= enough))
    return float(scores[order][reached[-1]]) if len(reached) else None


def probability_curve(
    scores: np.ndarray, positive: np.ndarray, start: float, bins: int = 8
) -> list[tuple[float, float]]:
    """(score, precision) knots from `start` up, rising in both: isotonic over bins of equal size, pulled towards the
    whole by two posts, so that a few lucky ones at the top do not read as certainty."""
    over = np.flatnonzero(scores >= start)
    over = over[np.argsort(scores[over], kind="stable")]
    parts = [part for part in np.array_split(over, min(bins, max(1, len(over) // 20))) if len(part)]
    if len(over) < 20:
        return []
    base = float(positive[over].mean())
    at = np.array([float(np.median(scores[p])) for p in parts])
    share = np.array([(positive[p].sum() + 2 * base) / (len(p) + 2) for p in parts])
    rising = IsotonicRegression(out_of_bounds="clip").fit_transform(at, share, sample_weight=[len(p) for p in parts])
    knots = {round(float(x), 4): round(float(y), 3) for x, y in zip(at, rising, strict=True)}
    return sorted(knots.items())


def group_weights(groups: np.ndarray) -> np.ndarray:
    """(n,), sum 1: languages weigh the same and make one half, sets of chatter the other."""
    names, place, counts = np.unique(groups, return_inverse=True, return_counts=True)
    chatter = np.char.startswith(names.astype(str), "chatter")
    share = np.where(chatter, 0.5 / max(chatter.sum(), 1), 0.5 / max((~chatter).sum(), 1))
    weights = (share / counts)[place]
    return weights / weights.sum()
