"""Posts, frames and a plain clusterer for the tests of the real one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from models.clustering import ClusterConfig, Clusterer
from models.clusters.memory import cluster_id
from models.records import MatchedFrame, Origin, Post

DIM = 6


def plain(**fields) -> ClusterConfig:
    """Meaning alone, so that a test's vectors say everything."""
    return ClusterConfig(**{"lexical": 0.0, "t_attach": 0.4, "t_merge": 0.3, **fields})


SMALL = plain(
    t_attach=0.7,
    t_merge=0.6,
    merge_every_posts=7,
    merge_soon_s=30.0,
    merge_soon_posts=4,
    merge_every_s=90.0,
    merge_least_posts=2,
    settle_every_posts=3,
    settle_soon_s=12.0,
    settle_soon_posts=2,
    settle_every_s=40.0,
    ttl_posts=20,
    ttl_s=0.0,
    ttl_single_posts=9,
    ttl_single_s=0.0,
    examples_kept=4,
    quiet_s=5.0,
)

WORDY = replace(SMALL, lexical=0.5)


def post(number: int, at: float = 0.0, **fields) -> Post:
    fields = {"text": f"water needed in street {number % 5}", "created_at": at, "seen_at": at, **fields}
    return Post(id=f"p{number}", **fields)


def frame(offset, posts, vectors, partition=0, version="v1", **fields) -> MatchedFrame:
    block = np.asarray(vectors, dtype="<f2")
    dim = block.shape[1] if len(posts) else DIM
    return MatchedFrame(
        Origin(partition, offset), posts, encoder_version=version, dim=dim, vectors=block.tobytes(), **fields
    )


def frames_of(posts, vectors, cuts) -> list[MatchedFrame]:
    edges = [0, *sorted(set(cuts) & set(range(1, len(posts)))), len(posts)]
    return [frame(a, posts[a:b], vectors[a:b]) for a, b in zip(edges, edges[1:], strict=False)]


def run(posts, vectors, cuts=(), config=SMALL, clusterer=None):
    clusterer = clusterer or Clusterer(config, vectors.shape[1], "v1")
    events = [event for one in frames_of(posts, vectors, cuts) for event in clusterer.add(one)]
    return clusterer, events


