"""The means of the live clusters as blocks of posts are compared with them: nearly all of it in whole numbers.

A mean similarity is that of meanings plus that of words, of which a post has few: theirs is a sparse product. Of many
clusters both are rounded: meanings to seven and eight bits (models/screen.py has the product and why), words to
sixteen. That is off by at most

    |x · m − x̂ · m̂| ≤ ‖x − x̂‖ ‖m‖ + ‖x̂‖ ‖m − m̂‖                                       (Cauchy, Schwarz)

Where even that leaves a similarity below what is asked for, nobody needs it; elsewhere, at some thirty clusters a post,
it is computed from float32 numbers. Of few clusters all are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from models.screen import BITS7, BITS8, multiply

__all__ = ["Means", "Said", "bar_of", "longer"]

TILE = 2_048  # clusters multiplied at a time: whole tiles are, and each costs 1 µs a post beside
FEW = 2_048  # clusters that are compared in float32
SLACK = 1e-4  # a float32 sum of 768 products of unit rows errs by 768 · 2**-24 < 5e-5 at most
NOWHERE = -8.0  # lost by the mean of a dead slot: so far below every bar that no product reaches it
MANY = 1 / 32  # of a tile: so many similarities asked for are cheaper as one float32 product
SAID, HEARD = 128, 200  # steps per unit of a post's words and of a mean's: with any words no sum leaves sixteen bits


class _Tile:
    """Clusters that are multiplied at once, a column each. start, end: the slots they have."""

    def __init__(self, start: int, dense: int, words: int) -> None:
        self.start, self.end = start, start + TILE
        self.words = np.zeros((words, TILE), np.int16)
        self.codes = np.zeros((dense, TILE), np.int8)  # the meaning


class Said(NamedTuple):
    """The words of a block of posts: (n,) post, rising, (n,) word and (n,) value."""

    post: np.ndarray
    word: np.ndarray
    value: np.ndarray

    @classmethod
    def of(cls, words: np.ndarray) -> Said:
        """words: (b, words)."""
        post, word = np.divmod(np.flatnonzero(words != 0), max(words.shape[1], 1))
        return cls(post, word, words[post, word])


class _Rounded(NamedTuple):
    """A block of posts in whole numbers. lost, length: the most that any of them lost, and its length."""

    codes: np.ndarray
    scale: float
    words: csr_array | None
    lost: np.float32
    length: np.float32


class Means:
    """The mean of each slot's posts, brought up when asked. dense: dimensions of meaning; words: of the rest."""

    def __init__(self, dense: int, words: int) -> None:
        self.dense, self.words = dense, words
        self.stale: set[int] = set()  # slots whose mean is behind
        self._uncoded: set[int] = set()  # slots whose codes are
        self._tiles: list[_Tile] = []
        self._meaning = np.zeros((0, dense), np.float32)  # (capacity, dense)
        self._words = np.zeros((0, words), np.float32)  # (capacity, words)
        self._by_word = np.zeros((words, 256), np.float32)  # the same of the first slots, a column each
        self._heard = np.zeros((0, words), np.int16)  # (capacity, words): as in the tiles
        self._scale, self._norm, self._lost = (np.zeros(0, np.float32) for _ in range(3))  # (capacity,) of the codes

    def reserve(self, slots: int) -> None:
        """Have room for so many, in whole tiles; memory that is not written to is not taken yet."""
        while (room := self._tiles[-1].end if self._tiles else 0) < slots:
            self._tiles.append(_Tile(room, self.dense, self.words))
        for name in ("_meaning", "_words", "_heard", "_scale", "_norm", "_lost"):
            setattr(self, name, longer(getattr(self, name), room))

    def bring_up(self, sums: np.ndarray, counts: np.ndarray) -> None:
        """Take the means that changed anew. Never added to: rounding must not pile up."""
        if self.stale:
            slots = np.array(sorted(self.stale), np.int64)
            means = (sums[slots] / np.maximum(counts[slots], 1.0)[:, None]).astype(np.float32)
            words = means[:, self.dense :]
            row, word = np.nonzero(words != self._words[slots])  # few: writing whole columns misses the cache
            few = slots[row] < self._by_word.shape[1]
            self._by_word[word[few], slots[row[few]]] = words[row[few], word[few]]
            self._meaning[slots], self._words[slots] = means[:, : self.dense], words
            self._uncoded |= self.stale
            self.stale.clear()

    def _code(self) -> None:
        """Round the means that changed, for whole numbers to be multiplied. Those of slots that died stay as they are:
        nothing reaches them."""
        slots = np.array(sorted(self._uncoded), np.int64)
        self._uncoded.clear()
        lives = self._meaning[slots].any(axis=1) | self._words[slots].any(axis=1)
        self._lost[slots[~lives]] = NOWHERE
        slots = slots[lives]
        meaning, words = self._meaning[slots], self._words[slots]
        scale = np.maximum(np.abs(meaning).max(axis=1), 1e-12) / np.float32(BITS8)
        codes, heard = np.rint(meaning / scale[:, None]), np.rint(words * np.float32(HEARD))
        self._scale[slots], self._norm[slots] = scale, _length(meaning, words)
        self._lost[slots] = _length(meaning - codes * scale[:, None], words - heard / np.float32(HEARD))
        codes, heard = codes.astype(np.int8), heard.astype(np.int16)
        changed = heard != self._heard[slots]  # hardly one in ten: writing a whole column misses the cache
        self._heard[slots] = heard
        for tile in self._tiles:
            first, last = np.searchsorted(slots, (tile.start, tile.end))
            if first < last:
                column = slots[first:last] - tile.start
                row, word = np.nonzero(changed[first:last])
                tile.words[word, column[row]] = heard[first:last][row, word]
                tile.codes[:, column] = codes[first:last].T

    def near(self, rows: np.ndarray, said: Said, size: int, least: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(n,) posts, (n,) slots and (n,) float32 mean similarities within SLACK: all pairs at least `least` alike,
        and none further than SLACK below. rows: (b, dense + words), on the grid; of `size` slots.
        """
        meaning, bar = rows[:, : self.dense].astype(np.float32), bar_of(least)
        if size <= FEW:
            self._widen(size)
            sims = self._products(meaning, said, slice(0, size))
            posts, slots = np.divmod(np.flatnonzero(sims >= bar), size)
            return posts, slots, sims[posts, slots]
        self._code()
        kept = self._rounded(meaning, said)
        found = [self._in(tile, meaning, said, kept, bar) for tile in self._tiles if tile.start < size]
        posts, slots, sims = (np.concatenate(part) for part in zip(*found, strict=True))
        return posts, slots, sims

    def alike(self, slots: np.ndarray, others: np.ndarray) -> np.ndarray:
        """(n,) float32: the average similarity of each pair of clusters, within SLACK."""
        parts = (np.einsum("ij,ij->i", part[slots], part[others]) for part in (self._meaning, self._words))
        alike: np.ndarray = sum(parts)
        return alike

    def compared(self, slots: np.ndarray, size: int) -> np.ndarray:
        """(n, size) float32: the average similarity of these clusters with each, within SLACK."""
        compared: np.ndarray = self._meaning[slots] @ self._meaning[:size].T + self._words[slots] @ self._words[:size].T
        return compared

    def _rounded(self, meaning: np.ndarray, said: Said) -> _Rounded:
        scale = np.float32(max(float(np.abs(meaning).max()), 1e-12) / BITS7)
        codes, words = np.rint(meaning / scale), np.rint(said.value * SAID)
        kept, b = codes * scale, len(meaning)
        lost, length = (
            np.sqrt((np.einsum("ij,ij->i", part, part) + np.bincount(said.post, word * word, b)).max())
            for part, word in ((meaning - kept, said.value - words / SAID), (kept, words / SAID))
        )
        sparse = self._sparse(said, words.astype(np.int16), b) if self.words else None
        return _Rounded((codes + 64).astype(np.uint8), float(scale), sparse, np.float32(lost), np.float32(length))

    def _in(
        self, tile: _Tile, meaning: np.ndarray, said: Said, kept: _Rounded, bar: np.float32
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`near` of one tile."""
        part = slice(tile.start, tile.end)
        bound = kept.lost * self._norm[part] + kept.length * self._lost[part] - bar
        most = multiply(kept.codes, tile.codes, kept.scale, self._scale[part], bound)  # (b, width): may reach, if ≥ 0
        if kept.words is not None:
            most += (kept.words @ tile.words) * np.float32(1 / (SAID * HEARD))
        found = np.flatnonzero(most >= 0)
        posts, slots = np.divmod(found, most.shape[1])
        slots += tile.start
        if len(found) > MANY * most.size:
            sims = self._products(meaning, said, part)[posts, slots - tile.start]
        else:
            sims = self._of_pairs(meaning, said, posts, slots)
        reach = sims >= bar
        return posts[reach], slots[reach], sims[reach]

    def _products(self, meaning: np.ndarray, said: Said, part: slice) -> np.ndarray:
        """(b, slots of the part) float32: every similarity."""
        products: np.ndarray = meaning @ self._meaning[part].T
        if self.words:
            first = part.start == 0 and part.stop <= self._by_word.shape[1]
            by_word = self._by_word if first else self._words[part].T
            words = self._sparse(said, said.value.astype(np.float32), len(meaning)) @ by_word
            products += words[:, : products.shape[1]]
        return products

    def _of_pairs(self, meaning: np.ndarray, said: Said, posts: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """(n,) float32: the similarity of each post with a slot."""
        ends = np.searchsorted(said.post, np.arange(len(meaning) + 1))
        many = np.diff(ends)[posts]
        pair = np.repeat(np.arange(len(posts)), many)
        nth = np.arange(len(pair)) + np.repeat(ends[posts] - np.cumsum(many) + many, many)  # of all words
        words = np.bincount(pair, said.value[nth] * self._words[slots[pair], said.word[nth]], len(posts))
        sims: np.ndarray = np.einsum("ij,ij->i", meaning[posts], self._meaning[slots]) + words.astype(np.float32)
        return sims

    def _sparse(self, said: Said, values: np.ndarray, b: int) -> csr_array:
        """(b, words)."""
        return csr_array((values, said.word, np.searchsorted(said.post, np.arange(b + 1))), shape=(b, self.words))

    def _widen(self, size: int) -> None:
        """Room for the words of so many slots; all of it is multiplied."""
        if size > (width := self._by_word.shape[1]):
            while width < size:
                width *= 2
            self._by_word = np.ascontiguousarray(longer(self._words, width)[:width].T)


def bar_of(least: float) -> np.float32:
    """What a float32 similarity has where the exact one is at least so much; never that of a dead slot, 0."""
    return np.float32(max(least - SLACK, 1e-9))


def _length(meaning: np.ndarray, words: np.ndarray) -> np.ndarray:
    """(n,): of rows that are both."""
    length: np.ndarray = np.sqrt(sum(np.einsum("ij,ij->i", part, part) for part in (meaning, words)))
    return length


def longer(array: np.ndarray, length: int) -> np.ndarray:
    """The array with zero rows after it, up to this length."""
    made = np.zeros((max(length, len(array)), *array.shape[1:]), array.dtype)
    made[: len(array)] = array
    return made
