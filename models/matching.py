"""Scores posts against queries, and turns scores into matches by calibrated thresholds.

    score(post, query) = max over the query's languages of post · w + b
    with a learnt head (models/reading.py): how likely a responder could act on the post, as far as it is this one

The first is about 1 on the query's own sentences, 0 on what it must not answer to. (w, b) is a direction
(models/query_ridge.py, models/directions.py), fitted on the query's sentences in all languages against fixed material
(models/contrast.py): everyday and news texts, and the bundled sentences of other categories. A query's scores depend
on that query and fixed material alone, so adding one never changes another's scores. Where it alerts, and how likely
a score is: models/levels.py. A post is read once: its likeliest readings, at most three, and never the need and the
offer of one category together.

Measured with an earlier static encoder: mean average precision by category on the half of the labelled disaster
messages nothing was fitted on (English; Haitian Creole as sent), of needs and offers among the Nepal and Italy posts,
by query on the demo stream; and the recall there where 3 ordinary posts in 1,000 pass
(`training/results/calibrate.json`).

    scoring                               en     ht     need   offer  demo   recall
    nearest sentence                      .182   .214   .044   .252   .421   .49
    mean of the sentences                 .241   .209   .135   .268   .333   .42
    mean − half the nearest background    .235   .214   .146   .277   .345   .45
    ridge                                 .230   .211   .142   .297   .425   .39
    ridge, accents   (a query just added) .225   .219   .133   .288   .494   .52
    + labelled posts, near misses         .303   .246   .213   .282   .429   .55   (the bundled queries)
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import msgspec
import numpy as np

from models.calibration import Calibration
from models.contrast import bundled_queries
from models.directions import Directions
from models.encoders.protocol import Encoder
from models.errors import VersionMismatch
from models.explanation import rounded
from models.feedback.fit import Feedback, Space
from models.levels import Levels, MatchConfig, Thresholds
from models.queries import Query
from models.records import PRIORITIES, Match, Post, is_notice

__all__ = ["READINGS", "MatchConfig", "Matcher", "Thresholds"]

READINGS = 3  # of one post: what a responder acts on first, and at most two more it also says


class Matcher:
    """Every active query, ready for one encoder version. Immutable: a changed query makes a new one.

    background: texts that ask and offer nothing. contrast: queries whose sentences of other categories are held
    against each query; default the bundled ones. Raises VersionMismatch if the calibration is for another encoder.
    """

    def __init__(
        self,
        config: MatchConfig,
        queries: Sequence[Query],
        encoder: Encoder,
        background: Sequence[str],
        calibration: Calibration | None = None,
        contrast: Sequence[Query] | None = None,
    ) -> None:
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
        others = bundled_queries() if contrast is None else tuple(contrast)
        self.directions = Directions(self.queries, encoder, background, others, config.contrast, calibration)
        self.head = calibration.head if calibration else None
        self.feedback: Feedback | None = None
        on_background = self.directions.on_background()
        self.usual = np.stack([on_background.mean(axis=0), on_background.std(axis=0)], axis=1)  # (q, 2)
        self.levels = Levels(config, self.queries, on_background, calibration)
        self._filtered = [i for i, q in enumerate(self.queries) if q.where is not None or q.expires]

    @property
    def background(self) -> np.ndarray:
        """(b, d): the vectors of the texts that ask and offer nothing."""
        return self.directions.background

    @property
    def thresholds(self) -> list[Thresholds]:
        """(q,): from where on each query alerts and suggests."""
        return self.levels.thresholds

    def standings(self, post: Post, vector: np.ndarray) -> np.ndarray:
        """(q,) float32: what bars are held against for one post (d,): with a head the scores, else the probabilities,
        with what people taught. Filters are not asked."""
        scores, added = self.scores(vector[None]), self._added(vector[None], [post])
        scores = (scores if added is None else self.levels.moved(scores, added))[0]
        return scores if self.head else self.levels.likely(scores, np.arange(len(scores)))

    def standing(self, match: Match) -> float:
        """The same of one match."""
        return match.score if self.head else match.probability or 0.0

    def standing_at(self, index: int, score: float) -> float:
        """The same of one query at a score."""
        return score if self.head else float(self.levels.likely(np.array([score], np.float32), np.array([index]))[0])

    def score_at(self, index: int, probability: float) -> float:
        """The score at which a query stands at this probability: the inverse of `standing_at`."""
        return self.levels.score_at(index, probability)

    def scores(self, vectors: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
        """Scores in [-1, 1], higher is closer: (n, d) float32 → (n, q) float32. With a learnt head: how likely a
        responder could act on the post, as far as it is this one.

        which: only the queries with these indices, for encoders without a head. (A head shares out what it reads: it
        must see all that may share.) Raises VersionMismatch if the vectors have another dimension than the encoder
        these queries were embedded with.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.dim:
            raise VersionMismatch(
                f"vectors of shape {vectors.shape} against queries of dim {self.dim} ({self.encoder_version})"
            )
        likely = self.probabilities(vectors)
        return self.directed(vectors, which) if likely is None else self._shared(vectors, likely)

    def probabilities(self, vectors: np.ndarray) -> np.ndarray | None:
        """(n, d) → (n, q) float32: how likely each query is a right reading. None without a learnt head."""
        if not self.head or not self.queries:
            return None
        return self.head.probabilities(self.queries, vectors, self.directed(vectors), self.usual)

    def _shared(self, vectors: np.ndarray, likely: np.ndarray) -> np.ndarray:
        assert self.head
        return self.head.shared(self.queries, vectors, likely)

    @property
    def space(self) -> Space:
        """Where the vectors of this encoder lie, as corrections see them."""
        return Space.of(self.background)

    def corrected_by(self, feedback: Feedback | None) -> Matcher:
        """The same queries, moved by what people taught; None: as shipped."""
        made = copy.copy(self)
        made.feedback = feedback
        return made

    def odds(self, vectors: np.ndarray) -> np.ndarray:
        """(n, q) float32: log-odds of an alert as shipped, before feedback: 0 at one half."""
        return self.levels.odds(self.scores(vectors))

    def directed(self, vectors: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
        """(n, q) float32: scores by the queries' directions, clipped to [-1, 1]."""
        return self.directions.scores(vectors, which)

    def match(
        self,
        post_ids: Sequence[str],
        vectors: np.ndarray,
        encoder_version: str,
        posts: Sequence[Post] | None = None,
    ) -> list[Match]:
        """The readings of each post in order, the likeliest first: at most READINGS, and of the need and the offer
        of one category the likelier alone.

        posts: the posts themselves, row by row, where they are known: what a query leaves out (models/filters.py) is
        then no reading, what people taught counts (it hangs on language and words), and the nearest sentence is told
        in their language. Raises VersionMismatch if the vectors come from another encoder version.
        """
        if encoder_version != self.encoder_version:
            raise VersionMismatch(f"vectors of {encoder_version} against queries of {self.encoder_version}")
        sure = self.probabilities(vectors)
        if sure is None:
            asked = np.arange(len(self.queries)) if posts is None else self._asked(posts)
            scores = np.full((len(vectors), len(self.queries)), -np.inf, np.float32)
            scores[:, asked] = self.scores(vectors, asked)
        else:
            scores = self._shared(vectors, sure)
        shipped, added = scores, None if posts is None else self._added(vectors, posts)
        if added is not None:
            scores = self.levels.moved(scores, added)
            sure = None if sure is None else self.levels.moved(sure, added)
        fits = scores >= self.levels.lowest
        if posts is not None:
            for i in self._filtered:
                for row in np.flatnonzero(fits[:, i]).tolist():
                    fits[row, i] = not self.refusal(i, posts[row])
            scores = np.where(fits, scores, -np.inf).astype(np.float32)
        read = [
            (row, i, probability)
            for row in np.flatnonzero(fits.any(axis=1)).tolist()
            for i, probability in self._readings(scores[row], None if sure is None else sure[row])
        ]
        rows = np.array([row for row, _, _ in read], np.int64)
        which = [i for _, i, _ in read]
        terms = self.terms(vectors[rows], shipped[rows], which)
        if added is not None:
            self._say_taught(terms, added[rows, which], self.terms(vectors[rows], scores[rows], which))
        urgent = self.head.urgent(vectors[rows]) if self.head else None
        priorities = self.head.priorities(vectors[rows]) if self.head else np.zeros((len(rows), 0), np.float32)
        found = []
        for at, (row, i, probability) in enumerate(read):
            match = self._as_match(post_ids[row], i, vectors[row], posts[row].lang if posts else "")
            first = int(priorities[at].argmax()) if priorities.shape[1] else None
            made = msgspec.structs.replace(
                match,
                level="alert" if scores[row, i] >= self.levels.alert[i] else "suggestion",
                score=round(float(scores[row, i]), 4),
                probability=round(probability, 3),
                urgent=None if urgent is None else round(float(urgent[at]), 3),
                priority=None if first is None else PRIORITIES[first],
                priority_probability=None if first is None else round(float(priorities[at, first]), 3),
                terms=rounded(terms[at]),
            )
            found.append(made)
        return found

    def _say_taught(self, terms: list[dict[str, float]], added: np.ndarray, moved: list[dict[str, float]]) -> None:
        """Add the term of what people taught: `added`, or without a head what the moved score makes of it."""
        for told, by, after in zip(terms, added, moved, strict=True):
            if by:
                told["taught"] = float(by) if self.head else sum(after.values()) - sum(told.values())

    def _added(self, vectors: np.ndarray, posts: Sequence[Post]) -> np.ndarray | None:
        """(n, q) log-odds that what people taught adds; None where nobody taught anything."""
        if not self.feedback or not posts:
            return None
        ids = [query.id for query in self.queries]
        return self.feedback.added(ids, vectors, [p.text for p in posts], [p.lang for p in posts])

    def _asked(self, posts: Sequence[Post]) -> np.ndarray:
        """The queries that may read one of these posts, by what is known without reading them: (k,) indices."""
        origins = {(post.lang, post.source) for post in posts}
        first = min((post.seen_at for post in posts), default=0.0)
        left_out = {
            i
            for i in self._filtered
            if self.queries[i].expires_at <= first
            or ((where := self.queries[i].where) and all(where.origin_refusal(*origin) for origin in origins))
        }
        return np.array([i for i in range(len(self.queries)) if i not in left_out], np.int64)

    def refusal(self, index: int, post: Post) -> str:
        """Why a query does not read a post, as the end of a sentence; empty if it does."""
        query = self.queries[index]
        if post.seen_at >= query.expires_at:
            return f"the query ended at {query.expires}"
        return query.where.refusal(post) if query.where else ""

    def _readings(self, scores: np.ndarray, sure: np.ndarray | None) -> list[tuple[int, float]]:
        """(query, probability) of one post's readings, the likeliest first. scores: (q,). sure: (q,), with a head."""
        over = np.flatnonzero(scores >= self.levels.lowest)
        likely = self.levels.likely(scores[over], over) if sure is None else sure[over]
        order = np.argsort(-likely, kind="stable") if sure is None else np.lexsort((-likely, -scores[over]))
        return self._compatible(over[order], likely[order], scores)

    def terms(self, vectors: np.ndarray, scores: np.ndarray, which: Sequence[int]) -> list[dict[str, float]]:
        """For each row and its query (an index) what adds up to the log-odds of the reading (models/explanation.py).

        vectors: (m, d). scores: (m, q), what `scores` gave for them. which: (m,).
        """
        if not len(vectors):
            return []
        used = sorted(set(which))
        if self.head:
            queries, directed = [self.queries[i] for i in used], self.directed(vectors, np.array(used))
            log_probabilities = self.head.log_probabilities(vectors)
            of = dict(zip(used, self.head.terms(queries, log_probabilities, directed, self.usual[used]), strict=True))
        else:
            of = {i: self.levels.terms(i, scores[:, i]) for i in used}
        return [{name: float(values[at]) for name, values in of[i].items()} for at, i in enumerate(which)]

    def _compatible(self, order: np.ndarray, likely: np.ndarray, scores: np.ndarray) -> list[tuple[int, float]]:
        """The first READINGS queries that can hold at once: not the need and the offer of one category. What alerts
        comes before what does not, as queries have bars of their own, and needs and offers before notices: who asks for
        help in a post that also warns is helped first."""
        kept: dict[str, tuple[int, float]] = {}
        for i, probability in zip(order, likely, strict=True):
            kept.setdefault(self.queries[i].category, (int(i), float(probability)))

        def place(reading: tuple[int, float]) -> tuple[bool, bool]:
            i = reading[0]
            return bool(scores[i] < self.levels.alert[i]), is_notice(self.queries[i].id)

        return sorted(kept.values(), key=place)[:READINGS]

    def _as_match(self, post_id: str, index: int, vector: np.ndarray, lang: str) -> Match:
        """A match without its level and numbers."""
        query = self.queries[index]
        nearest = self.directions.nearest(index, vector, lang, self.config.reader_language)
        return Match(
            post_id=post_id,
            query_id=query.id,
            query_version=query.version,
            level="suggestion",
            score=0.0,
            threshold=round(float(self.levels.alert[index]), 4),
            nearest=nearest.text,
            nearest_lang=nearest.lang,
            nearest_cosine=round(nearest.cosine, 4),
            nearest_told=nearest.told,
            nearest_told_lang=nearest.told_lang,
        )
