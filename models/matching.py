"""Scores posts against queries, and turns scores into matches by calibrated thresholds.

    score(post, query) = max over the query's languages of post · w + b

About 1 on the query's own sentences, 0 on what it must not answer to. (w, b) is a direction (see directions.py), fitted
on the query's sentences in all languages against fixed material: everyday and news texts, and the bundled sentences of
other categories. For the bundled queries the calibration brings better ones, fitted on labelled posts and near misses. A query's scores depend on that query and fixed material alone, so
adding a query never changes another query's matches.

Measured with the bundled encoder b727516c3f87: mean average precision by category on the half of the labelled disaster
messages nothing was fitted on (English; Haitian Creole as sent), of needs and offers among the Nepal and Italy posts, by
query on the demo stream; and the recall there where 3 ordinary posts in 1,000 pass (`training/results/calibrate.json`).

    scoring                               en     ht     need   offer  demo   recall
    nearest sentence                      .182   .214   .044   .252   .421   .49
    mean of the sentences                 .241   .209   .135   .268   .333   .42
    mean − half the nearest background    .235   .214   .146   .277   .345   .45
    ridge                                 .230   .211   .142   .297   .425   .39
    ridge, accents   (a query just added) .225   .219   .133   .288   .494   .52
    + labelled posts, near misses         .303   .246   .213   .282   .429   .55   (the bundled queries)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from msgspec import Struct

from models.calibration import Calibration, fallback_thresholds
from models.directions import AGAINST, OPPOSITE, Moments, accents, moments, solve, without
from models.encoder import Encoder
from models.errors import VersionMismatch
from models.queries import Query, load_queries
from models.records import Match

BLOCK = 512  # posts scored at a time: their scores by language stay in the processor's cache


@dataclass(frozen=True)
class MatchConfig:
    """How matches are made."""

    contrast: float = 0.75  # share of the everyday texts in what a query is told apart from; calibrations hold for one
    suggestions: bool = True  # also emit matches between the suggestion and the alert threshold


class Thresholds(Struct, frozen=True):
    """Of one query for one encoder version, in units of score."""

    alert: float
    suggestion: float


@lru_cache(maxsize=1)
def bundled_queries() -> tuple[Query, ...]:
    """The bundled packs as they were shipped: what every query is told apart from, whichever are active."""
    return tuple(load_queries())


class Matcher:
    """Every active query, ready for one encoder version. Immutable: a changed query makes a new one.

    background: texts that ask and offer nothing. contrast: queries whose sentences of other categories are held
    against each query; default the bundled ones. Raises VersionMismatch if the calibration is for another encoder.
    """

    def __init__(
        self, config: MatchConfig, queries: Sequence[Query], encoder: Encoder, background: Sequence[str],
        calibration: Calibration | None = None, contrast: Sequence[Query] | None = None,
    ) -> None:  # fmt: skip
        if calibration and calibration.encoder_version != encoder.version:
            raise VersionMismatch(
                f"calibration of {calibration.encoder_version} with encoder {encoder.version}: recalibrate with"
                " `python -m training.calibrate laptop`"
            )
        if calibration and calibration.contrast != config.contrast:
            raise VersionMismatch(
                f"calibration for contrast {calibration.contrast}, the setting is {config.contrast}: set it back, or"
                f" recalibrate with `python -m training.calibrate laptop contrast={config.contrast}`"
            )
        self.config = config
        self.queries = sorted(queries, key=lambda q: q.id)
        self.encoder_version, self.dim = encoder.version, encoder.dim
        self._calibration = calibration
        others = bundled_queries() if contrast is None else tuple(contrast)
        texts = [(i, lang, text) for i, q in enumerate(self.queries) for lang, text in q.texts()]
        self._lang = [lang for _, lang, _ in texts]
        self._text = [text for _, _, text in texts]
        place, vectors = _encode_once(encoder, [*self._text, *background, *(t for q in others for _, t in q.texts())])
        self._sentences = vectors[[place[text] for text in self._text]]  # (s, d)
        self.background = vectors[[place[text] for text in background]]  # (b, d)
        owner = np.array([i for i, _, _ in texts], dtype=np.int64)
        self._rows = [np.flatnonzero(owner == i) for i in range(len(self.queries))]
        held = Contrast(
            self.background, [(q, vectors[[place[t] for _, t in q.texts()]]) for q in others], config.contrast
        )
        looks = []
        for query, rows in zip(self.queries, self._rows, strict=True):
            known = calibration.direction(query) if calibration else None
            looks.append(held.directions(query, self._sentences[rows], [self._lang[row] for row in rows], known))
        self.directions = np.vstack([np.zeros((0, self.dim + 1), np.float32), *looks])  # (k, d + 1), the constant last
        self._first = np.cumsum([0, *(len(look) for look in looks)])[:-1]  # (q,): each query's first direction
        on_background = self.scores(self.background)
        self.thresholds = [self._threshold(q, on_background[:, i]) for i, q in enumerate(self.queries)]
        self._alert = np.array([t.alert for t in self.thresholds], np.float32)
        self._lowest = np.array([t.suggestion if config.suggestions else t.alert for t in self.thresholds], np.float32)

    def _threshold(self, query: Query, on_background: np.ndarray) -> Thresholds:
        known = self._calibration.thresholds(query) if self._calibration else None
        alert, suggestion = known or fallback_thresholds(on_background, self._calibration)
        if query.threshold is not None:  # a person's choice wins; keep the calibrated distance between the levels
            alert, suggestion = query.threshold, query.threshold - max(alert - suggestion, 0.0)
        return Thresholds(alert=alert, suggestion=suggestion)

    def scores(self, vectors: np.ndarray) -> np.ndarray:
        """Scores, clipped to [-1, 1], higher is closer: (n, d) float32 → (n, q) float32.

        Raises VersionMismatch if the vectors have another dimension than the encoder these queries were embedded with.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.dim:
            raise VersionMismatch(
                f"vectors of shape {vectors.shape} against queries of dim {self.dim} ({self.encoder_version})"
            )
        if not self.queries:
            return np.zeros((len(vectors), 0), np.float32)
        out = np.empty((len(vectors), len(self.queries)), np.float32)
        for start in range(0, len(vectors), BLOCK):
            every = vectors[start : start + BLOCK] @ self.directions[:, :-1].T + self.directions[:, -1]  # (block, k)
            np.maximum.reduceat(every, self._first, axis=1, out=out[start : start + BLOCK])
        return np.clip(out, -1.0, 1.0, out=out)

    def match(self, post_ids: Sequence[str], vectors: np.ndarray, encoder_version: str) -> list[Match]:
        """Every match of each post in order, best margin over its threshold first.

        There is no limit to the matches of a post: with one, a new query would push out another's match.
        Raises VersionMismatch if the vectors come from another encoder version.
        """
        if encoder_version != self.encoder_version:
            raise VersionMismatch(f"vectors of {encoder_version} against queries of {self.encoder_version}")
        scores = self.scores(vectors)
        found: list[Match] = []
        for row in np.flatnonzero((scores >= self._lowest).any(axis=1)):
            over = np.flatnonzero(scores[row] >= self._lowest)
            over = over[np.argsort(self._alert[over] - scores[row, over], kind="stable")]
            found += [self._explain(post_ids[row], int(i), vectors[row], float(scores[row, i])) for i in over]
        return found

    def _explain(self, post_id: str, index: int, vector: np.ndarray, score: float) -> Match:
        query, rows = self.queries[index], self._rows[index]
        cosines = self._sentences[rows] @ vector
        nearest = int(rows[int(cosines.argmax())])
        return Match(
            post_id=post_id, query_id=query.id, query_version=query.version,
            level="alert" if score >= self._alert[index] else "suggestion",
            score=round(score, 4), threshold=round(float(self._alert[index]), 4),
            probability=self._calibration.probability(query, score) if self._calibration else None,
            nearest=self._text[nearest], nearest_lang=self._lang[nearest],
            nearest_cosine=round(float(cosines.max()), 4),
        )  # fmt: skip


