"""Finds recent posts by meaning: time-sliced faiss segments, the oldest dropped whole.

Segments (`search_segment.py`) hold float16 vectors (what frames carry, so nothing is lost). An inverted file does not
pay: its lists would be trained again and again on a window that slides.

A segment that takes no more posts is scanned in two steps: all of it in 4 bits for every two dimensions (product
quantisation, Jégou et al. 2011, https://doi.org/10.1109/TPAMI.2010.57, as faiss' "fast scan" holds it), then its likely
rows exactly. Over 215,000 real posts and 100 sentences asked for, 62,500 posts a segment: with 128 rows a segment all
of the ten nearest were found (64: .996, 32: .987), in 14 ms of CPU for a million posts instead of 52. Where a filter
leaves few of a segment's rows, and in the segment that grows, every row is scanned exactly.

Memory per post: 2 × dim bytes of vector and dim / 4 of the first step, the post as msgpack (about 300 bytes), 200 bytes
of bookkeeping, and 0.2 kB per account, and per deletion.

Queries go one by one: faiss only uses BLAS from nq × dim = 128,000 (`faiss.cvar.distance_compute_blas_threshold`), so
a block of 64 queries would be no faster, and scalar-quantised indexes have no BLAS path at all.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import faiss
import numpy as np
from msgspec import Struct

from models.errors import VersionMismatch
from models.records import KINDS, Kind, MatchedFrame, Post, account_of
from models.search_segment import Segment, unpack

__all__ = ["Found", "SearchIndex"]

KIND_BITS: dict[str, int] = {kind: 1 << place for place, kind in enumerate(KINDS)}
SEGMENTS_AT_LEAST = 16  # a segment is closed early at this share of max_posts, so that dropping one is a small step
COARSE_FROM = 5_000  # posts: a smaller segment is scanned exactly, and fewer say too little of how vectors lie
TRAINED_ON = 10_000  # posts: sixteen means of two dimensions each need no more


class Found(Struct, frozen=True):
    """A post and its cosine to what was asked, in [-1, 1], higher is closer."""

    post: Post
    score: float


class SearchIndex:
    """The posts of the last `window_s` of stream time, searchable by vector. One writer and any number of readers.

    A post stays for window_s to window_s + segment_s of stream time (the running maximum of created_at), or until
    max_posts is passed. Adding an id again (an edit, a redelivery) hides its older row. A hidden post, and all those of
    a hidden account, stay hidden for window_s, or of the posts the last max_posts do, those too that come later:
    partitions are read side by side, and again where the connection broke, so a deletion may come first.
    """

    def __init__(
        self,
        dim: int,
        encoder_version: str,
        segment_s: float = 1_800.0,
        window_s: float = 86_400.0,
        max_posts: int = 500_000,
    ) -> None:
        self.dim, self.encoder_version = dim, encoder_version
        self.segment_s, self.window_s, self.max_posts = segment_s, window_s, max_posts
        self._most_rows = max(1, max_posts // SEGMENTS_AT_LEAST)
        self._clock = float("-inf")
        self._segments: list[Segment] = []  # oldest first; only the last grows
        self._places: dict[str, tuple[Segment, int]] = {}
        self._accounts: Counter[str] = Counter()  # posts of each account in _places: most that close have none
        self._gone: dict[str, float] = {}  # hidden post → stream time then, oldest first
        self._closed: dict[str, float] = {}  # the same of accounts, apart: many deleted posts push out none of them
        self._langs: dict[str, int] = {}
        self._coarse: faiss.Index | None = None  # trained on the first segment that was full enough, and empty
        self._lock = threading.Lock()  # held to write, and to read the segment that grows

    def __len__(self) -> int:
        return len(self._places)

    def add_frame(self, frame: MatchedFrame) -> None:
        """Add a frame's posts with the kinds they matched, and hide those it deletes. Raises VersionMismatch."""
        self._check(frame.encoder_version, frame.dim if frame.posts else self.dim)
        kinds: dict[str, set[str]] = {}
        for match in frame.matches:
            kinds.setdefault(match.post_id, set()).add(match.query_id.partition(".")[0])
        vectors = np.frombuffer(frame.vectors, "<f2").reshape(len(frame.posts), self.dim)
        self.add(frame.posts, vectors, [kinds.get(p.id, ()) for p in frame.posts])
        self.hide(d.id for d in frame.deletions)

    def add(self, posts: Sequence[Post], vectors: np.ndarray, kinds: Sequence[Collection[str]] | None = None) -> None:
        """Add posts. vectors: (n, dim) unit rows; kinds: of each post, as matched."""
        if vectors.shape != (len(posts), self.dim):
            raise VersionMismatch(f"{len(posts)} posts have vectors {vectors.shape}, the index {self.dim} dims")
        bits = [sum(KIND_BITS.get(kind, 0) for kind in set(of)) for of in kinds or [()] * len(posts)]
        with self._lock:
            start = 0
            while start < len(posts):  # a block may span the ends of segments
                end = self._open(posts, start)
                segment, block = self._segments[-1], posts[start:end]
                first = len(segment.posts)
                langs = [self._langs.setdefault(p.lang, len(self._langs)) for p in block]
                segment.append(block, vectors[start:end], langs, bits[start:end])
                for row, post in enumerate(block, first):
                    self._hide(post.id)
                    account = account_of(post.id)
                    if post.id in self._gone or (account != post.id and account in self._closed):
                        segment.drop(row)
                        continue
                    if account != post.id:
                        self._accounts[account] += 1
                    self._places[post.id] = (segment, row)
                start = end
        self._coarsen()

    def _coarsen(self) -> None:
        """Prepare segments that take no more posts for being scanned fast: some 5 µs a post; nobody waits for it."""
        for segment in self._segments[:-1]:
            if segment.coarse is not None or segment.index.ntotal < COARSE_FROM or self.dim % 2:
                continue
            vectors = segment.index.reconstruct_n(0, segment.index.ntotal)
            faiss.omp_set_num_threads(1)  # of this thread: two that wait for each other busily take ten times as long
            if self._coarse is None:
                self._coarse = faiss.IndexPQFastScan(self.dim, self.dim // 2, 4, faiss.METRIC_INNER_PRODUCT)
                self._coarse.train(vectors[:: max(1, len(vectors) // TRAINED_ON)])
            made = faiss.clone_index(self._coarse)
            made.add(vectors)
            segment.coarse = made

    def _open(self, posts: Sequence[Post], start: int) -> int:
        """Make the last segment take posts[start]; returns how far it can take the others too."""
        for i in range(start, len(posts)):
            clock = max(self._clock, min(posts[i].created_at, posts[i].seen_at))
            last = self._segments[-1] if self._segments else None
            full = last is None or len(last.posts) + i - start >= self._most_rows
            if last is None or full or clock >= last.start + self.segment_s:
                if i > start:
                    return i
                if last is None:  # time begins: what was hidden before counts from here
                    self._gone, self._closed = dict.fromkeys(self._gone, clock), dict.fromkeys(self._closed, clock)
                self._segments.append(Segment(self.dim, clock))
                self._clock = clock
                self._drop()
            self._clock = clock
        return len(posts)

    def _drop(self) -> None:
        """Drop whole segments that are past the window, or the oldest ones when there are too many posts."""
        count = sum(len(s.posts) for s in self._segments)
        while len(self._segments) > 1:
            oldest, next_start = self._segments[0], self._segments[1].start
            if next_start > self._clock - self.window_s and count <= self.max_posts - self._most_rows:
                return
            count -= len(oldest.posts)
            for row, post_id in enumerate(oldest.ids):
                if self._places.get(post_id) == (oldest, row):
                    self._forget(post_id)
            self._segments = self._segments[1:]  # a new list: readers keep the one they have

    def hide(self, post_ids: Iterable[str]) -> None:
        """Take posts, or all posts of an account, out of all results from now on, wherever they are yet."""
        with self._lock:
            for post_id in post_ids:
                if "/" not in post_id and post_id not in self._places:
                    self._hide_account(post_id)
                self._hide(post_id)
                self._remember(self._gone, post_id, self.max_posts)

    def _hide_account(self, account: str) -> None:
        if (
            account in self._accounts
        ):  # 80 ms at 500,000 posts (measured): rare, most accounts that close have none here
            begin = account + "/"
            for post_id in [p for p in self._places if p.startswith(begin)]:
                self._hide(post_id)
        self._remember(self._closed, account)

    def _remember(self, hidden: dict[str, float], name: str, most: float = float("inf")) -> None:
        hidden.pop(name, None)
        hidden[name] = self._clock
        while len(hidden) > most or next(iter(hidden.values())) < self._clock - self.window_s:
            del hidden[next(iter(hidden))]

    def _hide(self, post_id: str) -> None:
        if post_id in self._places:
            segment, row = self._forget(post_id)
            segment.drop(row)

    def _forget(self, post_id: str) -> tuple[Segment, int]:
        if (account := account_of(post_id)) != post_id:
            self._accounts[account] -= 1
            if not self._accounts[account]:
                del self._accounts[account]
        return self._places.pop(post_id)

    def search(
        self,
        vector: np.ndarray,
        k: int = 10,
        *,
        lang: str | Collection[str] | None = None,
        since: float | None = None,
        kind: Kind | None = None,
        encoder_version: str | None = None,
    ) -> list[Found]:
        """The k nearest posts by cosine, best first; of equal ones the newest first.

        vector: (dim,) unit length. since: created_at at least, epoch seconds. kind: matched as this kind.
        Raises VersionMismatch for another dimension, or encoder version where one is given.
        """
        vector = np.ascontiguousarray(vector, dtype=np.float32).reshape(1, -1)
        self._check(encoder_version or self.encoder_version, vector.shape[1])
        asked = [lang] if isinstance(lang, str) else lang
        codes = None if asked is None else {self._langs[one] for one in asked if one in self._langs}
        filters = (codes, float("-inf") if since is None else since, KIND_BITS[kind] if kind else 0)
        faiss.omp_set_num_threads(1)  # of this thread
        with self._lock:
            segments = self._segments
            newest = [(s, len(segments), i) for s, i in segments[-1].search(vector, k, *filters)] if segments else []
        for order, segment in enumerate(segments[:-1], 1):
            newest += [(s, order, i) for s, i in segment.search(vector, k, *filters)]
        best = sorted(newest, key=lambda hit: (-hit[0], -hit[1], -hit[2]))[:k]
        packed = ((segments[order - 1].posts[i], score) for score, order, i in best)
        return [Found(unpack(post), score) for post, score in packed if post]  # dropped meanwhile: in none

    def recent(self, since: float, most: int) -> list[tuple[list[Post], np.ndarray]]:
        """The newest posts that are shown and were created since (epoch seconds), with their vectors (n, dim) float32,
        segment by segment, the oldest first: about `most` at the most, whole segments but for the oldest."""
        found: list[tuple[list[Post], np.ndarray]] = []
        with self._lock:
            segments, last = self._segments, len(self._segments[-1].posts) if self._segments else 0
        for segment in reversed(segments):
            count = last if segment is segments[-1] else len(segment.posts)
            rows = segment.rows[:count]
            with self._lock:  # the segment that grows, and posts that are dropped
                places = np.flatnonzero(rows["shown"] & (rows["at"] >= since))[-most:] if most > 0 else np.zeros(0, int)
                packed = [segment.posts[i] for i in places]
                vectors = segment.index.reconstruct_batch(places) if len(places) else None
            if vectors is not None:
                found.append(([unpack(post) for post in packed], vectors))
                most -= len(packed)
        return found[::-1]

    def _check(self, encoder_version: str, dim: int) -> None:
        if (encoder_version, dim) != (self.encoder_version, self.dim):
            raise VersionMismatch(
                f"vectors of {encoder_version} ({dim} dims) cannot be compared with an index of {self.encoder_version} "
                f"({self.dim} dims): make a new index and fill it again"
            )
