"""The directions queries look in, for one encoder version, and the query sentence that lies nearest to a post."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from models.calibration import Calibration
from models.contrast import Contrast
from models.encoders.protocol import Encoder
from models.queries import Query
from models.records import Kind

__all__ = ["Directions", "Look", "by_value"]

BLOCK = 512  # posts scored at a time: their scores by language stay in the processor's cache
PAIRS = 2048  # of posts and queries scored at a time: likewise
AT_ONCE = 2048  # queries whose scores on the background are measured at a time
MOST_STACKS = 16  # changed queries bring stacks of their own; beyond so many all are stacked anew


class Nearest(NamedTuple):
    """The query sentence nearest to a post, and the nearest in the readers' language where the first is in another."""

    text: str
    lang: str
    cosine: float
    told: str = ""
    told_lang: str = ""


class Look(NamedTuple):
    """What one query looks for. It hangs on the query's sentences alone, so it outlives changes of other queries."""

    langs: list[str]  # of each sentence
    texts: list[str]
    sentences: np.ndarray  # (s, d)
    rows: np.ndarray  # (languages, d + 1): its directions, the constant last
    mean: float = 0.0  # of its scores on the background
    spread: float = 0.0
    mean_among: float = 0.0  # of its scores on the others' sentences of its kind; of a notice, on the background
    spread_among: float = 0.0
    stack: np.ndarray | None = None  # (k, d + 1): of which `rows` are a part, from `first` on
    first: int = 0


