"""The directions queries look in, for one encoder version, and the query sentence that lies nearest to a post."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from models.calibration import Calibration
from models.contrast import Contrast
from models.encoders.protocol import Encoder
from models.queries import Query

BLOCK = 512  # posts scored at a time: their scores by language stay in the processor's cache


class Nearest(NamedTuple):
    """The query sentence nearest to a post, and the nearest in the readers' language where the first is in another."""

    text: str
    lang: str
    cosine: float
    told: str = ""
    told_lang: str = ""


class Directions:
    """A direction for each language of each query: score = max over the query's languages of post · w + b.

    queries: in the order the scores are to have. background: texts that ask and offer nothing. others: the queries
    whose sentences of other categories each is held against. share: of the background in what it is told apart from.
    """

    def __init__(
        self,
        queries: Sequence[Query],
        encoder: Encoder,
        background: Sequence[str],
        others: Sequence[Query],
        share: float,
        calibration: Calibration | None = None,
    ) -> None:
        self.dim = encoder.dim
        texts = [(i, lang, text) for i, query in enumerate(queries) for lang, text in query.texts()]
        self._lang = [lang for _, lang, _ in texts]
        self._text = [text for _, _, text in texts]
        place, vectors = _encode_once(encoder, [*self._text, *background, *(t for q in others for _, t in q.texts())])
        self._sentences = vectors[[place[text] for text in self._text]]  # (s, d)
        self.background = vectors[[place[text] for text in background]]  # (b, d)
        owner = np.array([i for i, _, _ in texts], dtype=np.int64)
        self._rows = [np.flatnonzero(owner == i) for i in range(len(queries))]
        held = Contrast(self.background, [(q, vectors[[place[t] for _, t in q.texts()]]) for q in others], share)
        looks = []
        for query, rows in zip(queries, self._rows, strict=True):
            known = calibration.direction(query) if calibration else None
            looks.append(held.directions(query, self._sentences[rows], [self._lang[row] for row in rows], known))
        self.matrix = np.vstack([np.zeros((0, self.dim + 1), np.float32), *looks])  # (k, d + 1), the constant last
        self._first = np.cumsum([0, *(len(look) for look in looks)])[:-1]  # (q,): each query's first direction

    def scores(self, vectors: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
        """(n, d) → (n, q) float32, clipped to [-1, 1]. which: only the queries with these indices."""
        matrix, first = self.matrix, self._first
        if which is not None and len(which) < len(first):
            ends = np.append(first, len(matrix))
            looks = [matrix[ends[i] : ends[i + 1]] for i in which]
            matrix = np.vstack([np.zeros((0, self.dim + 1), np.float32), *looks])
            first = np.cumsum([0, *(len(look) for look in looks)])[:-1]
        if not len(first):
            return np.zeros((len(vectors), 0), np.float32)
        out = np.empty((len(vectors), len(first)), np.float32)
        for start in range(0, len(vectors), BLOCK):
            every = vectors[start : start + BLOCK] @ matrix[:, :-1].T + matrix[:, -1]  # (block, k)
            np.maximum.reduceat(every, first, axis=1, out=out[start : start + BLOCK])
        return np.clip(out, -1.0, 1.0, out=out)

    def on_background(self) -> np.ndarray:
        """(b, q) scores of the background texts; one row of zeros where there are none."""
        found = self.scores(self.background)
        return found if len(found) else np.zeros((1, len(self._first)), np.float32)

    def nearest(self, index: int, vector: np.ndarray, lang: str, reader_language: str) -> Nearest:
        """The query's sentence nearest to a post (d,), in the post's language where the query has one."""
        rows = self._rows[index]
        cosines = self._sentences[rows] @ vector

        def nearest_in(wanted: str) -> int | None:
            own = [at for at, row in enumerate(rows) if _base(self._lang[row]) == _base(wanted)]
            return max(own, key=lambda at: float(cosines[at])) if own else None

        own, read = nearest_in(lang), nearest_in(reader_language)
        at = int(cosines.argmax()) if own is None else own
        found = Nearest(self._text[rows[at]], self._lang[rows[at]], float(cosines[at]))
        if read is None or _base(found.lang) == _base(self._lang[rows[read]]):
            return found
        return found._replace(told=self._text[rows[read]], told_lang=self._lang[rows[read]])


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
