"""What grows with the window: the clusterer from ten thousand to a million posts, its saves, and search over them.

Invented posts that come as a stream does: most about something that goes on, which begins, is busy for a while and
ends; some about nothing else. The million takes minutes and a gigabyte: it runs only when it is named (`LONG`).
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator

import numpy as np

from models.clustering import ClusterConfig, Clusterer
from models.records import MatchedFrame, Origin, Post

__all__ = ["LONG", "SCENARIOS"]

FRAME = 100
RATE = 46.0  # posts a second: a million in the six hours that a quiet cluster lives
AT = (10_000, 30_000, 100_000, 300_000, 1_000_000)  # posts that have come when a figure is taken
OVER = 5_000  # posts a figure is the mean of, the last before it
SAVED = 3_000  # posts between two saves: as many as a worker lets come
CONFIG = ClusterConfig(t_attach=0.22, t_merge=0.12)  # thresholds of preset `flood`
QUERIES = 300
START = 1_700_000_000.0


class Stream:
    """Frames of 256 dimensions, the same every time. topics: of which so many go on at once."""

    dim = 256

    def __init__(self, topics: int = 400, new_every: int = 120, alone: float = 0.1) -> None:
        self.rng, self.sent, self.new_every, self.alone = np.random.default_rng(0), 0, new_every, alone
        self.words = np.array([f"word{i}" for i in range(50_000)])
        self.topics = [self._topic() for _ in range(topics)]
        self._due = 0

    def _topic(self) -> tuple[np.ndarray, np.ndarray]:
        return self.rng.standard_normal(self.dim), self._drawn(16)

    def _drawn(self, shape: int | tuple[int, int]) -> np.ndarray:
        """Words, a few of them in every other post and most in hardly any."""
        return (self.rng.random(shape) ** 3 * len(self.words)).astype(int)

    def frames(self, posts: int) -> Iterator[MatchedFrame]:
        rng, dim = self.rng, self.dim
        for first in range(self.sent, self.sent + posts, FRAME):
            while self._due <= first:  # one begins, the longest-going ends
                self.topics = [*self.topics[1:], self._topic()]
                self._due += self.new_every
            directions, own = (np.array(part) for part in zip(*self.topics, strict=True))
            about = rng.integers(0, len(own), (FRAME, 1))
            vectors = 0.8 * rng.standard_normal((FRAME, dim)) + directions[about[:, 0]]
            words = np.hstack([own[about, rng.integers(0, own.shape[1], (FRAME, 6))], self._drawn((FRAME, 5))])
            single = np.flatnonzero(rng.random(FRAME) < self.alone)
            vectors[single] = rng.standard_normal((len(single), dim))
            words[single] = self._drawn((len(single), words.shape[1]))
            texts = [" ".join(row) for row in self.words[words]]
            vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype("<f2")
            at = [START + (first + i) / RATE for i in range(FRAME)]
            made = [Post(f"p{first + i}", text, at[i], at[i], "en") for i, text in enumerate(texts)]
            yield MatchedFrame(Origin(0, first), made, encoder_version="bench", dim=dim, vectors=vectors.tobytes())
        self.sent += posts


def peak_mb() -> float:
    """The most memory this process ever held, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def clusters_window_1(lab: object) -> dict[str, float]:
    """CPU µs a post of the clusterer and its live clusters when so many posts have come, and peak memory in the end."""
    stream, clusterer, found = Stream(), Clusterer(CONFIG, Stream.dim, "bench"), {}
    for at in AT:
        for frame in stream.frames(at - OVER - stream.sent):
            clusterer.add(frame)
        waiting = list(stream.frames(OVER))
        begun = time.process_time()
        for frame in waiting:
            clusterer.add(frame)
        found[f"at_{at}"] = (time.process_time() - begun) / OVER * 1e6
        found[f"live_{at}"], found[f"mb_{at}"] = clusterer.size, peak_mb()
    return found | {"growth": found[f"at_{AT[-1]}"] / found[f"at_{AT[0]}"]}


def clusters_save_2(lab: object) -> dict[str, float]:
    """The stream's CPU ms that saves take, when 3,000 posts came since the last, and the longest of them; thousands of
    clusters live. What is written ahead between them counts with the posts."""
    stream, posts = Stream(new_every=10, alone=0.5), 20_000
    clusterer = Clusterer(CONFIG, Stream.dim, "bench")
    for frame in stream.frames(posts):
        clusterer.add(frame)
    clusterer.changes()
    saves = []
    for _ in range(4):
        for frame in stream.frames(SAVED):
            clusterer.add(frame)
        begun = time.process_time()
        clusterer.changes()
        saves.append((time.process_time() - begun) * 1e3)
    return {"mean": sum(saves) / len(saves), "longest": max(saves), "live": float(clusterer.size)}


def search_1(lab: object) -> dict[str, float]:
    """A million posts in the window: ms of the clock a query, in the thread that searches, and the memory they add."""
    from models.search import SearchIndex

    most, stream = AT[-1], Stream()
    before, index = peak_mb(), SearchIndex(Stream.dim, "bench", window_s=1e9, max_posts=most * 2)
    for frame in stream.frames(most):
        index.add_frame(frame)
    rng, took = np.random.default_rng(1), []
    for vector in rng.standard_normal((QUERIES, Stream.dim)).astype(np.float32):
        begun = time.perf_counter()
        index.search(vector / np.linalg.norm(vector), 10)
        took.append((time.perf_counter() - begun) * 1e3)
    return {"median": float(np.median(took)), "p99": float(np.quantile(took, 0.99)), "mb": peak_mb() - before}


LONG = ("clusters.window.1", "search.1")
SCENARIOS = {
    "clusters.save.2": (clusters_save_2, dict.fromkeys(("mean", "longest"), ("ms", 2.0)) | {"live": ("clusters", 1.1)}),
    "clusters.window.1": (
        clusters_window_1,
        {f"at_{at}": ("µs/post", 1.4) for at in AT}
        | {"growth": ("ratio", 1.3)}
        | {f"live_{at}": ("clusters", 1.1) for at in AT}
        | {f"mb_{at}": ("MB", 1.3) for at in AT},
    ),
    "search.1": (search_1, dict.fromkeys(("median", "p99"), ("ms", 2.0)) | {"mb": ("MB", 1.2)}),
}
