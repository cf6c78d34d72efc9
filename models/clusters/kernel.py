"""The clusterer's arithmetic: attach by mean similarity, merge by average linkage, both exact.

Every vector is rounded to a grid of 2**-13 (a cosine moves by some 1e-4). A dot product then is a whole number of
2**-26 and a float64 holds it without rounding up to 2**27 posts, in whatever order it is summed. So a post
gives the same similarity computed alone or in a block of 256, on any BLAS and any machine, and a block can be updated
in place as clusters change inside it. Results therefore cannot depend on where a frame ended.

Most of the arithmetic need not be exact to give exact results. A pass over all clusters (means.py) finds, for a block
of posts, the few that may matter; posts can only join those that were near to one of them when the block began, or that
began inside it, and these alone are compared exactly. The same pass says which clusters have come near enough to merge:
see models/clusters/near.py.

Slots are used again, so each has a number of its founding: of equals the older cluster wins. Dead slots have count 0
and wait for the next full merge: until then noted pairs may name them.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator

import numpy as np

from models.clusters.linkage import Linkage
from models.clusters.means import Means, Said, bar_of, longer
from models.clusters.near import Near

__all__ = ["GRID", "Kernel", "to_grid"]

GRID = 8192.0  # 2**13 steps per unit: a row fits int16
FINE = 2.0**20  # grid on which a row's length is taken: its squares still sum without rounding
CHUNK = 256  # rows of the merge product, or pairs, held at once: bounds its memory to CHUNK × clusters


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
        self.born = np.zeros(0, np.int64)  # (capacity,): a lower number is an older cluster
        self.founded = 0  # clusters so far
        self._free: list[int] = []  # dead slots below size that may be used again, a heap
        self._gone: list[int] = []  # those that may not yet
        self._rounded = Means(self.dense, dim - self.dense)
        self._reserve(capacity)
        self.dirty: set[int] = set()  # changed since the last full merge: only their similarities can have risen
        self.fresh: set[int] = set()  # the same since the last merge of either kind
        self._near, self._nearest = Near(), Near()  # pairs to look at in the next full merge, and in the next at all
        self.strange: set[int] = set()  # never compared with the others: open once a post touches them

    def load(
        self, sums: np.ndarray, counts: np.ndarray, dirty: set[int], fresh: set[int], strange: set[int] | None = None
    ) -> None:
        """Start from known clusters, oldest first. sums: (k, d) on the grid; counts: (k,).

        strange: of which it is not known that they are further apart than t_merge, as others are after a merge.
        """
        self.size, self.dirty, self.fresh = 0, dirty, fresh
        self._reserve(len(counts))
        self.size = self.founded = len(counts)
        self.sums[: self.size], self.counts[: self.size] = sums, counts
        self.born[: self.size] = np.arange(self.size)
        self._free, self._gone = [], []
        self._rounded.stale = set(range(self.size))
        self._near, self._nearest = Near(dirty), Near(fresh)
        self.strange = (strange or set()) - dirty

    def place(self, rows: np.ndarray) -> list[int]:
        """Put posts one after another into the nearest cluster with mean similarity ≥ t_attach, else into a new one.

        rows: (b, d) from `to_grid`. Returns each post's slot; one that was dead or beyond the size was founded here.
        A column for each cluster that a post may join, oldest first: as it gains post i it gains Gram column i.
        """
        b, k = len(rows), self.size
        self._reserve(k + b)
        self._rounded.bring_up(self.sums, self.counts)
        said = Said.of(rows[:, self.dense :])
        row, near, about = self._rounded.near(rows, said, k, self.t_merge)
        join = np.unique(near[about >= bar_of(self.t_attach)])
        join = join[np.argsort(self.born[join])]
        width = len(join)
        slots, counts = [*join.tolist(), *[-1] * b], np.ones(width + b)
        counts[:width] = self.counts[join]
        dots, sims = np.zeros((b, width + b)), np.zeros((b, width + b))
        np.matmul(rows, self.sums[join].T, out=dots[:, :width])
        gram = rows @ rows.T
        placed = np.empty(b, np.int64)  # the column of each post
        for i in range(b):
            now = np.divide(dots[i, :width], counts[:width], out=sims[i, :width])
            column = int(now.argmax()) if width else 0
            if width and now[column] >= self.t_attach:
                counts[column] += 1.0
                dots[i + 1 :, column] += gram[i + 1 :, i]
            else:
                column = width
                slots[column] = self._open()
                dots[i + 1 :, column] = gram[i + 1 :, i]
                width += 1
            placed[i] = column
        named = np.array(slots[:width], np.int64)
        self._gain(named[placed], rows, said)
        self._note(named, placed, sims[:, :width], row, near)
        found: list[int] = named[placed].tolist()
        return found

    def _open(self) -> int:
        """A slot for a new cluster."""
        slot = heapq.heappop(self._free) if self._free else self.size
        self.size = max(self.size, slot + 1)
        self.born[slot] = self.founded
        self.founded += 1
        return slot

    def _gain(self, into: np.ndarray, rows: np.ndarray, said: Said) -> None:
        """Add posts to their clusters. into: (b,) slots."""
        order = np.argsort(into, kind="stable")
        begins = np.flatnonzero(np.diff(into[order], prepend=-1))
        slots = into[order[begins]]
        self.sums[slots, : self.dense] += np.add.reduceat(rows[order, : self.dense], begins, axis=0)
        np.add.at(self.sums, (into[said.post], self.dense + said.word), said.value)
        self.counts[slots] += np.diff(begins, append=len(order))
        for changed in (self._rounded.stale, self.dirty, self.fresh):
            changed.update(slots.tolist())

    def _note(self, named: np.ndarray, placed: np.ndarray, sims: np.ndarray, row: np.ndarray, near: np.ndarray) -> None:
        """Keep the pairs of clusters these posts may bring together.

        sims: (b, columns), each row as its post came; row, near: posts and slots that were near when the block began.
        """
        slots = named[placed]
        for noted, threshold in ((self._near, self.t_merge), (self._nearest, self.t_attach)):
            post, column = np.divmod(np.flatnonzero(sims >= threshold), sims.shape[1])
            noted.add(slots[post], named[column])
        changed = np.zeros(self.size, bool)
        changed[named] = True
        still = ~changed[near]
        self._near.add(slots[row[still]], near[still])
        if self.strange:
            met = self.strange.intersection(slots.tolist())
            self._near.open |= met
            self._nearest.open |= met

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
        if self.counts[slot] > 0:
            self._gone.append(slot)
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

        Exact average linkage (models/clusters/linkage.py). A merge that is not full, between two full ones, asks for
        t_attach: two single posts at t_merge are too little evidence (fully at every post cost .02 to .05 B³ F1).
        """
        threshold, noted = (self.t_merge, self._near) if full else (self.t_attach, self._nearest)
        joined: list[tuple[int, int]] = []
        if noted:
            linkage = Linkage(self.sums, self.counts, self.born, self._pairs(noted, threshold), threshold)
            joined = linkage.join(lambda i, j: self._absorb(i, j, full))
        self.fresh.clear()
        self._nearest.clear()
        if full:
            self.strange -= self._near.open
            self.dirty.clear()
            self._near.clear()
            for slot in self._gone:
                heapq.heappush(self._free, slot)
            self._gone = []
        return joined

    def likely(self, slots: Collection[int], among: np.ndarray) -> dict[int, int]:
        """Of each of these slots that has any: the nearest of those `among` that it came near enough to for a full
        merge, which would join the two if nothing came between. among: (size,) bool; equals: the older cluster."""
        pairs = self._near.pairs(self.size)
        asked = np.zeros(self.size, bool)
        asked[list(slots)] = True
        slot, other = (np.concatenate(side) for side in (pairs, pairs[::-1]))
        kept = asked[slot] & among[other]
        slot, other = slot[kept], other[kept]
        self._rounded.bring_up(self.sums, self.counts)
        parts = [slice(start, start + CHUNK) for start in range(0, len(slot), CHUNK)]
        alike = np.concatenate([np.zeros(0, np.float32), *(self._rounded.alike(slot[p], other[p]) for p in parts)])
        order = np.lexsort((self.born[other], -alike))
        order = order[alike[order] >= bar_of(self.t_merge)][::-1]  # the nearest last: it is what a slot keeps
        return dict(zip(slot[order].tolist(), other[order].tolist(), strict=True))

    def _absorb(self, i: int, j: int, full: bool) -> None:
        """Cluster j goes into i."""
        self.sums[i] += self.sums[j]
        self.counts[i] += self.counts[j]
        self._rounded.stale.add(i)
        self._near.absorb(j, i)
        if j in self.strange or i in self.strange:
            self.strange.add(i)
            if not full:  # it counts as dirty until the next full merge, which must look at all of it
                self._near.open.add(i)
        self.drop(j)
        self.dirty.add(i)

    def _pairs(self, noted: Near, threshold: float) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Slots, others and the products of their sums: every pair that may have come as near, some of them twice, and
        hardly any other."""
        self._rounded.bring_up(self.sums, self.counts)
        size, bar = self.size, bar_of(threshold)
        opened = np.array(sorted(noted.open), np.int64)
        for chunk in np.split(opened, range(CHUNK, len(opened), CHUNK)):
            row, others = np.nonzero(self._rounded.compared(chunk, size) >= bar)
            apart = chunk[row] != others
            yield self._multiplied(chunk[row[apart]], others[apart])
        slots, others = noted.pairs(size)
        for start in range(0, len(slots), CHUNK):
            part = slice(start, start + CHUNK)
            alike = self._rounded.alike(slots[part], others[part]) >= bar
            yield self._multiplied(slots[part][alike], others[part][alike])

    def _multiplied(self, slots: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return slots, others, np.einsum("ij,ij->i", self.sums[slots], self.sums[others])

    def compact(self) -> list[int]:
        """Close the gaps dead slots left. Returns the old slot of each new one."""
        keep, size = np.flatnonzero(self.counts[: self.size] > 0), self.size
        moved = np.full(size, -1)
        moved[keep] = np.arange(len(keep))
        if len(keep) < size:
            for each in (self.sums, self.counts, self.born):
                each[: len(keep)] = each[keep]
            self._free, self._gone = [], []
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
            self.born = longer(self.born, capacity)
            self._rounded.reserve(capacity)