class Contrast:
    """The fixed material every query is told apart from, as moments: built once for all queries."""

    def __init__(
        self, background: np.ndarray, others: Sequence[tuple[Query, np.ndarray]], share: float = MatchConfig.contrast
    ) -> None:
        """background: (b, d). others: each bundled query with the vectors of its sentences. share: of the background."""
        self._share = share
        dim = background.shape[1]
        self._background = moments(background)
        self._every = moments(np.vstack([np.zeros((0, dim), np.float32), *(v for _, v in others)]))
        self._of: dict[tuple[str, str], Moments] = {(q.category, q.kind): moments(v) for q, v in others}
        self._none = moments(np.zeros((0, dim), np.float32))

    def groups(self, query: Query, sentences: np.ndarray) -> list[tuple[float, Moments]]:
        """What a query's direction is fitted on: its own sentences (n, d), and the rest by its weight."""
        opposite = self._of.get((query.category, "offer" if query.kind == "need" else "need"), self._none)
        others = self._every
        for kind in ("need", "offer"):
            others = without(others, self._of.get((query.category, kind), self._none))
        return [
            (1.0, moments(sentences, 1.0)),
            (AGAINST * self._share, self._background),
            (AGAINST * (1 - self._share), others),
            (OPPOSITE, opposite),
        ]

    def directions(
        self, query: Query, sentences: np.ndarray, langs: Sequence[str], known: np.ndarray | None = None
    ) -> np.ndarray:
        """(languages, d + 1): the query's directions. known: (d + 1,), what calibration made of the common part."""
        groups = self.groups(query, sentences)
        names = np.array(langs)
        means = np.stack([sentences[names == lang].mean(axis=0) for lang in dict.fromkeys(langs)])
        return (solve(groups) if known is None else known) + accents(groups, means)


def _encode_once(encoder: Encoder, texts: Sequence[str]) -> tuple[dict[str, int], np.ndarray]:
    """Each distinct text's row, and the rows: (n distinct, d)."""
    place: dict[str, int] = {}
    for text in texts:
        place.setdefault(text, len(place))
    if not place:
        return place, np.zeros((0, encoder.dim), np.float32)
    return place, encoder.encode(list(place))
