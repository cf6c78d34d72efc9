"""The scenario `queries.1` of `crisis bench`: posts against 1,000, 10,000 and 100,000 standing queries."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from models.encoders.query_vectors import CachedEncoder
from models.encoders.ready import Loaded, Ready, ready
from models.encoders.registry import OWN
from models.filters import Where
from models.matching import Matcher
from models.pseudonyms import Pseudonyms
from models.queries import Query, load_queries
from models.records import EmbeddedFrame, Frame, Origin
from streams.pipeline import stages
from streams.pipeline.frames import unpack_vectors

__all__ = ["SIZES", "frames_of", "measure_queries"]

SIZES = (1_000, 10_000, 100_000)
LANGUAGES = ("en", "es", "fr", "ar", "tr", "uk", "hi", "ht", "tl", "pt")  # half of the queries read one of them only
BESIDE = 4  # frames that are also compared with every query


class Invented:
    """An encoder that knows invented sentences too: each a mixture of two sentences of the packs, and some noise."""

    def __init__(self, encoder, sentences: np.ndarray, most: int) -> None:
        self.version, self.dim, self.cleaning = encoder.version, encoder.dim, encoder.cleaning
        self._encoder = encoder
        drawn = np.random.default_rng(0)
        one, other = (sentences[drawn.integers(len(sentences), size=most)] for _ in range(2))
        share = drawn.uniform(0.5, 1.0, (most, 1)).astype(np.float32)
        noise = drawn.standard_normal((most, self.dim), np.float32) * np.float32(0.3 / np.sqrt(self.dim))
        mixed = share * one + (1 - share) * other + noise
        self._rows = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(n, dim) float32 unit rows; "invented 17" is the seventeenth."""
        plain = [text for text in texts if not text.startswith("invented ")]
        rows = iter(self._encoder.encode(plain) if plain else ())
        return np.stack([self._rows[int(t.split()[1])] if t.startswith("invented ") else next(rows) for t in texts])


def invented_queries(count: int) -> list[Query]:
    """So many queries as users add them: one sentence each, half of them for one language alone."""
    return [
        Query(
            f"need.user{n}",
            "need",
            f"user{n}",
            "User",
            {LANGUAGES[n % len(LANGUAGES)]: [f"invented {n}"]},
            where=Where(languages=[LANGUAGES[n % len(LANGUAGES)]]) if n % 2 else None,
        )
        for n in range(count)
    ]


def frames_of(records: Sequence[bytes], encoder, start: float) -> list[EmbeddedFrame]:
    """The raw records as the match stage gets them."""
    parsed = [stages.parse(raw, Origin(0, n), start, Pseudonyms(b"bench")) for n, raw in enumerate(records)]
    return [stages.embed(Frame(one.origin, one.posts), encoder) for one in parsed]


def measure_queries(own: Ready, frames: Sequence[EmbeddedFrame], sizes: Sequence[int] = SIZES) -> dict[str, float]:
    """CPU time of matching frames of 100 posts, by the number of standing queries beside the bundled ones.

    p99: of the frames. to_brute: against scoring every query. missed: readings that scoring every query finds and
    matching does not. change: a query's sentences changed, in ms.
    """
    packs, cost = load_queries(), {}
    stored = CachedEncoder(own.encoder, own.known)
    known = stored.encode([text for query in packs for _, text in query.texts()][:2_000])
    encoder = Invented(stored, known, max(sizes) + 1)
    served: Loaded = Loaded(OWN, encoder, own.calibration)
    for count in sizes:
        queries = [*packs, *invented_queries(count)]
        served = made = ready(served, queries)
        matcher = made.matcher
        stages.match(frames[0], matcher)
        took = [_ms(lambda: stages.match(frame, matcher)) for frame in frames]  # noqa: B023
        cost |= {f"mean_{count}": float(np.mean(took)), f"p99_{count}": float(np.quantile(took, 0.99))}
    brute, missed = [], 0
    for frame in frames[:BESIDE]:
        brute.append(_ms(lambda: matcher.scores(unpack_vectors(frame)) >= matcher.levels.lowest))  # noqa: B023
        missed += _missed(frame, matcher)
    changed = [*queries[:-1], msgspec.structs.replace(queries[-1], sentences={"en": [f"invented {max(sizes)}"]})]
    change = _ms(lambda: ready(served, changed))
    return cost | {"to_brute": cost[f"mean_{count}"] / float(np.mean(brute)), "missed": missed, "change": change}


def _missed(frame: EmbeddedFrame, matcher: Matcher) -> int:
    """Posts whose likeliest reading, by scoring every query, `match` has not, or has with a lower score.

    Higher ones are no loss: `match` knows the post's language, which adds to a score.
    """
    scores = matcher.scores(unpack_vectors(frame))
    found = stages.match(frame, matcher).matches
    missed = 0
    for row, post in enumerate(frame.posts):
        over = [i for i in np.flatnonzero(scores[row] >= matcher.levels.lowest) if not matcher.refusal(int(i), post)]
        top = max((float(scores[row, i]) for i in over), default=None)
        mine = max((m.score for m in found if m.post_id == post.id), default=None)
        missed += top is not None and (mine is None or mine < top - 1e-3)
    return missed


def _ms(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1e3
