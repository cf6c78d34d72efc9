"""The clusterer's arithmetic: attach by mean similarity, merge by average linkage, both exact.

Every vector is rounded to a grid of 2**-13 (a cosine moves by some 1e-4). A dot product then is a whole number of
2**-26 and a float64 holds it without rounding up to 2**27 posts, in whatever order it is summed. So a post
gives the same similarity computed alone or in a block of 256, on any BLAS and any machine, and a block can be updated
in place as clusters change inside it. Results therefore cannot depend on where a frame ended.

Slots are in order of founding: a lower slot is an older cluster, and ties go to it. Dead slots have count 0 until
`compact` closes the gaps.
"""

from __future__ import annotations

import heapq

import numpy as np

GRID = 8192.0  # 2**13 steps per unit: a row fits int16
FINE = 2.0**20  # grid on which a row's length is taken: its squares still sum without rounding
CHUNK = 256  # rows of the merge product held at once: bounds its memory to CHUNK × clusters


def to_grid(vectors: np.ndarray) -> np.ndarray:
    """Scale rows to unit length and round them to the grid. (n, d) any float -> (n, d) float64; a zero row stays zero.

    The length is taken of a row on a finer grid: its sum is then exact, so the result does not depend on the shape.
    """
    fine = np.rint(np.asarray(vectors, dtype=np.float64) * FINE)
    length = np.sqrt((fine * fine).sum(axis=1, keepdims=True))
    return np.rint(fine * (GRID / np.maximum(length, 1.0))) / GRID


