"""Average linkage (UPGMA) over the few pairs of clusters that are near: best pair first, down to a threshold.

sim(a + b, c) is a weighted mean of sim(a, c) and sim(b, c), so it can reach the threshold only if one of them did: the
neighbours of a + b are among those of a and of b. The product of sums with a neighbour of both is the sum of the two
products, without rounding, as all are on the grid.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

import numpy as np

__all__ = ["Linkage"]

Entry = tuple[float, int, int, int, int, float, float]


class Linkage:
    """Slots and their neighbours. sums: (capacity, d), on the grid, changed by who joins two; counts, born: by slot.

    pairs: slots, others and the products of their sums, at least as similar as `threshold` or, by less exact numbers,
    hardly less; some of them twice.
    """

    def __init__(
        self,
        sums: np.ndarray,
        counts: np.ndarray,
        born: np.ndarray,
        pairs: Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]],
        threshold: float,
    ) -> None:
        self.sums, self.threshold = sums, threshold
        near: dict[int, dict[int, float]] = {}
        for arrays in pairs:
            for i, j, dot in zip(*(array.tolist() for array in arrays), strict=True):
                near.setdefault(i, {})[j] = near.setdefault(j, {})[i] = dot
        slots = np.array([*near], np.int64)
        self.counts: dict[int, float] = dict(zip(near, counts[slots].tolist(), strict=True))
        self.born: dict[int, int] = dict(zip(near, born[slots].tolist(), strict=True))
        self.near = {
            i: {j: dot for j, dot in others.items() if self._similarity(i, j, dot) >= threshold}
            for i, others in near.items()
        }

    def join(self, absorb: Callable[[int, int], None]) -> list[tuple[int, int]]:
        """Returns (lives on, absorbed), in order; absorb: does it to the sums, for each of these at once.

        The heavier cluster lives on, the older one of a tie. Equal similarities: the oldest pair first.
        """
        heap = [self._entry(i, j, dot) for i, others in self.near.items() for j, dot in others.items() if i < j]
        heapq.heapify(heap)
        joined, counts = [], self.counts
        while heap:
            _, _, _, i, j, n_i, n_j = heapq.heappop(heap)
            if counts.get(i) != n_i or counts.get(j) != n_j:
                continue  # one of them changed or died since: a newer entry says so
            if n_j > n_i:
                i, j = j, i
            joined.append((i, j))
            absorb(i, j)
            counts[i] += counts.pop(j)
            for c, dot in self._unite(i, j).items():
                if self._similarity(i, c, dot) >= self.threshold:
                    heapq.heappush(heap, self._entry(i, c, dot))
        return joined

    def _similarity(self, i: int, j: int, dot: float) -> float:
        return dot / (self.counts[i] * self.counts[j])

    def _entry(self, i: int, j: int, dot: float) -> Entry:
        """As the heap orders pairs: most similar, then oldest; and their counts, to know if it still holds."""
        born, counts = self.born, self.counts
        if born[j] < born[i]:
            i, j = j, i
        return -self._similarity(i, j, dot), born[i], born[j], i, j, counts[i], counts[j]

    def _unite(self, i: int, j: int) -> dict[int, float]:
        """The neighbours of what was i and j, and the products with them, now those of i."""
        one, two = self.near.pop(i), self.near.pop(j)
        del one[j], two[i]
        both = {c: dot + two[c] for c, dot in one.items() if c in two}
        if rest := [c for c in (*one, *two) if c not in both]:
            both |= zip(rest, (self.sums[rest] @ self.sums[i]).tolist(), strict=True)
        for c, dot in both.items():
            theirs = self.near[c]
            theirs.pop(j, None)
            theirs[i] = dot
        self.near[i] = both
        return both