class Directions:
    """A direction for each language of each query: score = max over the query's languages of post · w + b.

    queries: in the order the scores are to have. background: texts that ask and offer nothing. others: the queries
    whose sentences of other categories each is held against. share: of the background in what it is told apart from.
    known: looks that need not be made, by place, and `before`, where they come from: with all else the same.
    """

    def __init__(
        self,
        queries: Sequence[Query],
        encoder: Encoder,
        background: Sequence[str],
        others: Sequence[Query],
        share: float,
        calibration: Calibration | None = None,
        before: Directions | None = None,
        known: Sequence[Look | None] | None = None,
    ) -> None:
        self.dim = encoder.dim
        self.background: np.ndarray  # (b, d)
        self._held: Contrast
        self._among: dict[Kind, np.ndarray]  # (s, d): the others' sentences of each kind
        looks: list[Look | None] = [None] * len(queries) if known is None else list(known)
        fresh = [i for i, look in enumerate(looks) if look is None]
        fixed = [] if before else [*background, *(text for query in others for _, text in query.texts())]
        place, vectors = _encode_once(encoder, [*(t for i in fresh for _, t in queries[i].texts()), *fixed])
        if before:
            self.background, self._held, self._among = before.background, before._held, before._among
        else:
            self.background = vectors[[place[text] for text in background]]
            held = [(query, vectors[[place[text] for _, text in query.texts()]]) for query in others]
            self._held = Contrast(self.background, held, share)
            self._among = {
                kind: np.vstack([own for query, own in held if query.kind == kind])
                for kind in {query.kind for query, _ in held}
            }
        for i in fresh:
            langs, texts = [lang for lang, _ in queries[i].texts()], [text for _, text in queries[i].texts()]
            sentences = vectors[[place[text] for text in texts]]
            learnt = calibration.direction(queries[i]) if calibration else None
            looks[i] = Look(langs, texts, sentences, self._held.directions(queries[i], sentences, langs, learnt))
        self.looks: list[Look] = [look for look in looks if look is not None]  # (q,)
        self._by_language: dict[int, dict[str, np.ndarray]] = {}
        self._stack(fresh)
        stacks = {id(look.stack): look.stack for look in self.looks if look.stack is not None}
        room, used = sum(map(len, stacks.values())), sum(len(look.rows) for look in self.looks)
        if len(stacks) > MOST_STACKS or room > 2 * used:  # what was changed or went is held as long as its neighbours
            self._stack(range(len(self.looks)))
        self._measure(fresh, [query.kind for query in queries])

    def _stack(self, which: Sequence[int] | range) -> None:
        """Let the directions of these queries lie one after another, so that those of many are found by one look-up."""
        matrix, first = self._stacked(which)
        for i, at in zip(which, first.tolist(), strict=True):
            own = self.looks[i]
            self.looks[i] = own._replace(rows=matrix[at : at + len(own.rows)], stack=matrix, first=at)

    def _measure(self, fresh: Sequence[int], kinds: Sequence[Kind]) -> None:
        """Note the mean and the spread of new queries' scores on the background, and among what is of their kind."""
        for kind in dict.fromkeys(kinds[i] for i in fresh):
            of_kind, among = [i for i in fresh if kinds[i] == kind], self._among.get(kind, self.background)
            for start in range(0, len(of_kind), AT_ONCE):
                some = of_kind[start : start + AT_ONCE]
                measured = [_spread(self.scores(texts, np.array(some))) for texts in (self.background, among)]
                for i, (mean, spread), (mean_among, spread_among) in zip(some, *measured, strict=True):
                    self.looks[i] = self.looks[i]._replace(
                        mean=mean, spread=spread, mean_among=mean_among, spread_among=spread_among
                    )

    @cached_property
    def usual(self) -> np.ndarray:
        """(q, 2) float32: the mean and the spread of each query's scores on the background; else zeros."""
        return np.array([(look.mean, look.spread) for look in self.looks], np.float32).reshape(-1, 2)

    @cached_property
    def among(self) -> np.ndarray:
        """(q, 2) float32: the mean and the spread of each query's scores on sentences of its kind; else zeros."""
        return np.array([(look.mean_among, look.spread_among) for look in self.looks], np.float32).reshape(-1, 2)

    @cached_property
    def matrix(self) -> np.ndarray:
        """(k, d + 1): the directions of all queries in their order, the constant last."""
        return self._stacked(range(len(self.looks)))[0]

    def _stacked(self, which: Sequence[int] | range) -> tuple[np.ndarray, np.ndarray]:
        """The directions of some queries, and each one's first row."""
        rows = [self.looks[i].rows for i in which]
        first = np.cumsum([0, *(len(own) for own in rows)])[:-1]
        return np.concatenate([np.zeros((0, self.dim + 1), np.float32), *rows]), first

    def scores(self, vectors: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
        """(n, d) → (n, q) float32, clipped to [-1, 1]. which: only the queries with these indices."""
        matrix, first = self._every if which is None else self._stacked(which.tolist())
        if not len(first):
            return np.zeros((len(vectors), 0), np.float32)
        out = np.empty((len(vectors), len(first)), np.float32)
        for start in range(0, len(vectors), BLOCK):
            every = vectors[start : start + BLOCK] @ matrix[:, :-1].T + matrix[:, -1]  # (block, k)
            np.maximum.reduceat(every, first, axis=1, out=out[start : start + BLOCK])
        return np.clip(out, -1.0, 1.0, out=out)

    @cached_property
    def _every(self) -> tuple[np.ndarray, np.ndarray]:
        return self.matrix, np.cumsum([0, *(len(look.rows) for look in self.looks)])[:-1]

    @cached_property
    def _where(self) -> tuple[list[np.ndarray], np.ndarray]:
        """The stacks, and (q, 3) int64 of each query: which of them, its first row there, and how many it has."""
        stacks = {id(look.stack): look.stack for look in self.looks if look.stack is not None}
        number = {key: n for n, key in enumerate(stacks)}
        where = [(number[id(look.stack)], look.first, len(look.rows)) for look in self.looks]
        return list(stacks.values()), np.array(where, np.int64).reshape(-1, 3)

    def scores_of(self, vectors: np.ndarray, rows: np.ndarray, which: np.ndarray) -> np.ndarray:
        """(m,) float32: the scores of pairs: a row of the vectors (n, d), and the query beside it, an index; both (m,).

        One product a pair, many pairs at once: by query, thousands of queries with a few posts each took most of the
        time of a frame; so did putting their directions together for each frame.
        """
        out = np.empty(len(rows), np.float32)
        stacks, where = self._where
        for number, stack in enumerate(stacks):
            mine = np.flatnonzero(where[which, 0] == number) if len(stacks) > 1 else np.arange(len(rows))
            for start in range(0, len(mine), PAIRS):
                some = mine[start : start + PAIRS]
                _, first, counts = where[which[some]].T
                begins = np.cumsum(counts) - counts  # of each pair, among the directions of all of them
                own = stack[np.repeat(first - begins, counts) + np.arange(counts.sum())]
                found = np.einsum("ij,ij->i", vectors[np.repeat(rows[some], counts)], own[:, :-1]) + own[:, -1]
                out[some] = np.maximum.reduceat(found, begins)
        return np.clip(out, -1.0, 1.0, out=out)

    def nearest(self, index: int, vector: np.ndarray, lang: str, reader_language: str) -> Nearest:
        """The query's sentence nearest to a post (d,), in the post's language where the query has one."""
        look, places, reader = self.looks[index], self._places(index), _base(reader_language)
        cosines = look.sentences @ vector
        at = _best(cosines, places.get(_base(lang)))
        if reader not in places or reader == _base(look.langs[at]):
            return Nearest(look.texts[at], look.langs[at], float(cosines[at]))
        read = _best(cosines, places[reader])
        return Nearest(look.texts[at], look.langs[at], float(cosines[at]), look.texts[read], look.langs[read])

    def _places(self, index: int) -> dict[str, np.ndarray]:
        """Language → the places of the query's sentences in it; kept, as every match of the query asks."""
        known = self._by_language.get(index)
        if known is None:
            found: dict[str, list[int]] = {}
            for at, lang in enumerate(self.looks[index].langs):
                found.setdefault(_base(lang), []).append(at)
            known = self._by_language[index] = {lang: np.array(places) for lang, places in found.items()}
        return known


def _spread(scores: np.ndarray) -> list[tuple[float, float]]:
    """The mean and the spread of each column; zeros of no rows."""
    if not len(scores):
        return [(0.0, 0.0)] * scores.shape[1]
    return list(zip(scores.mean(axis=0).tolist(), scores.std(axis=0).tolist(), strict=True))


def by_value(values: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each distinct value with the places where it stands."""
    order = np.argsort(values, kind="stable")
    cuts = np.flatnonzero(np.diff(values[order])) + 1
    for rows in np.split(order, cuts):
        if len(rows):
            yield int(values[rows[0]]), rows


def _best(cosines: np.ndarray, own: np.ndarray | None) -> int:
    """The place of the highest; own: among these places."""
    return int(cosines.argmax() if own is None else own[cosines[own].argmax()])


@lru_cache(maxsize=1024)
def _base(lang: str) -> str:
    """The language of a tag, without script and region: pt-BR → pt."""
    return lang.partition("-")[0].lower()


def _encode_once(encoder: Encoder, texts: Sequence[str]) -> tuple[dict[str, int], np.ndarray]:
    """Each distinct text's row, and the rows: (n distinct, d)."""
    place: dict[str, int] = {}
    for text in texts:
        place.setdefault(text, len(place))
    if not place:
        return place, np.zeros((0, encoder.dim), np.float32)
    return place, encoder.encode(list(place))
