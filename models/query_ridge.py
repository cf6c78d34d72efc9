"""The direction a query looks in: ridge regression of its own sentences (1) against what it must not answer to (0).

    score(post) = post · w + b,   (w, b) = argmin Σ_groups weight · mean((x · w + b − target)²) + ridge · ‖w‖²

Every group of rows weighs the same however many rows it has, so only its mean and second moment are needed, and the
solution is closed form. With a large ridge this is Rocchio's "mean of the wanted minus mean of the unwanted"; with a
small one it is Fisher's linear discriminant. Compare Hoerl, Kennard 1970; Manning, Raghavan, Schütze 2008, §9.1.1.

The contrast groups are fixed material (the bundled background, the bundled queries of other categories), never the
other live queries: what a query scores depends on that query alone.

No encoder is blind to the language, so each language of a query looks a little its own way:

    score(post) = max over languages of post · (w + accent · v_lang) + …,   v_lang = second⁻¹ (mean_lang − mean)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["AGAINST", "Moments", "OPPOSITE", "accents", "inverse", "moments", "solve", "solve_with", "without"]

# Chosen on labelled posts with two encoders (figures in matching.py); all are flat within a factor of two.
RIDGE = 0.1
AGAINST = 4.0  # weight of the fixed material together, the query's own sentences weighing 1
ACCENT = 0.15  # of a language's own way; more finds more of its own posts and ranks English news worse
OPPOSITE = 0.1  # weight of the same category's other kind: more tells need from offer, and loses both


class Moments(NamedTuple):
    """Of rows with a trailing 1, averaged: what a group contributes. `first` is the mean of target · row."""

    second: np.ndarray  # (d + 1, d + 1)
    first: np.ndarray  # (d + 1,)
    rows: int


def moments(vectors: np.ndarray, target: float | np.ndarray = 0.0) -> Moments:
    """Moments of (n, d) rows that should score `target` (a number, or one a row)."""
    rows = np.hstack([vectors, np.ones((len(vectors), 1), np.float32)]).astype(np.float32)  # (n, d + 1)
    n = max(len(rows), 1)
    wanted = np.broadcast_to(np.asarray(target, np.float32), (len(rows),))
    return Moments((rows.T @ rows) / n, (wanted @ rows) / n, len(rows))


def without(every: Moments, part: Moments) -> Moments:
    """Moments of all rows but those of `part`, which are among them; targets must be 0."""
    n = max(every.rows - part.rows, 1)
    return Moments(
        (every.second * every.rows - part.second * part.rows) / n, np.zeros_like(every.first), every.rows - part.rows
    )


def solve(groups: Iterable[tuple[float, Moments]], ridge: float = RIDGE) -> np.ndarray:
    """(d + 1,) float32: w and, last, b. Groups without rows count for nothing; the constant is not shrunk."""
    used = _used(groups)
    if len(used) == 1:  # nothing to be told apart from: the cosine to the mean
        mean = used[0][1].first[:-1]
        return np.append(mean / max(float(np.linalg.norm(mean)), 1e-9), 0.0).astype(np.float32)
    first = sum(weight * m.first.astype(np.float64) for weight, m in used)
    return np.linalg.solve(_second(used, ridge), first).astype(np.float32)


def accents(groups: Iterable[tuple[float, Moments]], means: np.ndarray, ridge: float = RIDGE) -> np.ndarray:
    """(languages, d + 1): what to add to the direction for each language. means: (languages, d), of its sentences."""
    used = _used(groups)
    own = np.hstack([means - means.mean(axis=0), np.zeros((len(means), 1), means.dtype)])  # (languages, d + 1)
    if len(means) < 2 or len(used) < 2:
        return np.zeros_like(own, np.float32)
    return (ACCENT * np.linalg.solve(_second(used, ridge), own.T.astype(np.float64)).T).astype(np.float32)


def inverse(fixed: Iterable[tuple[float, Moments]], ridge: float = RIDGE) -> np.ndarray | None:
    """(d + 1, d + 1) float64: the inverse of what does not hang on a query's own sentences; None if that is nothing."""
    used = _used(fixed)
    return np.linalg.inv(_second(used, ridge)) if used else None


def solve_with(
    fixed: np.ndarray, sentences: np.ndarray, langs: Sequence[str], known: np.ndarray | None = None
) -> np.ndarray:
    """(languages, d + 1) float32: what `solve` plus `accents` give, from the inverse of the fixed part.

    A few sentences (n, d) change the second moment by a matrix of rank n: with X their rows and a trailing 1,
    (F + XᵀX / n)⁻¹ Xᵀ c = F⁻¹Xᵀ (n + X F⁻¹ Xᵀ)⁻¹ n c (Woodbury 1950), so an equation of n unknowns stands for one of
    d + 1: .1 ms a query of one sentence instead of 10 (384 dims, CPU time). known: (d + 1,), the common part, fitted
    elsewhere.
    """
    n, of = len(sentences), {lang: i for i, lang in enumerate(dict.fromkeys(langs))}
    rows = np.hstack([sentences.astype(np.float64), np.ones((n, 1))])  # (n, d + 1)
    shares = np.zeros((n, len(of)))  # each language's mean is rows.T @ its column
    shares[np.arange(n), [of[lang] for lang in langs]] = 1.0
    shares /= shares.sum(axis=0)
    wanted = np.hstack([np.full((n, 1), 1 / n), ACCENT * (shares - shares.mean(axis=1, keepdims=True))])
    looked = rows @ fixed  # (n, d + 1)
    found = looked.T @ np.linalg.solve(looked @ rows.T + n * np.eye(n), n * wanted)  # (d + 1, 1 + languages)
    common = found[:, :1] if known is None else known[:, None]
    directions: np.ndarray = (common + found[:, 1:]).T.astype(np.float32)
    return directions


def _used(groups: Iterable[tuple[float, Moments]]) -> list[tuple[float, Moments]]:
    return [(weight, m) for weight, m in groups if m.rows > 0 and weight > 0]


def _second(used: list[tuple[float, Moments]], ridge: float) -> np.ndarray:
    second = np.zeros_like(used[0][1].second, np.float64)
    for weight, m in used:
        second += weight * m.second.astype(np.float64)
    diagonal = np.full(len(second), ridge)
    diagonal[-1] = 1e-9
    return second + np.diag(diagonal)
