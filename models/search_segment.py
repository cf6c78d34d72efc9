"""A slice of the window that can be searched (models/search.py): vectors in float16, posts packed beside them.

faiss cannot delete from most indexes and is slow where it can, so the vector of a hidden row is masked, and goes with
its segment; the post itself is dropped at once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import faiss
import msgspec
import numpy as np

from models.records import Post

__all__ = ["Segment", "unpack"]

LIKELY = 128  # rows of a segment that are scored exactly, and four more for each that is asked for
_pack = msgspec.msgpack.Encoder().encode
unpack = msgspec.msgpack.Decoder(Post).decode


class Segment:
    """Posts of one slice of stream time, in arrival order."""

    def __init__(self, dim: int, start: float) -> None:
        self.start = start
        self.index = faiss.IndexScalarQuantizer(dim, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
        self.coarse: faiss.Index | None = None  # the same rows in a few bits, once it takes no more
        self.posts: list[bytes] = []
        self.ids: list[str] = []
        self.rows = np.zeros(256, [("at", "f8"), ("lang", "i4"), ("kinds", "u1"), ("shown", "?")])

    def append(self, posts: Sequence[Post], vectors: np.ndarray, langs: list[int], kinds: list[int]) -> None:
        start, end = len(self.posts), len(self.posts) + len(posts)
        if end > len(self.rows):
            more = max(end, 2 * len(self.rows)) - len(self.rows)
            self.rows = np.concatenate([self.rows, np.zeros(more, self.rows.dtype)])
        new = self.rows[start:end]
        new["at"], new["lang"], new["kinds"], new["shown"] = [p.created_at for p in posts], langs, kinds, True
        self.posts += [_pack(p) for p in posts]
        self.ids += [p.id for p in posts]
        self.index.add(np.ascontiguousarray(vectors, dtype=np.float32))

    def drop(self, row: int) -> None:
        """Nobody finds it any more, and nothing of its text is left; a search under way may still hold its row."""
        self.rows["shown"][row] = False
        self.posts[row] = b""

    def search(
        self, vector: np.ndarray, k: int, langs: Collection[int] | None, since: float, kinds: int
    ) -> list[tuple[float, int]]:
        """(score, row) of the best k rows that are shown and pass the filters."""
        rows = self.rows[: self.index.ntotal]
        keep = rows["shown"] & (rows["at"] >= since)
        if langs is not None:
            keep &= np.isin(rows["lang"], list(langs))
        if kinds:
            keep &= (rows["kinds"] & kinds) > 0
        if not (found := int(keep.sum())):
            return []
        if self.coarse is not None and 2 * found > len(rows):
            likely = np.zeros(len(rows), bool)
            near = self.coarse.search(vector, min(len(rows), LIKELY + 4 * k))[1][0]
            likely[near[near >= 0]] = True
            likely &= keep
            if int(likely.sum()) >= min(k, found):
                keep, found = likely, int(likely.sum())
        mask = None
        if found < len(rows):
            bits = np.packbits(keep, bitorder="little")  # must outlive the search: faiss keeps a pointer
            # the stubs of faiss know C++'s arguments, not Python's
            mask = faiss.SearchParameters(sel=faiss.IDSelectorBitmap(bits))  # type: ignore[call-arg, arg-type]
        scores, at = self.index.search(vector, min(k, found), params=mask)
        return [(float(s), int(i)) for s, i in zip(scores[0], at[0], strict=True) if i >= 0]
