"""How far vectors lie apart: of pairs that should be near, and of a whole space."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

__all__ = ["Anisotropy", "anisotropy", "cosine_histogram", "pairwise_cosine_distance"]


class Anisotropy(Struct, frozen=True):
    """How unevenly a sample of vectors uses its space."""

    mean_cosine: float  # of two different texts; 0 = every direction alike, 1 = all vectors the same
    widest_axis: float  # share of the variance on the widest axis; 1 / d if all are alike
    effective_dim: float  # exp of the entropy of the variances' shares; d if all are alike


def pairwise_cosine_distance(left: np.ndarray, right: np.ndarray) -> float:
    """Mean of 1 − cos over row pairs, both (n, d), unit rows. 0 is best.

    Source: "average pairwise cosine distance" of Nishimwe, Sagot, Bawden 2024, section 4.1.
    """
    if left.shape != right.shape:
        raise ValueError(f"pairs need as many rows on both sides: {left.shape} and {right.shape}")
    return float(1 - np.einsum("nd,nd->n", left.astype(np.float64), right.astype(np.float64)).mean())


def anisotropy(vectors: np.ndarray) -> Anisotropy:
    """Of (n, d) unit rows, n ≥ 2. Mean cosine after Ethayarajh 2019, over all pairs in closed form."""
    sample = vectors.astype(np.float64)
    n = len(sample)
    total = sample.sum(0)
    mean_cosine = (total @ total - np.einsum("nd,nd->", sample, sample)) / (n * (n - 1))
    centred = sample - total / n
    variances = np.clip(np.linalg.eigvalsh(centred.T @ centred / n), 0, None)
    if variances.sum() < 1e-12:
        return Anisotropy(float(mean_cosine), 1.0, 1.0)
    shares = variances / variances.sum()
    entropy = -(shares[shares > 0] * np.log(shares[shares > 0])).sum()
    return Anisotropy(float(mean_cosine), float(shares.max()), float(np.exp(entropy)))


def cosine_histogram(left: np.ndarray, right: np.ndarray, bins: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Counts (bins,) and edges (bins + 1,) over [-1, 1] of the cosines of row pairs: figure 2 of Li et al. 2024."""
    cosines = np.clip(np.einsum("nd,nd->n", left.astype(np.float64), right.astype(np.float64)), -1, 1)
    return np.histogram(cosines, bins, (-1, 1))
