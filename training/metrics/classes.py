"""D_avg: how alike posts of one class are, and, beside it, how alike posts of different classes are.

Source: Lamsal, Read, Karunasekera 2023, section 3.5.2, and 2024, equation 2: the mean over classes of the mean cosine
within the class, weighted by the normalised inverse of the class's size. An encoder that maps everything to one point
scores 1.0 there, so the figure says little without the mean between classes, which the papers do not print.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

__all__ = ["ClassSimilarity", "class_similarity"]


class ClassSimilarity(Struct, frozen=True):
    """Mean cosines within and between classes."""

    d_avg: float  # within, weighted as in the papers
    between: float  # over all pairs of different classes
    by_class: dict[str, float]  # within
    left_out: tuple[str, ...]  # classes of one post: they have no pair, and would have had the largest weight


def class_similarity(vectors: np.ndarray, labels: Sequence[str]) -> ClassSimilarity:
    """vectors: (n, d) unit rows; one label a row. In closed form: Σ over pairs = (|Σ rows|² − n) / 2.

    A post is not compared with itself. `between` is nan where there is one class only.
    Raises ValueError if no class has two posts, or rows and labels differ in number.
    """
    if len(vectors) != len(labels):
        raise ValueError(f"{len(vectors)} vectors, {len(labels)} labels")
    names, index, sizes = np.unique(
        np.asarray(labels, dtype=object).astype(str), return_inverse=True, return_counts=True
    )
    sums = np.zeros((len(names), vectors.shape[1]))
    np.add.at(sums, index, vectors.astype(np.float64))
    squares = np.einsum("kd,kd->k", sums, sums)  # |Σ rows of a class|²
    paired = sizes > 1
    if not paired.any():
        raise ValueError("no class has two posts: there is no pair within a class")
    within = (squares[paired] - sizes[paired]) / (sizes[paired] * (sizes[paired] - 1))
    weights = 1 / sizes[paired]
    weights /= weights.sum()
    total = sums.sum(0)
    crossing = len(vectors) ** 2 - (sizes**2).sum()
    return ClassSimilarity(
        d_avg=float(weights @ within),
        between=float((total @ total - squares.sum()) / crossing) if crossing else float("nan"),
        by_class=dict(zip(names[paired].tolist(), within.tolist(), strict=True)),
        left_out=tuple(names[~paired].tolist()),
    )
