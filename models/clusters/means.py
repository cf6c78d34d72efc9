"""The means of the live clusters as blocks of posts are compared with them: nearly all of it in whole numbers.

A mean similarity is that of meanings plus that of words. Words are few in a post: a sparse product. Meanings are
rounded to seven and eight bits (models/screen.py has the product and why), which is off by at most

    |x · m − x̂ · m̂| ≤ ‖x − x̂‖ ‖m‖ + ‖x̂‖ ‖m − m̂‖                                       (Cauchy, Schwarz)

Where even that leaves a similarity below what is asked for, nobody needs it more exactly; elsewhere, at some ten
clusters a post, it is computed from float32 numbers. Half the time of the float32 product over all at 8,000 clusters
of 256 dimensions (AVX2: 32 µs a post instead of 64).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from models.screen import BITS7, BITS8, multiply

__all__ = ["Means", "SLACK", "longer"]

FIRST, WIDEST = 1_024, 2_048  # clusters multiplied at a time: more take less time each, but whole tiles are multiplied
FEW = 8  # posts: below, rounding them and making a sparse product costs more than it saves
SLACK = 1e-4  # a float32 sum of 768 products of unit rows errs by 768 · 2**-24 < 5e-5 at most, its updates by less
MANY = 1 / 16  # of a tile: so many similarities asked for are cheaper as one float32 product


class _Tile:
    """Clusters that are multiplied at once, a column each. start, end: the slots they have."""

    def __init__(self, start: int, width: int, dense: int, words: int) -> None:
        self.start, self.end = start, start + width
        self.words = np.zeros((words, width), np.float32)
        self.codes = np.zeros((dense, width), np.int8)  # the meaning in eight bits


class Means:
    """The mean of each slot's posts, brought up when asked. dense: dimensions of meaning; words: of the rest."""

    def __init__(self, dense: int, words: int) -> None:
        self.dense, self.words = dense, words
        self.stale: set[int] = set()  # slots whose mean is behind
        self._tiles: list[_Tile] = []
        self._meaning = np.zeros((0, dense), np.float32)  # (capacity, dense)
        self._heard = np.zeros((0, words), np.float32)  # (capacity, words): the rest
        self._scale, self._norm, self._lost = (np.zeros(0, np.float32) for _ in range(3))  # (capacity,) of the codes
        self._scratch = np.empty(0, np.float32)  # similarities of a block: asked anew of the system, pages cost more

    def reserve(self, slots: int) -> None:
        """Have room for so many, in whole tiles; memory that is not written to is not taken yet."""
        while (room := self._tiles[-1].end if self._tiles else 0) < slots:
            width = min(max(room, FIRST), WIDEST)
            self._tiles.append(_Tile(room, width, self.dense, self.words))
        for name in ("_meaning", "_heard", "_scale", "_norm", "_lost"):
            setattr(self, name, longer(getattr(self, name), room))

    def bring_up(self, sums: np.ndarray, counts: np.ndarray) -> None:
        """Round the means that changed anew. Never added to: rounding must not pile up."""
        slots = np.array(sorted(self.stale), np.int64)
        self.stale.clear()
        means = sums[slots].astype(np.float32)
        means /= np.maximum(counts[slots], 1.0).astype(np.float32)[:, None]
        meaning, words = means[:, : self.dense], means[:, self.dense :]
        changed = words != self._heard[slots]  # hardly one in ten: writing a whole column misses the cache
        self._meaning[slots], self._heard[slots] = meaning, words
        scale = np.maximum(np.abs(meaning).max(axis=1), 1e-12) / np.float32(BITS8)
        rounded = np.rint(meaning / scale[:, None])
        self._scale[slots], self._norm[slots] = scale, np.linalg.norm(meaning, axis=1)
        self._lost[slots] = np.linalg.norm(meaning - rounded * scale[:, None], axis=1)
        for tile in self._tiles:
            first, last = np.searchsorted(slots, (tile.start, tile.end))
            if first < last:
                column = slots[first:last] - tile.start
                row, word = np.nonzero(changed[first:last])
                tile.words[word, column[row]] = words[first:last][row, word]
                tile.codes[:, column] = rounded[first:last].T

    def similar(self, rows: np.ndarray, size: int, least: float, more: int) -> np.ndarray:
        """(b, ≥ size + more): each row's mean similarity to each cluster, within SLACK where it is ≥ `least`.

        Elsewhere it is some number below that. 0 where there is no cluster. Valid until the next call.
        """
        b, tiles = len(rows), [tile for tile in self._tiles if tile.start < size]
        meaning, words = rows[:, : self.dense].astype(np.float32), rows[:, self.dense :].astype(np.float32)
        known = tiles[-1].end if tiles else 0
        width = known + more
        if len(self._scratch) < b * width:
            self._scratch = np.empty(b * width * 3 // 2, np.float32)
        means = self._scratch[: b * width].reshape(b, width)
        means[:, known:] = 0
        if b < FEW:
            np.matmul(meaning, self._meaning[:known].T, out=means[:, :known])
            for row, word in zip(means, words, strict=True):
                there = np.flatnonzero(word)
                for tile in tiles:
                    row[tile.start : tile.end] += word[there] @ tile.words[there]
            return means
        scale = max(float(np.abs(meaning).max()), 1e-12) / BITS7
        rounded = np.rint(meaning / np.float32(scale))
        kept = rounded * np.float32(scale)
        lost, length = (float(np.linalg.norm(part, axis=1).max()) for part in (meaning - kept, kept))
        codes, said = (rounded + 64).astype(np.uint8), np.nonzero(words)
        ends = np.searchsorted(said[0], np.arange(b + 1))
        sparse = csr_array((words[said], said[1], ends), shape=words.shape)  # from the rows takes four times as long
        for tile in tiles:
            part = slice(tile.start, tile.end)
            dots = multiply(codes, tile.codes, scale, self._scale[part], np.zeros(part.stop - part.start, np.float32))
            beside = sparse @ tile.words if self.words else np.zeros_like(dots)  # (b, width of the tile)
            near = means[:, part]
            np.add(dots, beside, out=near)
            bar = np.float32(least - SLACK) - np.float32(lost) * self._norm[part]
            bar -= np.float32(length) * self._lost[part]
            found = np.flatnonzero(near >= bar)
            if len(found) > MANY * dots.size:
                np.add(meaning @ self._meaning[part].T, beside, out=near)
            else:
                row, slot = np.divmod(found, dots.shape[1])
                exact = np.einsum("ij,ij->i", meaning[row], self._meaning[part][slot])
                near[row, slot] = exact + beside[row, slot]
        return means


def longer(array: np.ndarray, length: int) -> np.ndarray:
    """The array with zero rows after it, up to this length."""
    made = np.zeros((max(length, len(array)), *array.shape[1:]), array.dtype)
    made[: len(array)] = array
    return made
