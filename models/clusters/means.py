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

__all__ = ["SLACK", "Means"]

TILE = 1024  # clusters multiplied at a time: 512 take a third longer, 2,048 as long
FEW = 8  # posts: below, rounding them and making a sparse product costs more than it saves
SLACK = 1e-4  # a float32 sum of 768 products of unit rows errs by 768 · 2**-24 < 5e-5 at most, its updates by less
MANY = 1 / 16  # of a tile: so many similarities asked for are cheaper as one float32 product


class Means:
    """The mean of each slot's posts, brought up when asked. dense: dimensions of meaning; words: of the rest."""

    def __init__(self, dense: int, words: int) -> None:
        self.dense = dense
        self.stale: set[int] = set()  # slots whose mean is behind
        self._meaning = np.zeros((0, dense), np.float32)  # (capacity, dense)
        self._heard = np.zeros((0, words), np.float32)  # (capacity, words): the rest, of the sums
        self._words = np.zeros((0, words, TILE), np.float32)  # the same, a column a cluster
        self._share = np.zeros(0, np.float32)  # (capacity,) 1 / posts
        self._codes = np.zeros((0, dense, TILE), np.int8)  # the meaning in eight bits, a column a cluster
        self._scale, self._norm, self._lost = (np.zeros(0, np.float32) for _ in range(3))  # (capacity,) of the codes
        self._scratch = np.empty(0, np.float32)  # similarities of a block: asked anew of the system, pages cost more

    def reserve(self, slots: int) -> None:
        """Have room for so many, in whole tiles; memory that is not written to is not taken yet."""
        tiles = -(-slots // TILE)
        self._words, self._codes = longer(self._words, tiles), longer(self._codes, tiles)
        for name in ("_meaning", "_heard", "_share", "_scale", "_norm", "_lost"):
            setattr(self, name, longer(getattr(self, name), tiles * TILE))

    def bring_up(self, sums: np.ndarray, counts: np.ndarray) -> None:
        """Round the means that changed anew. Never added to: rounding must not pile up."""
        slots = np.array(sorted(self.stale), np.int64)
        self.stale.clear()
        tile, column = slots // TILE, slots % TILE
        self._share[slots] = 1.0 / np.maximum(counts[slots], 1.0)
        meaning = sums[slots, : self.dense].astype(np.float32) * self._share[slots, None]
        words = sums[slots, self.dense :].astype(np.float32)
        row, word = np.nonzero(words != self._heard[slots])  # a post has a dozen: writing a column misses the cache
        self._words[tile[row], word, column[row]] = words[row, word]
        self._meaning[slots], self._heard[slots] = meaning, words
        scale = np.maximum(np.abs(meaning).max(axis=1), 1e-12) / np.float32(BITS8)
        rounded = np.rint(meaning / scale[:, None])
        self._codes[tile, :, column] = rounded
        self._scale[slots], self._norm[slots] = scale, np.linalg.norm(meaning, axis=1)
        self._lost[slots] = np.linalg.norm(meaning - rounded * scale[:, None], axis=1)

    def similar(self, rows: np.ndarray, size: int, least: float, more: int) -> np.ndarray:
        """(b, ≥ size + more): each row's mean similarity to each cluster, within SLACK where it is ≥ `least`.

        Elsewhere it is some number below that. 0 where there is no cluster. Valid until the next call.
        """
        b, tiles = len(rows), -(-size // TILE)
        meaning, words = rows[:, : self.dense].astype(np.float32), rows[:, self.dense :].astype(np.float32)
        known, width = tiles * TILE, tiles * TILE + more
        if len(self._scratch) < b * width:
            self._scratch = np.empty(b * width * 3 // 2, np.float32)
        means = self._scratch[: b * width].reshape(b, width)
        means[:, known:] = 0
        if b < FEW:
            np.matmul(meaning, self._meaning[:known].T, out=means[:, :known])
            for row, word in zip(means, words, strict=True):
                there = np.flatnonzero(word)
                row[:known] += np.matmul(word[there], self._words[:tiles, there]).ravel() * self._share[:known]
            return means
        scale = max(float(np.abs(meaning).max()), 1e-12) / BITS7
        rounded = np.rint(meaning / np.float32(scale))
        kept = rounded * np.float32(scale)
        lost, length = (float(np.linalg.norm(part, axis=1).max()) for part in (meaning - kept, kept))
        codes, sparse = (rounded + 64).astype(np.uint8), csr_array(words)
        nothing = np.zeros(TILE, np.float32)
        for tile in range(tiles):
            part = slice(tile * TILE, (tile + 1) * TILE)
            dots = multiply(codes, self._codes[tile], scale, self._scale[part], nothing)  # (b, TILE)
            beside = sparse @ self._words[tile] if words.shape[1] else np.zeros_like(dots)
            beside *= self._share[part]
            dots += beside
            bar = np.float32(least - SLACK) - np.float32(lost) * self._norm[part]
            bar -= np.float32(length) * self._lost[part]
            near = np.flatnonzero(dots >= bar)
            if len(near) > MANY * dots.size:
                dots = np.add(meaning @ self._meaning[part].T, beside, out=dots)
            else:
                row, slot = np.divmod(near, TILE)
                exact = np.einsum("ij,ij->i", meaning[row], self._meaning[part][slot])
                dots[row, slot] = exact + beside[row, slot]
            means[:, part] = dots
        return means


def longer(array: np.ndarray, length: int) -> np.ndarray:
    """The array with zero rows after it, up to this length."""
    made = np.zeros((max(length, len(array)), *array.shape[1:]), array.dtype)
    made[: len(array)] = array
    return made
