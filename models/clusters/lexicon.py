"""Adds a post's words to its vector: a hashed tf-idf block beside the encoder's dimensions.

    row = [ sqrt(1 − a) · encoder vector,  sqrt(a) · hashed words ]        a = the share of the words

so the similarity of two posts is (1 − a) · cosine of meanings + a · cosine of words, and everything that works on
vectors works unchanged. A compact encoder blurs names and numbers, which is what tells two floods apart; words keep
them. It costs little across languages: clusters of two languages still meet when clusters are merged, by meaning.

Source: feature hashing, Weinberger et al. 2009, https://arxiv.org/abs/0902.2206. Document frequencies are those of the
stream so far, in arrival order, in a fixed table of counters; both fade by halving, so the table follows the stream.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from math import log, sqrt
from zlib import crc32

import numpy as np

from models.clusters.kernel import GRID, to_grid

SLOTS = 512  # dimensions of the block: 256 costs .007 B³ F1, 128 .04
TABLE = 65_536  # counters of document frequency; rare words that share one count as a little less rare
HALVE_AT = 100_000  # posts: then every counter is halved
STEPS = 1_024  # weights are whole multiples of 1/STEPS: no machine rounds the logarithm another way


class Lexicon:
    """Makes the rows the clusterer compares. Its state is the document frequencies."""

    def __init__(self, dim: int, share: float) -> None:
        self.dim, self.share = dim, share
        self.width = dim + (SLOTS if share else 0)
        self.seen = 0
        self.table = array("I", bytes(4 * TABLE))

    def rows(self, vectors: np.ndarray, terms: Sequence[Sequence[str]]) -> tuple[np.ndarray, list[bytes]]:
        """Rows to compare, and the same packed, of posts in arrival order; counts their terms.

        vectors: (n, d) unit; terms: of each post. Returns (n, width) float64 unit rows on the grid, and `pack`ed rows.
        """
        packed = self.pack(vectors, [self._words(one) if self.share else b"" for one in terms])
        return self.unpack(packed), packed

    def pack(self, vectors: np.ndarray, words: Sequence[bytes]) -> list[bytes]:
        """Each row as bytes: the encoder's part as int16 grid steps, then (slot, step) of the words that are there.

        A post without words is all meaning, and of unit length like the others.
        """
        shares = np.array([1.0 - self.share if one else 1.0 for one in words])
        steps = np.rint(to_grid(vectors) * (GRID * np.sqrt(shares))[:, None]).astype("<i2")
        data, width = steps.tobytes(), 2 * self.dim
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

    def repack(self, vectors: np.ndarray, packed: Sequence[bytes], before: Lexicon) -> list[bytes]:
        """The same posts read by another encoder: vectors (n, d) anew, words as they were."""
        return self.pack(vectors, [p[2 * before.dim :] for p in packed])

    def _words(self, terms: Sequence[str]) -> bytes:
        """(slot, step) pairs of one post: signed idf weights, of length sqrt(share). Counts each term once."""
        table, seen = self.table, self.seen + 1
        weights: dict[int, int] = {}
        for term in dict.fromkeys(terms):
            code = crc32(term.encode("utf-8", "surrogatepass"))
            at, slot = (code >> 9) & (TABLE - 1), code % SLOTS
            weight = round(STEPS * log((seen + 1) / (min(table[at], seen) + 1)))
            weights[slot] = weights.get(slot, 0) + (weight if code >> 31 else -weight)
            table[at] += 1
        self.seen = seen
        if seen >= HALVE_AT:
            self.seen //= 2
            self.table = array("I", (np.frombuffer(table, np.uint32) >> 1).tobytes())
        length = sqrt(sum(weight * weight for weight in weights.values()))
        if not length:
            return b""
        scale = GRID * sqrt(self.share) / length
        return struct.pack(f"<{2 * len(weights)}h", *(n for s, w in weights.items() for n in (s, round(w * scale))))
