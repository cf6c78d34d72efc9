"""The way in for programs that have texts and want matches, vectors and clusters: no broker, no Redis, no settings.

>>> from models import open_pipeline
>>> pipeline = open_pipeline()                                     # the bundled encoder and queries; about a second
>>> read = pipeline.read(["We need drinking water in the camp", "Lovely weather for football today"])
>>> [found[0].query_id if found else "nothing" for found in read.matches]      # the best of each
['need.water', 'nothing']
>>> read.vectors.shape == (2, pipeline.encoder.dim)
True

It is the pipeline's own encoder, matcher and clusterer: the same text has the same score as in a worker. Folding of
repeats, deletions and alerts are the stages' (streams/pipeline).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from models.clustering import ClusterConfig, Clusterer
from models.clusters.vectors import widened
from models.encoders.protocol import Encoder
from models.encoders.ready import Ready, load, ready
from models.errors import Rejected
from models.matching import MatchConfig, Matcher
from models.posts import parse_post
from models.queries import Query, load_queries
from models.records import Match, MatchedFrame, Origin, Post

__all__ = ["Pipeline", "Read", "open_pipeline"]


@dataclass(frozen=True)
class Read:
    """What was found in the texts of one call, each list in their order."""

    posts: list[Post]  # as the pipeline sees them: repaired, masked, with their language
    vectors: np.ndarray  # (n, dim) float32 unit rows
    matches: list[list[Match]]  # of each text, best first; level "alert" or "suggestion"
    clusters: list[
        str
    ]  # the cluster of each text, at the end of the call; ids may merge later: see Pipeline.cluster_of


class Pipeline:
    """A stream of texts, read call by call: clusters go on from one call to the next. Not thread-safe."""

    def __init__(self, version: Ready, clusters: ClusterConfig) -> None:
        self.encoder: Encoder = version.encoder
        self.matcher: Matcher = version.matcher
        self._clustered_by = version.clustered_by
        self._clusterer = Clusterer(clusters, self._clustered_by.dim, self._clustered_by.version)
        self._calls = self._posts = 0

    def read(self, texts: Sequence[str], at: float = 0.0) -> Read:
        """Read texts in the order they came. at: epoch seconds they are of; 0 where time does not matter.

        Raises Rejected for what is no text of a post (a NUL, half a surrogate pair, more than 10,000 characters), and
        TypeError for what is no str, and for a string or a dict: its letters or keys would be the texts. Both name the
        text by its index; nothing of the call is read then. Blocking.
        """
        if isinstance(texts, str):
            raise TypeError(f"read takes a list of texts, and {texts[:60]!r} is one: read([text])")
        if isinstance(texts, Mapping):
            raise TypeError(f"read takes a list of texts, and {type(texts).__name__} has keys: read(list(it.values()))")
        posts = [self._post(index, text, at) for index, text in enumerate(texts)]
        vectors = self.encoder.encode([post.text for post in posts])
        packed = vectors.astype("<f2")  # as frames carry them
        found = self.matcher.match([p.id for p in posts], packed.astype(np.float32), self.encoder.version, posts)
        frame = MatchedFrame(
            origin=Origin(0, self._calls),
            posts=posts,
            encoder_version=self.encoder.version,
            dim=self.encoder.dim,
            vectors=packed.tobytes(),
            matches=found,
        )
        self._clusterer.add_all(widened([frame], self._clustered_by))
        self._clusterer.settle()
        self._calls += 1
        self._posts += len(posts)
        matches: dict[str, list[Match]] = {post.id: [] for post in posts}
        for match in sorted(found, key=lambda m: -m.score):
            matches[match.post_id].append(match)
        return Read(posts, vectors, list(matches.values()), [self.cluster_of(post.id) for post in posts])

    def cluster_of(self, post_id: str) -> str:
        """The cluster a text is in now. post_id: of `Read.posts`. Raises KeyError if it is not remembered."""
        cluster = self._clusterer.cluster_of(post_id)
        if cluster is None:
            raise KeyError(post_id)
        return cluster

    def _post(self, index: int, text: object, at: float) -> Post:
        if not isinstance(text, str):
            raise TypeError(f"texts[{index}] is {type(text).__name__}, not str")
        try:
            line = msgspec.json.encode({"id": f"text/{self._posts + index}", "text": str(text)})  # NumPy's str too
            post = parse_post(line, seen_at=at, author_key=b"", empty_ok=True)
        except UnicodeEncodeError as error:
            raise Rejected("lone_surrogate", f"texts[{index}] holds half a surrogate pair: {error}") from error
        except Rejected as error:
            raise Rejected(error.reason, f"texts[{index}]: {error.detail}") from error
        assert isinstance(post, Post)  # a deletion says so
        return post


def open_pipeline(encoder: str | Path | None = None, queries: Sequence[Query] | None = None) -> Pipeline:
    """A pipeline with an encoder (None: the bundled one; else a bundle, or a model directory with the extra [torch])
    and queries (None: the bundled packs; `models.queries.load_queries(folder)` reads others).

    Raises EncoderError or BundleError where the encoder cannot be used. Blocking, about a second.
    """
    loaded = load(encoder)
    clusters = ClusterConfig() if loaded.clusters is None else loaded.clusters.fit(ClusterConfig())
    return Pipeline(ready(loaded, load_queries() if queries is None else queries, MatchConfig()), clusters)
