"""The file of a quantised fastText classifier as arrays. Source: see models/lid_words.py, which reads texts with it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.errors import CrisisError

__all__ = ["Tables", "read_tables"]

_MAGIC, _VERSION = 793_712_314, 12
_BY_TREE = 1  # the loss: hierarchical softmax
_PREFIX = "__label__"
_CODES = 256  # centroids of a part of a vector


class Tables(NamedTuple):
    """What the file holds, unpacked."""

    words: dict[str, int]  # → the row of each
    labels: list[str]  # without their prefix, the commonest first
    counts: list[int]  # of the labels
    rows: np.ndarray  # (words and groups of letters, d) float32
    forks: np.ndarray  # (labels − 1, d) float32
    hashed: np.ndarray  # (buckets,) int32: the row of the groups of letters with that hash; -1: it was left out
    shortest: int  # characters of such a group
    longest: int


class _Bytes:
    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def values(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from(f"<{form}", self._content, self._at)
        self._at += struct.calcsize(f"<{form}")
        return found

    def array(self, kind: str, count: int) -> np.ndarray:
        found: np.ndarray = np.frombuffer(self._content, kind, count, self._at)
        self._at += found.nbytes
        return found

    def name(self) -> str:
        end = self._content.index(0, self._at)
        found = self._content[self._at : end].decode()
        self._at = end + 1
        return found


def read_tables(path: Path) -> Tables:
    """Read it, 20 ms for a million bytes. Raises CrisisError if it is of another kind."""
    file = _Bytes(path.read_bytes())
    if file.values("ii") != (_MAGIC, _VERSION):
        raise CrisisError(f"{path} is no fastText model of version {_VERSION}")
    *_, pairs, loss, _, buckets, shortest, longest, _ = file.values("12i")
    file.values("d")
    entries, words, _, _, pruned = file.values("iiiqq")
    named = [(file.name(), *file.values("qb")) for _ in range(entries)]
    kept = file.array("<i4", 2 * max(pruned, 0)).reshape(-1, 2)
    (packed,) = file.values("?")
    if not packed or loss != _BY_TREE or pairs != 1 or pruned <= 0 or shortest < 2:
        raise CrisisError(f"{path}: not a quantised and pruned model of single words that answers by a tree")
    rows = _unpacked(file)
    if file.values("?")[0]:
        raise CrisisError(f"{path}: its answers are quantised too")
    labels, dim = file.values("qq")
    hashed = np.full(buckets, -1, np.int32)
    hashed[kept[:, 0]] = kept[:, 1] + words
    return Tables(
        {name: row for row, (name, _, _) in enumerate(named[:words])},
        [name.removeprefix(_PREFIX) for name, _, _ in named[words:]],
        [count for _, count, _ in named[words:]],
        rows,
        file.array("<f4", labels * dim).reshape(labels, dim)[:-1],
        hashed,
        shortest,
        longest,
    )


def _unpacked(file: _Bytes) -> np.ndarray:
    """(n, d) float32: a product quantiser's codes, and the lengths of the rows apart."""
    lengths_apart, n, _, size = file.values("?qqi")
    codes = file.array("u1", size).reshape(n, -1)
    rows = _looked_up(file, codes)
    return rows * _looked_up(file, file.array("u1", n)[:, None]) if lengths_apart else rows


def _looked_up(file: _Bytes, codes: np.ndarray) -> np.ndarray:
    """The centroids that follow, by code: (n, parts) → (n, d)."""
    dim, parts, width, last = file.values("4i")
    if width != last or codes.shape[1] != parts:
        raise CrisisError(f"a quantiser of {parts} parts of {width}, the last of {last}: not one we read")
    centroids = file.array("<f4", dim * _CODES).reshape(parts, _CODES, width)
    return np.concatenate([centroids[part][codes[:, part]] for part in range(parts)], axis=1)
