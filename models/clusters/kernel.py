"""The clusterer's arithmetic: attach by mean similarity, merge by average linkage, both exact.

Every vector is rounded to a grid of 2**-13 (a cosine moves by some 1e-4). A dot product then is a whole number of
2**-26 and a float64 holds it without rounding up to 2**27 posts, in whatever order it is summed. So a post
gives the same similarity computed alone or in a block of 256, on any BLAS and any machine, and a block can be updated
in place as clusters change inside it. Results therefore cannot depend on where a frame ended.

Most of the arithmetic need not be exact to give exact results. A pass over all clusters (means.py) is off by less than
SLACK wherever a similarity may matter; where that leaves the decision open, and only there, the exact numbers are
asked. The same pass says which clusters have come near enough to merge: see `merge`.

Slots are in order of founding: a lower slot is an older cluster, and ties go to it. Dead slots have count 0 until
`compact` closes the gaps.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from models.clusters.means import SLACK, Means, longer
from models.clusters.near import Near

__all__ = ["GRID", "Kernel", "to_grid"]

GRID = 8192.0  # 2**13 steps per unit: a row fits int16
FINE = 2.0**20  # grid on which a row's length is taken: its squares still sum without rounding
CHUNK = 256  # rows of the merge product held at once: bounds its memory to CHUNK × clusters
FEW = 256  # clusters: so many are compared exactly, in one product


def to_grid(vectors: np.ndarray) -> np.ndarray:
    """Scale rows to unit length and round them to the grid. (n, d) any float -> (n, d) float64; a zero row stays zero.

    The length is taken of a row on a finer grid: its sum is then exact, so the result does not depend on the shape.
    """
    fine = np.rint(np.asarray(vectors, dtype=np.float64) * FINE)
    length = np.sqrt((fine * fine).sum(axis=1, keepdims=True))
    rounded: np.ndarray = np.rint(fine * (GRID / np.maximum(length, 1.0))) / GRID
    return rounded


class Kernel:
    """Sums and counts of the live clusters, one slot each.

    dim: width of a row; dense: how many of its leading dimensions are rarely zero (the others hold a post's words).
    """

    def __init__(
        self, dim: int, t_attach: float, t_merge: float, dense: int | None = None, capacity: int = 1024
    ) -> None:
        self.dim, self.t_attach, self.t_merge = dim, t_attach, t_merge
        self.dense = dim if dense is None else dense
        self.size = 0  # slots in use, dead ones included
        self.sums = np.zeros((0, dim))  # (capacity, d), on the grid
        self.counts = np.zeros(0)  # (capacity,), 0 = dead
        self._rounded = Means(self.dense, dim - self.dense)
        self._reserve(capacity)
        self.dirty: set[int] = set()  # changed since the last full merge: only their similarities can have risen
        self.fresh: set[int] = set()  # the same since the last merge of either kind
        self._near, self._nearest = Near(), Near()  # pairs to look at in the next full merge, and in the next at all
        self.strange: set[int] = set()  # never compared with the others: open once a post touches them

    def load(
        self, sums: np.ndarray, counts: np.ndarray, dirty: set[int], fresh: set[int], strange: set[int] | None = None
    ) -> None:
        """Start from known clusters. sums: (k, d) on the grid; counts: (k,).

        strange: of which it is not known that they are further apart than t_merge, as others are after a merge.
        """
        self.size, self.dirty, self.fresh = 0, dirty, fresh
        self._reserve(len(counts))
        self.size = len(counts)
        self.sums[: self.size], self.counts[: self.size] = sums, counts
        self._rounded.stale = set(range(self.size))
        self._near, self._nearest = Near(dirty), Near(fresh)
        self.strange = (strange or set()) - dirty

    def place(self, rows: np.ndarray) -> list[int]:
        """Put posts one after another into the nearest cluster with mean similarity ≥ t_attach, else into a new one.

        rows: (b, d) from `to_grid`. Returns each post's slot; a slot ≥ the size before the call was founded here.
        The product with all sums is taken once; as a cluster gains post i its column gains Gram column i.
        """
        b, k = len(rows), self.size
        self._reserve(k + b)
        sums, counts = self.sums, self.counts
        means = self._means(rows)  # (b, ≥ k + b) float32; row i is right, within SLACK, when post i comes
        gram, floats = rows @ rows.T, rows.astype(np.float32)  # (b, b), (b, d)
        known = self._known(floats, means)
        slots, size = [], k
        surely, maybe = self.t_attach + SLACK, self.t_attach - SLACK
        for i in range(b):
            near = means[i, :size]
            slot = int(near.argmax()) if size else -1
            best = near[slot] if size else -1.0
            if best >= maybe:
                rivals = np.flatnonzero(near >= max(best - 2 * SLACK, maybe))
                if len(rivals) > 1 or best < surely:
                    exact = (sums[rivals] @ rows[i]) / counts[rivals]
                    first = int(exact.argmax())
                    slot, best = int(rivals[first]), exact[first]
            if best >= self.t_attach:
                n = counts[slot]
                if i + 1 < b:
                    column = means[i + 1 :, slot]
                    if slot < k and not known[slot]:  # only as far as it decides anything: now all of it
                        known[slot] = True
                        column[:] = floats[i + 1 :] @ (sums[slot] / n).astype(np.float32)
                    column *= n
                    column += gram[i + 1 :, i]
                    column /= n + 1.0
            else:
                slot, size, n = size, size + 1, 0.0
                means[i + 1 :, slot] = gram[i + 1 :, i]
            counts[slot] = n + 1.0
            sums[slot] += rows[i]
            slots.append(slot)
        self.size = size
        placed = np.array(slots, np.int64)
        self._rounded.stale.update(slots)
        self.dirty.update(slots)
        self.fresh.update(slots)
        self._note(placed, means[:, :size])
        return slots

    def _known(self, floats: np.ndarray, means: np.ndarray) -> np.ndarray:
        """(size,) bool: whose similarities are right for every post of the block, not only where they decide anything.

        Made so for the clusters nearest to one of the posts: most get it, and one product is cheaper than many.
        """
        known: np.ndarray = np.full(self.size, self.size <= FEW)
        if self.size > FEW:
            first = means[:, : self.size].argmax(axis=1)
            slots = np.unique(first[means[np.arange(len(means)), first] >= self.t_attach - SLACK])
            centres = (self.sums[slots] / self.counts[slots][:, None]).astype(np.float32)
            means[:, slots] = floats @ centres.T
            known[slots] = True
        return known

    def _note(self, slots: np.ndarray, means: np.ndarray) -> None:
        """Keep the pairs of clusters these posts may bring together. means: (b, size), each row as its post came."""
        found = np.flatnonzero(means >= self.t_merge - SLACK)
        row, others = np.divmod(found, means.shape[1])
        self._near.add(slots[row], others)
        close = means[row, others] >= self.t_attach - SLACK
        self._nearest.add(slots[row[close]], others[close])
        if self.strange:
            met = self.strange.intersection(slots.tolist())
            self._near.open |= met
            self._nearest.open |= met

    def _means(self, rows: np.ndarray) -> np.ndarray:
        """(b, ≥ size + b): each row's mean similarity to each cluster, within SLACK where it may decide anything."""
        if self.size > FEW:
            self._rounded.bring_up(self.sums, self.counts)
            return self._rounded.similar(rows, self.size, self.t_merge - SLACK, len(rows))
        means: np.ndarray = np.zeros((len(rows), self.size + len(rows)))
        shares: np.ndarray = np.zeros(self.size)
        np.divide(1.0, self.counts[: self.size], out=shares, where=self.counts[: self.size] > 0)
        np.matmul(rows, self.sums[: self.size].T, out=means[:, : self.size])
        means[:, : self.size] *= shares
        return means

    def remove(self, slot: int, row: np.ndarray | None) -> bool:
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
        self._rounded.stale.add(slot)
        self.dirty.add(slot)
        self.fresh.add(slot)
        self._near.open.add(slot)
        self._nearest.open.add(slot)
        return True

    def drop(self, slot: int) -> None:
        self.sums[slot] = 0
        self.counts[slot] = 0
        self._rounded.stale.add(slot)
        self.dirty.discard(slot)
        self.fresh.discard(slot)
        self._near.drop(slot)
        self._nearest.drop(slot)
        self.strange.discard(slot)

    def mean(self, slot: int) -> np.ndarray:
        """The mean vector, not scaled to unit length: its product with a post is the mean similarity."""
        mean: np.ndarray = self.sums[slot] / max(self.counts[slot], 1.0)
        return mean

    def merge(self, full: bool = True) -> list[tuple[int, int]]:
        """Join, best pair first, all clusters whose average similarity is ≥ t_merge. Returns (lives on, absorbed).

        Exact average linkage (UPGMA), kept sparse: sim(a+b, c) is a weighted mean of sim(a, c) and sim(b, c), so it
        can reach the threshold only if one of them did; the union of two candidate lists is complete.
        The heavier cluster lives on, the older one of a tie. Equal similarities: the oldest pair first.
        A merge that is not full, between two full ones, asks for t_attach: two single posts at t_merge are too
        little evidence (merging fully at every post cost .02 to .05 B³ F1).
        """
        threshold, noted = (self.t_merge, self._near) if full else (self.t_attach, self._nearest)
        near, heap = self._candidates(noted, threshold) if noted else ({}, [])
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
            self._rounded.stale.add(i)
            self._near.absorb(j, i)
            if j in self.strange or i in self.strange:
                self.strange.add(i)
                if not full:  # it counts as dirty until the next full merge, which must look at all of it
                    self._near.open.add(i)
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
        self._nearest.clear()
        if full:
            self.strange -= self._near.open
            self.dirty.clear()
            self._near.clear()
        return joined

    def _candidates(
        self, noted: Near, threshold: float
    ) -> tuple[dict[int, set[int]], list[tuple[float, int, int, float, float]]]:
        """Pairs at least this similar that were not before: as neighbours, and as a heap, best first."""
        near: dict[int, set[int]] = {}
        heap = []
        for i, others, sims in self._compared(noted):
            above = sims >= threshold
            for j, sim in zip(others[above].tolist(), sims[above].tolist(), strict=True):
                if j in near.setdefault(i, set()):
                    continue  # seen from the other side
                near[i].add(j)
                near.setdefault(j, set()).add(i)
                a, z = min(i, j), max(i, j)
                heap.append((-sim, a, z, self.counts[a], self.counts[z]))
        heapq.heapify(heap)
        return near, heap

    def _compared(self, noted: Near) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Slots, others and their similarities, exact: every pair that may have come nearer, and some more."""
        sums, counts = self.sums, self.counts
        live = np.flatnonzero(counts[: self.size] > 0)
        opened = np.array(sorted(noted.open), np.int64)
        for chunk in np.split(opened, range(CHUNK, len(opened), CHUNK)):
            dots = sums[chunk] @ sums[: self.size].T  # (chunk, size)
            for i, row in zip(chunk.tolist(), dots, strict=True):
                others = live[live != i]
                yield i, others, row[others] / (counts[others] * counts[i])
        slots, others = noted.pairs(self.size)
        alive = (counts[slots] > 0) & (counts[others] > 0)
        slots, others = slots[alive], others[alive]
        for beside in np.split(np.arange(len(slots)), np.flatnonzero(np.diff(slots)) + 1) if len(slots) else ():
            i, beside = int(slots[beside[0]]), others[beside]
            yield i, beside, (sums[beside] @ sums[i]) / (counts[beside] * counts[i])

    def compact(self) -> list[int]:
        """Close the gaps dead slots left, keeping order. Returns the old slot of each new one."""
        keep, size = np.flatnonzero(self.counts[: self.size] > 0), self.size
        moved = np.full(size, -1)
        moved[keep] = np.arange(len(keep))
        if len(keep) < size:
            self.sums[: len(keep)], self.counts[: len(keep)] = self.sums[keep], self.counts[keep]
            self.sums[len(keep) : size], self.counts[len(keep) : size] = 0, 0
            self.size = len(keep)
            self._rounded.stale = set(range(size))
            for noted in (self._near, self._nearest):
                noted.move(moved)
            for changed in (self.dirty, self.fresh, self.strange):
                renamed = moved[list(changed)].tolist() if changed else []
                changed.clear()
                changed.update(renamed)
        return keep.tolist()

    def _reserve(self, slots: int) -> None:
        if slots > len(self.counts):
            capacity = max(slots, len(self.counts) * 3 // 2)
            self.sums, self.counts = longer(self.sums, capacity), longer(self.counts, capacity)
            self._rounded.reserve(capacity)