class Kernel:
    """Sums and counts of the live clusters, one slot each."""

    def __init__(self, dim: int, t_attach: float, t_merge: float, capacity: int = 1024) -> None:
        self.dim, self.t_attach, self.t_merge = dim, t_attach, t_merge
        self.size = 0  # slots in use, dead ones included
        self.sums = np.zeros((capacity, dim))  # (capacity, d), on the grid
        self.counts = np.zeros(capacity)  # (capacity,), 0 = dead
        self.dirty: set[int] = set()  # changed since the last full merge: only their similarities can have risen
        self.fresh: set[int] = set()  # the same since the last merge of either kind

    def load(self, sums: np.ndarray, counts: np.ndarray, dirty: set[int], fresh: set[int]) -> None:
        """Start from known clusters. sums: (k, d) on the grid; counts: (k,)."""
        self.size, self.dirty, self.fresh = 0, dirty, fresh
        self._reserve(len(counts))
        self.size = len(counts)
        self.sums[: self.size], self.counts[: self.size] = sums, counts

    def place(self, rows: np.ndarray) -> list[int]:
        """Put posts one after another into the nearest cluster with mean similarity ≥ t_attach, else into a new one.

        rows: (b, d) from `to_grid`. Returns each post's slot; a slot ≥ the size before the call was founded here.
        The product with all sums is taken once; as a cluster gains post i its column gains Gram column i.
        """
        b, k = len(rows), self.size
        self._reserve(k + b)
        gram = rows @ rows.T  # (b, b)
        dots = np.empty((b, k + b))
        means = np.full((b, k + b), -np.inf)
        np.matmul(rows, self.sums[:k].T, out=dots[:, :k])
        np.divide(dots[:, :k], self.counts[:k], out=means[:, :k], where=self.counts[:k] > 0)
        slots, counts, size = [], self.counts, k
        for i in range(b):
            slot = int(means[i].argmax())  # dead and unused slots are at -inf
            if means[i, slot] >= self.t_attach:
                counts[slot] += 1
            else:
                slot, size = size, size + 1
                counts[slot] = 1
                dots[i + 1 :, slot] = 0
            if i + 1 < b:
                column = dots[i + 1 :, slot]
                column += gram[i + 1 :, i]
                np.divide(column, counts[slot], out=means[i + 1 :, slot])
            slots.append(slot)
        self.size = size
        for i, slot in enumerate(slots):
            self.sums[slot] += rows[i]
        self.dirty.update(slots)
        self.fresh.update(slots)
        return slots

    def take(self, slot: int, row: np.ndarray | None) -> bool:
        """Take one post out; without its vector (forgotten, or of an older encoder) its share of the mean.

        Returns False when the cluster is now empty, and its slot dead.
        """
        if self.counts[slot] <= 1:
            self.drop(slot)
            return False
        if row is None:
            row = np.rint(self.mean(slot) * GRID) / GRID
        self.sums[slot] -= row
        self.counts[slot] -= 1
        self.dirty.add(slot)
        self.fresh.add(slot)
        return True

    def drop(self, slot: int) -> None:
        self.sums[slot] = 0
        self.counts[slot] = 0
        self.dirty.discard(slot)
        self.fresh.discard(slot)

    def mean(self, slot: int) -> np.ndarray:
        """The mean vector, not scaled to unit length: its product with a post is the mean similarity."""
        return self.sums[slot] / max(self.counts[slot], 1.0)

    def merge(self, full: bool = True) -> list[tuple[int, int]]:
        """Join, best pair first, all clusters whose average similarity is ≥ t_merge. Returns (lives on, absorbed).

        Exact average linkage (UPGMA), kept sparse: sim(a+b, c) is a weighted mean of sim(a, c) and sim(b, c), so it
        can reach the threshold only if one of them did; the union of two candidate lists is complete.
        The heavier cluster lives on, the older one of a tie. Equal similarities: the oldest pair first.
        A merge that is not full, between two full ones, asks for t_attach: two single posts at t_merge are too
        little evidence (merging fully at every post cost .02 to .05 B³ F1).
        """
        threshold, changed = (self.t_merge, self.dirty) if full else (self.t_attach, self.fresh)
        near, heap = self._candidates(sorted(changed), threshold)
        joined, counts = [], self.counts
        while heap:
            _, i, j, n_i, n_j = heapq.heappop(heap)
            if counts[i] != n_i or counts[j] != n_j:
                continue  # one of them changed or died since: a newer entry says so
            if n_j > n_i:
                i, j = j, i
            joined.append((i, j))
            self.sums[i] += self.sums[j]
            counts[i] += counts[j]
            self.drop(j)
            self.dirty.add(i)
            others = sorted(c for c in (near.pop(i, set()) | near.pop(j, set())) - {i, j} if counts[c] > 0)
            near[i] = set(others)
            if not others:
                continue
            for c in others:
                near[c].discard(j)
                near[c].add(i)
            sims = (self.sums[others] @ self.sums[i]) / (counts[others] * counts[i])
            for c, sim in zip(others, sims.tolist(), strict=True):
                if sim >= threshold:
                    a, z = min(i, c), max(i, c)
                    heapq.heappush(heap, (-sim, a, z, counts[a], counts[z]))
        self.fresh.clear()
        if full:
            self.dirty.clear()
        return joined

    def _candidates(
        self, slots: list[int], threshold: float
    ) -> tuple[dict[int, set[int]], list[tuple[float, int, int, float, float]]]:
        """Pairs at least this similar with one of `slots` in them: as neighbours, and as a heap, best first."""
        near: dict[int, set[int]] = {}
        heap = []
        counts = np.where(self.counts[: self.size] > 0, self.counts[: self.size], np.inf)  # dead: similarity 0
        for start in range(0, len(slots), CHUNK):
            chunk = np.array(slots[start : start + CHUNK])
            sims = self.sums[chunk] @ self.sums[: self.size].T  # (c, size)
            sims /= counts[chunk][:, None] * counts
            sims[np.arange(len(chunk)), chunk] = -np.inf
            for r, j in zip(*(axis.tolist() for axis in np.nonzero(sims >= threshold)), strict=True):
                i = int(chunk[r])
                if j in near.setdefault(i, set()):
                    continue  # seen from the other side
                near[i].add(j)
                near.setdefault(j, set()).add(i)
                a, z = min(i, j), max(i, j)
                heap.append((-float(sims[r, j]), a, z, counts[a], counts[z]))
        heapq.heapify(heap)
        return near, heap

    def compact(self) -> list[int]:
        """Close the gaps dead slots left, keeping order. Returns the old slot of each new one."""
        keep = np.flatnonzero(self.counts[: self.size] > 0)
        moved = {int(old): new for new, old in enumerate(keep)}
        self.sums[: len(keep)], self.counts[: len(keep)] = self.sums[keep], self.counts[keep]
        self.sums[len(keep) : self.size], self.counts[len(keep) : self.size] = 0, 0
        self.size = len(keep)
        self.dirty, self.fresh = {moved[slot] for slot in self.dirty}, {moved[slot] for slot in self.fresh}
        return keep.tolist()

    def _reserve(self, slots: int) -> None:
        if slots > len(self.counts):
            more = max(slots, 2 * len(self.counts)) - len(self.counts)
            self.sums = np.vstack([self.sums, np.zeros((more, self.dim))])
            self.counts = np.concatenate([self.counts, np.zeros(more)])
