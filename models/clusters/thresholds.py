"""Start values for the two cluster thresholds, from unlabelled posts of the stream itself.

Use them for an encoder, or vectors, that nobody has tuned. With the words in a row (`lexical` at its default) good
thresholds hardly depend on the encoder; with meaning alone they lie anywhere from .30 to .55.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from models.errors import SampleTooSmall

__all__ = ["suggest_thresholds"]

ATTACH_SPREADS, MERGE_SPREADS = 4.5, 3.2  # fitted to two English event streams (B³ F1 within .001 of tuned): a start
WORDS_MERGE, WORDS_SLOPE, WORDS_GAP = 0.15, 0.1, 0.09  # fitted to two streams under two encoders, at lexical = .6
MIN_VECTORS = 200
PAIRS = 200_000  # the 16th percentile then moves by less than .001


class ClusterThresholds(Struct, frozen=True):
    """Mean cosine to join a cluster and to merge two, and what they were derived from."""

    t_attach: float
    t_merge: float
    background: float  # median cosine of two random posts
    spread: float  # background − 16th percentile: one deviation of the unrelated side


def suggest_thresholds(vectors: np.ndarray, words: bool = True, seed: int = 0) -> ClusterThresholds:
    """Derive thresholds from the similarity b of random pairs.

    With words: b/10 + .15 to merge and .09 more to attach, for the default `lexical`. Without: b + 3.2 h and b + 4.5 h,
    where h is the distance from b down to the 16th percentile (mean and deviation will not do: hot topics inflate
    them). The rule without words fails on streams of few, wide topics, such as one crisis: it asks for too much.

    vectors: (n, d) float, unit rows, the first few thousand posts of a stream; b is their median cosine.
    Raises SampleTooSmall below 200 rows.
    """
    n = len(vectors)
    if n < MIN_VECTORS:
        raise SampleTooSmall(f"thresholds need at least {MIN_VECTORS} vectors, got {n}: wait for more posts")
    rng = np.random.default_rng(seed)
    left = rng.integers(0, n, PAIRS)
    right = (left + rng.integers(1, n, PAIRS)) % n  # never itself
    cosines = np.concatenate(
        [
            np.einsum("ij,ij->i", vectors[a].astype(np.float32), vectors[b].astype(np.float32))
            for a, b in zip(np.array_split(left, 20), np.array_split(right, 20), strict=True)
        ]
    )
    low, background = (float(v) for v in np.percentile(cosines, [16, 50]))
    spread = background - low
    attach, merge = background + ATTACH_SPREADS * spread, background + MERGE_SPREADS * spread
    if words:
        merge = WORDS_MERGE + WORDS_SLOPE * background
        attach = merge + WORDS_GAP
    attach, merge = (round(float(np.clip(t, 0.05, 0.98)), 4) for t in (attach, merge))
    return ClusterThresholds(attach, merge, background, spread)
