"""xSIM and xSIM++: the error rate of finding each sentence's partner by margin among all candidates.

Source: Artetxe, Schwenk 2019 (margin), Chen et al. 2023 (xSIM++: hard negatives join the candidates); as used by
Nishimwe, Sagot, Bawden 2024, section 4.1, with 4 neighbours and the ratio margin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

__all__ = ["XsimResult", "xsim"]

_SAME = 1e-9  # margins nearer than this are equal
_CHUNK = 8192  # candidates at a time: the scores of 1,012 sentences stay at 66 MB


class XsimResult(Struct, frozen=True):
    """Error rates in percent of the source sentences."""

    error: float
    by_kind: dict[str, float]  # what was found instead: "misaligned" (another sentence) or the hard negative's kind


def xsim(
    source: np.ndarray,
    target: np.ndarray,
    negatives: np.ndarray | None = None,
    kinds: Sequence[str] = (),
    neighbours: int = 4,
) -> XsimResult:
    """Error of finding target[i] from source[i], both (n, d) unit rows; `negatives` (m, d) join the candidates
    (xSIM++).

    margin(x, y) = cos(x, y) / ((mean cos of x's neighbours + mean cos of y's neighbours) / 2). As in the reference
    implementation, the margin ranks the `neighbours` nearest candidates by cosine.
    We differ: a candidate that scores as the partner, but for rounding, counts as an error; else an encoder that cannot
    see what a hard negative changed would be let off. Not symmetrical.
    """
    n = len(source)
    if source.shape != target.shape:
        raise ValueError(f"source {source.shape} and target {target.shape} must pair row by row")
    if negatives is not None and len(kinds) != len(negatives):
        raise ValueError(f"{len(negatives)} hard negatives, {len(kinds)} kinds")
    source, target = (
        source.astype(np.float64),
        target.astype(np.float64),
    )  # equal rows must not differ by their rounding
    candidates = target if negatives is None else np.concatenate([target, negatives])
    k = min(neighbours, n, len(candidates))
    nearest, cosines, reach = _nearest(source, candidates, k)
    own = np.arange(n)
    partner = np.einsum("nd,nd->n", source, target)
    level = (cosines.mean(1)[:, None] + reach[nearest]) / 2  # (n, k)
    margins = np.where(nearest == own[:, None], -np.inf, _ratio(cosines, level))
    own_margin = np.where((nearest == own[:, None]).any(1), _ratio(partner, (cosines.mean(1) + reach[:n]) / 2), -np.inf)
    wrong = margins.max(1) >= own_margin - _SAME if k > 1 or len(candidates) > n else (nearest != own[:, None]).any(1)
    found = nearest[own, margins.argmax(1)]
    counts = Counter("misaligned" if j < n else kinds[j - n] for j in found[wrong].tolist())
    return XsimResult(float(100 * wrong.mean()), {kind: 100 * c / n for kind, c in sorted(counts.items())})


def _nearest(source: np.ndarray, candidates: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each source row its k nearest candidates and their cosines, (n, k) each; for each candidate the mean cosine
    of its k nearest source rows, (m,)."""
    n = len(source)
    nearest = np.zeros((n, 0), np.intp)
    cosines = np.zeros((n, 0))
    reach = np.empty(len(candidates))
    for start in range(0, len(candidates), _CHUNK):
        scores = source @ candidates[start : start + _CHUNK].T  # (n, chunk)
        reach[start : start + scores.shape[1]] = np.partition(scores, n - k, axis=0)[n - k :].mean(0)
        nearest = np.concatenate([nearest, np.broadcast_to(start + np.arange(scores.shape[1]), scores.shape)], axis=1)
        cosines = np.concatenate([cosines, scores], axis=1)
        best = first_best(cosines, k)  # of candidates with the same cosine the partner, which comes first, is kept
        nearest, cosines = np.take_along_axis(nearest, best, 1), np.take_along_axis(cosines, best, 1)
    return nearest, cosines, reach


def first_best(values: np.ndarray, k: int) -> np.ndarray:
    """(n, k) places of the k largest of each row of (n, m), largest first and of equals the first.

    What a stable argsort would give, without sorting 46,000 candidates to learn the best four.
    """
    least = np.partition(values, -k, axis=1)[:, -k]
    chosen = values >= least[:, None]
    best = np.empty((len(values), k), np.intp)
    untied = chosen.sum(1) == k
    best[untied] = np.nonzero(chosen[untied])[1].reshape(-1, k)
    for row in np.flatnonzero(~untied):
        best[row] = np.sort(np.argsort(-values[row], kind="stable")[:k])
    order = np.argsort(-np.take_along_axis(values, best, 1), axis=1, kind="stable")
    return np.take_along_axis(best, order, 1)


def _ratio(cosine: np.ndarray, level: np.ndarray) -> np.ndarray:
    # Neighbours at right angles leave nothing to divide by; then the sign of the cosine decides.
    return cosine / np.where(np.abs(level) < 1e-9, 1e-9, level)
