"""What a post asks for, or offers, beside its first reading.

Classes of a softmax exclude each other: "nou bezwen tant, dlo, manje" is read as food, and whoever brings water is not
called. So each query has a line of its own, learnt by `training.head` from needs, or offers, with everything they ask
for: the log-odds that a post of its kind says this too, whatever else it says (binary relevance; Zhang, Zhou 2014,
doi:10.1109/TKDE.2013.39, section 3.1.1). The softmax still says whether a post is a need at all, and which reading
comes first; it is better at both.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

__all__ = ["Several"]


class Several(Struct, frozen=True, dict=True):
    """A line for each query. weight: (q, d) as rows; bias: (q,)."""

    queries: list[str]
    weight: list[list[float]]
    bias: list[float]

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.queries)}

    @cached_property
    def _rows(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.weight, np.float32), np.array(self.bias, np.float32)

    def log_odds(self, vectors: np.ndarray, query_ids: Sequence[str]) -> np.ndarray:
        """(n, d) → (n, len(query_ids)) float32, of a post of the query's kind; −∞ for a query that has no line."""
        out = np.full((len(vectors), len(query_ids)), -np.inf, np.float32)
        known = [(at, self._place[name]) for at, name in enumerate(query_ids) if name in self._place]
        if known:
            at, rows = map(list, zip(*known, strict=True))
            weight, bias = self._rows
            out[:, at] = vectors @ weight[rows].T + bias[rows]
        return out
