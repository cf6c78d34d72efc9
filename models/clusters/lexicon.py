"""Adds a post's words to its vector: a hashed tf-idf block beside the encoder's dimensions.

    row = [ sqrt(1 − a) · encoder vector,  sqrt(a) · hashed words ]        a = the share of the words

so the similarity of two posts is (1 − a) · cosine of meanings + a · cosine of words, and everything that works on
vectors works unchanged. A compact encoder blurs names and numbers, which is what tells two floods apart; words keep
them. It costs little across languages: clusters of two languages still meet when clusters are merged, by meaning.

Source: feature hashing, Weinberger et al. 2009, https://arxiv.org/abs/0902.2206. Document frequencies are those of the
stream so far, in arrival order, in a fixed table of counters; both fade by halving, so the table follows the stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import sqrt
from zlib import crc32

import numpy as np

from models.clusters.kernel import GRID, to_grid

__all__ = ["Lexicon"]

SLOTS = 512  # dimensions of the block: 256 costs .007 B³ F1, 128 .04
TABLE = 65_536  # counters of document frequency; rare words that share one count as a little less rare
HALVE_AT = 100_000  # posts: then every counter is halved
KEPT = 50_000  # codes of terms, some 6 MB
STEPS = 1_024  # weights are whole multiples of 1/STEPS: no machine rounds the logarithm another way


class Lexicon:
    """Makes the rows the clusterer compares. Its state is the document frequencies."""

    def __init__(self, dim: int, share: float) -> None:
        self.dim, self.share = dim, share
        self.width = dim + (SLOTS if share else 0)
        self.seen = 0
        self.table: np.ndarray = np.zeros(TABLE, np.uint32)
        self._codes = _Codes()

    def rows(self, vectors: np.ndarray, terms: Sequence[Sequence[str]]) -> tuple[np.ndarray, list[bytes]]:
        """Rows to compare, and the same packed, of posts in arrival order; counts their terms.

        vectors: (n, d) unit; terms: of each post. Returns (n, width) float64 unit rows on the grid, and `pack`ed rows.
        """
        pieces = [(np.zeros(0, np.int64), np.zeros(0))]
        start = 0
        while start < len(terms) and self.share:
            end = start + max(HALVE_AT - self.seen, 1)
            at, weights = self._weigh(terms[start:end])
            pieces.append((at + start * SLOTS, weights))
            start = end
            if self.seen >= HALVE_AT:
                self.seen //= 2
                self.table = self.table >> 1
        at, weights = (np.concatenate(each) for each in zip(*pieces, strict=True))
        post, slot = np.divmod(at, SLOTS)
        length = np.sqrt(np.bincount(post, weights * weights, len(terms)))  # of whole numbers: the same in any order
        steps = np.rint(weights * (GRID * sqrt(self.share) / np.maximum(length, 1.0))[post])
        post, slot, steps = (each[steps != 0] for each in (post, slot, steps))
        data = np.stack([slot, steps], axis=1).astype("<i2").tobytes()
        ends = (4 * np.cumsum(np.bincount(post, minlength=len(terms)))).tolist()
        own = [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
        meaning = self._meaning(vectors, own)
        rows = np.zeros((len(terms), self.width))
        np.divide(meaning, GRID, out=rows[:, : self.dim])
        rows[post, self.dim + slot] = steps / GRID
        return rows, self._joined(meaning, own)

    def pack(self, vectors: np.ndarray, words: Sequence[bytes]) -> list[bytes]:
        """Each row as bytes: the encoder's part as int16 grid steps, then (slot, step) of the words that are there.

        A post without words is all meaning, and of unit length like the others.
        """
        return self._joined(self._meaning(vectors, words), words)

    def _meaning(self, vectors: np.ndarray, words: Sequence[bytes]) -> np.ndarray:
        """(n, d) whole grid steps of the encoder's part."""
        shares = np.array([1.0 - self.share if one else 1.0 for one in words])
        steps: np.ndarray = np.rint(to_grid(vectors) * (GRID * np.sqrt(shares))[:, None])
        return steps

    def _joined(self, meaning: np.ndarray, words: Sequence[bytes]) -> list[bytes]:
        data, width = meaning.astype("<i2").tobytes(), 2 * self.dim
        return [data[i * width : (i + 1) * width] + one for i, one in enumerate(words)]

    def unpack(self, packed: Sequence[bytes]) -> np.ndarray:
        """(n, width) float64 rows of what `pack` made."""
        width = 2 * self.dim
        rows = np.zeros((len(packed), self.width))
        rows[:, : self.dim] = np.frombuffer(b"".join(p[:width] for p in packed), "<i2").reshape(-1, self.dim)
        words = [p[width:] for p in packed]
        pairs = np.frombuffer(b"".join(words), "<i2").reshape(-1, 2)
        rows[np.repeat(np.arange(len(packed)), [len(w) // 4 for w in words]), self.dim + pairs[:, 0]] = pairs[:, 1]
        return rows / GRID

    def products(self, packed: Sequence[bytes], row: np.ndarray) -> np.ndarray:
        """(n,): each of what `pack` made times a row of whole grid steps (width,), exact and so in any order."""
        width = 2 * self.dim
        meaning = np.frombuffer(b"".join([p[:width] for p in packed]), "<i2").reshape(-1, self.dim)
        pairs = np.frombuffer(b"".join([p[width:] for p in packed]), "<i2").reshape(-1, 2)
        owner = np.repeat(np.arange(len(packed)), [(len(p) - width) // 4 for p in packed])
        heard = np.bincount(owner, row[self.dim :][pairs[:, 0]] * pairs[:, 1], minlength=len(packed))
        products: np.ndarray = meaning @ row[: self.dim] + heard
        return products

    def repack(self, vectors: np.ndarray, packed: Sequence[bytes], before: Lexicon) -> list[bytes]:
        """The same posts read by another encoder: vectors (n, d) anew, words as they were."""
        return self.pack(vectors, [p[2 * before.dim :] for p in packed])

    def _weigh(self, terms: Sequence[Sequence[str]]) -> tuple[np.ndarray, np.ndarray]:
        """(n,) post · SLOTS + slot, rising, and (n,) signed idf weights, whole numbers. Counts each term once a post.

        As if one term after another: a term is weighed by how often it, or one that shares its counter, came before.
        """
        each = [dict.fromkeys(one) for one in terms]
        codes = np.array([*map(self._codes.__getitem__, chain.from_iterable(each))], np.int64)
        post = np.repeat(np.arange(len(each)), [len(one) for one in each])
        at, slot = (codes >> 9) & (TABLE - 1), codes % SLOTS
        order = np.argsort(at, kind="stable")
        begins = np.flatnonzero(np.diff(at[order], prepend=-1))
        times = np.diff(begins, append=len(order))
        before = np.empty_like(at)
        before[order] = np.arange(len(order)) - np.repeat(begins, times)
        seen = self.seen + 1 + post
        came = np.minimum(self.table[at] + before, seen)
        weights = np.rint(STEPS * np.log((seen + 1) / (came + 1)))
        self.table[at[order][begins]] += times.astype(np.uint32)
        self.seen += len(each)
        signed = np.where(codes >> 31, weights, -weights)
        summed = np.bincount(post * SLOTS + slot, signed, minlength=len(each) * SLOTS)
        there = np.flatnonzero(summed != 0)
        return there, summed[there]


class _Codes(dict[str, int]):
    """The code of each term, kept: most come again."""

    def __missing__(self, term: str) -> int:
        if len(self) >= KEPT:
            self.clear()
        code = self[term] = crc32(term.encode("utf-8", "surrogatepass"))
        return code