class OneAtATime:
    """Mean-similarity attach and average-link merge, written down as they are defined: O(posts × clusters × size)."""

    def __init__(self, config: ClusterConfig) -> None:
        self.config, self.clusters, self.where, self.into = config, [], {}, {}
        self.clock = self.merged_at = self.settled_at = None
        self.since = self.since_settle = self.seen = 0

    def similarity(self, left: list, right: list) -> float:
        return sum(float(a @ b) for a in left for b in right) / (len(left) * len(right))

    def add(self, p: Post, x: np.ndarray) -> None:
        self.clock = p.created_at if self.clock is None else max(self.clock, p.created_at)
        if self.seen == 0:
            self.merged_at = self.settled_at = self.clock
        if self.settle_due():
            self.settle(self.merge_due())
        if p.id in self.where:
            self.leave(p.id)
        near = [(self.similarity([x], list(c["members"].values())), -i) for i, c in enumerate(self.clusters)]
        self.seen += 1
        if near and max(near)[0] >= self.config.t_attach:
            cluster = self.clusters[-max(near)[1]]
        else:
            name, attempt = cluster_id(p, 0, ""), 0
            while name in self.into or any(c["id"] == name for c in self.clusters):
                attempt += 1
                name = cluster_id(p, attempt, "")
            cluster = {"id": name, "members": {}}
            self.into[name] = name
            self.clusters.append(cluster)
        cluster["members"][p.id], cluster["touched"] = x, self.seen
        self.where[p.id] = cluster["id"]
        self.since += 1
        self.since_settle += 1
        if self.since == self.config.merge_every_posts or self.since_settle == self.config.settle_every_posts:
            self.settle(self.merge_due())

    def settle_due(self) -> bool:
        config, waited_s = self.config, self.clock - self.settled_at
        soon = waited_s >= config.settle_soon_s and self.since_settle >= config.settle_soon_posts
        return soon or waited_s >= config.settle_every_s

    def merge_due(self) -> bool:
        config, waited_s = self.config, self.clock - self.merged_at
        soon = waited_s >= config.merge_soon_s and self.since >= config.merge_soon_posts
        late = waited_s >= config.merge_every_s and self.since >= config.merge_least_posts
        return soon or late or self.since >= config.merge_every_posts

    def leave(self, post_id: str) -> None:
        del self.where[post_id]
        for cluster in self.clusters:
            cluster["members"].pop(post_id, None)
        self.clusters = [c for c in self.clusters if c["members"]]

    def settle(self, full: bool) -> None:
        ttl, threshold = (self.config.ttl_single_posts, self.config.ttl_posts), self.config.t_attach
        if full:
            threshold = self.config.t_merge
            self.clusters = [c for c in self.clusters if self.seen - c["touched"] <= ttl[len(c["members"]) > 1]]
        while True:
            pairs = [
                (self.similarity(list(a["members"].values()), list(b["members"].values())), -i, -j)
                for i, a in enumerate(self.clusters)
                for j, b in enumerate(self.clusters[:i])
            ]
            pairs = [(sim, j, i) for sim, i, j in pairs]  # of equal pairs the one with the oldest member, then the next
            if not pairs or max(pairs)[0] < threshold:
                break
            _, i, j = max(pairs)
            a, b = self.clusters[-i], self.clusters[-j]
            if len(b["members"]) > len(a["members"]):
                a, b = b, a
            a["members"] |= b["members"]
            a["touched"] = max(a["touched"], b["touched"])
            self.into[b["id"]] = a["id"]
            self.clusters = [c for c in self.clusters if c is not b]
        self.since_settle, self.settled_at = 0, self.clock
        if full:
            self.since, self.merged_at = 0, self.clock

    def find(self, name: str) -> str:
        return name if self.into[name] == name else self.find(self.into[name])

    def assignments(self) -> dict[str, str]:
        return {p: self.find(c) for p, c in self.where.items()}


def topic_stream(n, seed=0, topics=40, spread=0.25, dim=32, live=12, births=200):
    """Topics come and go: a stationary stream. -> posts, (n, dim) float16, topic numbers."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((topics, dim))
    topic = (np.arange(n) // births + rng.integers(0, live, n)) % topics
    vectors = centres[topic] / np.linalg.norm(centres[topic], axis=1, keepdims=True)
    vectors = vectors + spread * rng.standard_normal((n, dim)) / np.sqrt(dim) * 2
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    posts = [post(i, 1e6 + i, text=f"topic{t} word{t}x place{i % 7}") for i, t in enumerate(topic)]
    return posts, vectors.astype("<f2"), topic


def tiny(n=3, **config):
    """n posts of one happening, merged and announced."""
    config = plain(**{"merge_every_posts": n, **config})
    return run([post(i, 100.0 + i, author=f"a{i}") for i in range(n)], np.tile(np.eye(DIM)[0], (n, 1)), config=config)


@st.composite
def streams(draw, edits=True):
    """Posts near a few directions, many of them equal, so that ties happen; times that stall, jump and run back."""
    n = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    corners = np.concatenate([np.eye(DIM), np.eye(DIM) + np.roll(np.eye(DIM), 1, axis=0)])
    noise = draw(st.sampled_from([0.0, 0.2, 0.5]))
    vectors = corners[rng.integers(0, len(corners), n)] + noise * rng.standard_normal((n, DIM))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype("<f2")
    steps = draw(st.lists(st.sampled_from([0.0, 0.0, 1.0, 5.0, -7.0, 60.0]), min_size=n, max_size=n))
    times = 1e6 + np.cumsum(steps)
    numbers = list(range(n))
    if edits:
        for i in draw(st.lists(st.integers(0, n - 1), max_size=5)):
            numbers[i] = draw(st.integers(0, max(i - 1, 0)))
    return [post(k, float(t)) for k, t in zip(numbers, times, strict=True)], vectors


CUTS = st.sets(st.integers(1, 60))
