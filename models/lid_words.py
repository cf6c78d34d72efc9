"""fastText's lid.176 read word by word: which language texts are in, many at a time, each word looked up once.

The model asks a tree of questions about the mean of what the words of a text say, and what a word says hangs on that
word alone: its row, if it has one, and those of its groups of two to four letters. So words are kept, where the library
takes every text apart anew and hashes each of its groups: per text 7 times as long. Source: Joulin et al. 2016, Bag of
Tricks (https://arxiv.org/abs/1607.01759) and FastText.zip (https://arxiv.org/abs/1612.03651); file and arithmetic are
those of dictionary.cc, productquantizer.cc and loss.cc in https://github.com/facebookresearch/fastText, v0.9.2. A test
holds the answers against the library's.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import numpy as np
from scipy.sparse import csr_array

from models.lid_file import Tables, read_tables

__all__ = ["WordModel"]

KEPT = 100_000  # words, some 25 MB: beyond them all are forgotten
_PRIME, _BASIS = np.uint32(16_777_619), np.uint32(2_166_136_261)  # FNV-1a, 32 bits
_END = "</s>"  # of the line: the library reads it as a word


class _Places(dict[str, int]):
    """Word → its place; a new one gets the next, and is noted to be read."""

    def __init__(self) -> None:
        self.new: list[str] = []

    def __missing__(self, word: str) -> int:
        self.new.append(word)
        place = self[word] = len(self)
        return place


class WordModel:
    """The model of one file, which has to be quantised and to answer by a tree. Safe to ask from several threads."""

    def __init__(self, path: Path) -> None:
        self._tables: Tables = read_tables(path)
        self.labels: list[str] = self._tables.labels
        self._paths = _paths(self._tables.counts)
        self._turn = Lock()
        self.forget()

    def forget(self) -> None:
        """The words that were kept."""
        self._places = _Places()
        self._sums = np.zeros((1, self._tables.rows.shape[1]), np.float32)  # (≥ words, d): of a word's rows
        self._counts = np.zeros(1, np.float32)  # (≥ words,): how many rows that were

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """(n, labels) float32: how likely each label is of each text, n ≥ 1; what the library's `predict` tells.

        texts: a line each, words parted by a blank.
        """
        lines = [text if _END not in text else f" {text} ".partition(f" {_END} ")[0] for text in texts]
        words = f" {_END} ".join([*lines, ""]).split(" ")[:-1]  # each line and its end
        starts = np.cumsum([0, *(line.count(" ") + 2 for line in lines[:-1])])
        with self._turn:
            at = self._found(words)
            sums = np.add.reduceat(self._sums[at], starts)
            means = sums / np.add.reduceat(self._counts[at], starts)[:, None]
        yes = 1 / (1 + np.exp(-(self._tables.forks.astype(np.float64) @ means.T)))  # (forks, n); of e^559 at most
        turns = np.log(np.concatenate([1 - yes, yes]) + np.float32(1e-5))
        found: np.ndarray = np.exp(self._paths @ turns).T
        return found

    def _found(self, words: list[str]) -> np.ndarray:
        """The places of the words; new ones are read."""
        if len(self._places) > KEPT:
            self.forget()
        at = np.fromiter(map(self._places.__getitem__, words), np.intp, len(words))
        if new := self._places.new:
            sums, counts = self._read(new)
            first, end = len(self._places) - len(new), len(self._places)
            if end > len(self._sums):
                self._sums = np.resize(self._sums, (2 * end, self._sums.shape[1]))
                self._counts = np.resize(self._counts, 2 * end)
            self._sums[first:end], self._counts[first:end] = sums, counts
            self._places.new = []
        return at

    def _read(self, words: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """(n, d) and (n,) float32: of each word the sum of its rows, and how many they are."""
        tables, places = self._tables, self._tables.words
        own = [(i, places[word]) for i, word in enumerate(words) if word in places]
        owners, rows = [np.array([i for i, _ in own], np.intp)], [np.array([row for _, row in own], np.intp)]
        marked = [b"" if word in ("", _END) else b"<%s>" % word.encode(errors="replace") for word in words]
        for owner, hashes in _groups(marked, tables.shortest, tables.longest):
            found = tables.hashed[hashes % np.uint32(len(tables.hashed))]
            owners.append(owner[found >= 0])
            rows.append(found[found >= 0])
        owner = np.concatenate(owners)
        order, counts = np.argsort(owner, kind="stable"), np.bincount(owner, minlength=len(words))
        begins, row = np.cumsum([0, *counts]), np.concatenate(rows)[order]
        sums = csr_array((np.ones(len(row), np.float32), row, begins), (len(words), len(tables.rows))) @ tables.rows
        return sums, counts.astype(np.float32)


def _groups(words: Sequence[bytes], shortest: int, longest: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each length in characters: the places of the words that groups of it stand in, and the groups' hashes.

    words: UTF-8. All words at once: a hash is begun at every character and goes on for `longest` of them.
    """
    together = np.frombuffer(b"".join(words), np.uint8)
    begins = np.flatnonzero((together & 0xC0) != 0x80)  # of characters
    size = np.diff(begins, append=len(together))
    owner = np.repeat(np.arange(len(words)), list(map(len, words)))[begins]
    signed = together.view(np.int8).astype(np.uint32)  # the library extends the sign
    hashes = np.full(len(begins), _BASIS)
    found = []
    for n in range(1, longest + 1):
        last = slice(n - 1, None)  # of the group that begins n − 1 characters before
        hashes = hashes[: max(0, len(begins) - n + 1)]
        for byte in range(int(size.max(initial=1))):
            there = size[last] > byte
            hashes[there] = (hashes[there] ^ signed[begins[last][there] + byte]) * _PRIME
        if n >= shortest:
            inside = owner[: len(hashes)] == owner[last]
            found.append((owner[last][inside], hashes[inside]))
    return found


def _paths(counts: Sequence[int]) -> csr_array:
    """(labels, 2 × forks): the turns that lead to each label, first those to the left; a Huffman tree of the counts.

    counts: of the labels, falling.
    """
    leaves = len(counts)
    weights = [*counts, *[10**15] * (leaves - 1)]
    above: dict[int, tuple[int, int]] = {}  # node → the fork above it, and whether it lies to its right
    leaf, node = leaves - 1, leaves
    for fork in range(leaves - 1):
        weights[leaves + fork] = 0
        for right in (0, 1):
            if leaf >= 0 and (node == leaves + fork or weights[leaf] < weights[node]):
                least, leaf = leaf, leaf - 1
            else:
                least, node = node, node + 1
            above[least] = fork, right
            weights[leaves + fork] += weights[least]
    rows, columns = [], []
    for label in range(leaves):
        at = label
        while at in above:
            fork, right = above[at]
            rows.append(label)
            columns.append(fork + right * (leaves - 1))
            at = leaves + fork
    return csr_array((np.ones(len(rows), np.float32), (rows, columns)), (leaves, 2 * (leaves - 1)))
