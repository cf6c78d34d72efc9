"""Scores posts against queries, and turns scores into matches by calibrated thresholds.

    score(post, query) = max over the query's languages of post · w + b
    with a learnt head (models/reading.py): how likely a responder could act on the post, as far as it is this one

The first is about 1 on the query's own sentences, 0 on what it must not answer to. (w, b) is a direction
(models/query_ridge.py), fitted on the query's sentences in all languages against fixed material: everyday and news
texts, and the bundled sentences of other categories. A query's scores depend on that query and fixed material alone,
so adding one never changes another's scores. A post is read once: its likeliest readings, at most three, and never
the need and the offer of one category together.

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
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import numpy as np
from msgspec import Struct

from models.calibration import Calibration, fallback_thresholds
from models.encoders.protocol import Encoder
from models.errors import VersionMismatch
from models.explanation import log_odds, rounded
from models.feedback.fit import Feedback, Space
from models.queries import Query, load_queries
from models.query_ridge import AGAINST, OPPOSITE, Moments, accents, moments, solve, without
from models.reading import logistic, logit
from models.records import Match, Post

READINGS = 3  # of one post: what a responder acts on first, and at most two more it also says
PRIOR_LOGIT = float(np.log(4))  # log-odds between one half and one fifth
BLOCK = 512  # posts scored at a time: their scores by language stay in the processor's cache


@dataclass(frozen=True)
class MatchConfig:
    """How matches are made."""

    alert_probability: float = 0.5  # that a post is a need or an offer: from here it alerts, with a learnt head
    suggestion_probability: float = 0.2  # and from here it is a suggestion
    target_precision: float | None = None  # instead of alert_probability: this share of the alerts is to be right
    contrast: float = 0.75  # share of the everyday texts in what a query is told apart from; calibrations hold for one
    suggestions: bool = True  # also emit matches between the suggestion and the alert threshold
    reader_language: str = "en"  # of those who read the alerts: the nearest sentence is told in it too

    def __post_init__(self) -> None:
        if self.target_precision is not None and not 0 < self.target_precision < 1:
            raise ValueError(f"target_precision {self.target_precision} is not between 0 and 1")


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
        self.head = calibration.head if calibration else None
        self.feedback: Feedback | None = None
        on_background = self.directed(self.background)
        if len(on_background) == 0:  # nothing to be told apart from
            on_background = np.zeros((1, len(self.queries)), np.float32)
        self.usual = np.stack([on_background.mean(axis=0), on_background.std(axis=0)], axis=1)  # (q, 2)
        measured = [self._threshold(q, on_background[:, i]) for i, q in enumerate(self.queries)]
        self._half = np.array([t.alert for t in measured], np.float32)  # (q,): where a prior says one half
        self._suggested = np.array([t.suggestion for t in measured], np.float32)
        self.thresholds = [self._chosen(i, q, measured[i]) for i, q in enumerate(self.queries)]
        self._alert = np.array([t.alert for t in self.thresholds], np.float32)
        self._unit = np.maximum(self._half - self._suggested, 1e-3) / PRIOR_LOGIT  # score that one unit of log-odds is
        moves = [self._moves(query) for query in self.queries]  # a live bar may lie anywhere above the suggestions
        self._lowest = np.array(
            [t.suggestion if config.suggestions or m else t.alert for t, m in zip(self.thresholds, moves, strict=True)],
            np.float32,
        )
        self._filtered = [i for i, q in enumerate(self.queries) if q.where is not None or q.expires]

    def _moves(self, query: Query) -> bool:
        """Does its bar follow the stream (models/bars.py)?"""
        return query.alerts_per_hour is not None or (self.config.target_precision is not None and query.follows_target)

    def _chosen(self, index: int, query: Query, measured: Thresholds) -> Thresholds:
        if query.probability is None:
            return measured
        alert = self.score_at(index, query.probability)
        return Thresholds(alert=alert, suggestion=min(measured.suggestion, alert))

    def standings(self, post: Post, vector: np.ndarray) -> np.ndarray:
        """(q,) float32: what bars are held against for one post (d,): with a head the scores, else the probabilities,
        with what people taught. Filters are not asked."""
        scores, added = self.scores(vector[None]), self._added(vector[None], [post])
        scores = (scores if added is None else self._moved(scores, added))[0]
        return scores if self.head else self._likely(scores, np.arange(len(scores)))

    def standing(self, match: Match) -> float:
        """The same of one match."""
        return match.score if self.head else match.probability or 0.0

    def standing_at(self, index: int, score: float) -> float:
        """The same of one query at a score."""
        return score if self.head else float(self._likely(np.array([score], np.float32), np.array([index]))[0])

    def score_at(self, index: int, probability: float) -> float:
        """The score at which a query stands at this probability: the inverse of `standing_at`."""
        if self.head:
            return probability
        curve = self._calibration.curve(self.queries[index]) if self._calibration else []
        if curve:
            at, precision = zip(*curve, strict=True)
            reached = [score for score, likely in curve if likely >= probability]
            return float(np.interp(probability, precision, at)) if reached else 1.0
        alert = float(self._half[index])
        return alert + log_odds(probability) / PRIOR_LOGIT * max(alert - float(self._suggested[index]), 1e-3)

    def _threshold(self, query: Query, on_background: np.ndarray) -> Thresholds:
        if self.head:
            alert = self.config.alert_probability
            suggestion = min(self.config.suggestion_probability, alert)
        else:
            known = self._calibration.thresholds(query) if self._calibration else None
            alert, suggestion = known or fallback_thresholds(on_background, self._calibration)
        if query.threshold is not None:  # a person's choice wins; keep the calibrated distance between the levels
            alert, suggestion = query.threshold, query.threshold - max(alert - suggestion, 0.0)
        return Thresholds(alert=alert, suggestion=suggestion)

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
        return self._odds(self.scores(vectors))

    def _odds(self, scores: np.ndarray) -> np.ndarray:
        if self.head:
            return logit(scores)
        odds: np.ndarray = (scores - self._half) / self._unit
        return odds

    def _moved(self, scores: np.ndarray, added: np.ndarray) -> np.ndarray:
        """Scores after feedback. added: (n, q) log-odds; what nobody taught stays as it is to the bit."""
        if self.head:
            moved = logistic(logit(scores) + added)
        else:
            moved = np.clip(scores + added * self._unit, -1.0, 1.0)
        return np.where(added == 0, scores, moved).astype(np.float32)

    def directed(self, vectors: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
        """(n, q) float32: scores by the queries' directions, clipped to [-1, 1]."""
        directions, first = self.directions, self._first
        if which is not None and len(which) < len(self.queries):
            ends = np.append(self._first, len(self.directions))
            looks = [self.directions[ends[i] : ends[i + 1]] for i in which]
            directions = np.vstack([np.zeros((0, self.dim + 1), np.float32), *looks])
            first = np.cumsum([0, *(len(look) for look in looks)])[:-1]
        if not len(first):
            return np.zeros((len(vectors), 0), np.float32)
        out = np.empty((len(vectors), len(first)), np.float32)
        for start in range(0, len(vectors), BLOCK):
            every = vectors[start : start + BLOCK] @ directions[:, :-1].T + directions[:, -1]  # (block, k)
            np.maximum.reduceat(every, first, axis=1, out=out[start : start + BLOCK])
        return np.clip(out, -1.0, 1.0, out=out)

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
            scores = self._moved(scores, added)
            sure = None if sure is None else self._moved(sure, added)
        fits = scores >= self._lowest
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
        found = []
        for at, (row, i, probability) in enumerate(read):
            match = self._nearest(post_ids[row], i, vectors[row], posts[row].lang if posts else "")
            made = msgspec.structs.replace(
                match,
                level="alert" if scores[row, i] >= self._alert[i] else "suggestion",
                score=round(float(scores[row, i]), 4),
                probability=round(probability, 3),
                urgent=None if urgent is None else round(float(urgent[at]), 3),
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
        over = np.flatnonzero(scores >= self._lowest)
        likely = self._likely(scores[over], over) if sure is None else sure[over]
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
            of = {i: self._prior(i, scores[:, i]) for i in used}
        return [{name: float(values[at]) for name, values in of[i].items()} for at, i in enumerate(which)]

    def _prior(self, i: int, scores: np.ndarray) -> dict[str, np.ndarray]:
        """The terms of one query without a head: what labelled posts say, or a stated prior, one half at the alert
        threshold and one fifth at the suggestion threshold (logistic between and beyond)."""
        if self._calibration and self._calibration.probability(self.queries[i], 0.0) is not None:
            said = [self._calibration.probability(self.queries[i], float(score)) or 0.0 for score in scores]
            return {"measured": np.array([log_odds(p) for p in said], np.float32)}
        alert = float(self._half[i])
        steep = PRIOR_LOGIT / max(alert - float(self._suggested[i]), 1e-3)
        return {"bias": np.full(len(scores), -steep * alert, np.float32), "query": steep * scores}

    def _likely(self, scores: np.ndarray, over: np.ndarray) -> np.ndarray:
        """(m,): the probability of each reading of one post, without a head."""
        if not len(over):
            return np.zeros(0, np.float32)
        summed = [sum(self._prior(int(i), scores[at : at + 1]).values()) for at, i in enumerate(over)]
        return logistic(np.concatenate(summed))

    def _compatible(self, order: np.ndarray, likely: np.ndarray, scores: np.ndarray) -> list[tuple[int, float]]:
        """The first READINGS queries that can hold at once: not the need and the offer of one category. What alerts
        comes before what does not, where queries have bars of their own."""
        kept: dict[str, tuple[int, float]] = {}
        for i, probability in zip(order, likely, strict=True):
            kept.setdefault(self.queries[i].category, (int(i), float(probability)))
        return sorted(kept.values(), key=lambda reading: bool(scores[reading[0]] < self._alert[reading[0]]))[:READINGS]

    def _nearest(self, post_id: str, index: int, vector: np.ndarray, lang: str) -> Match:
        """A match without its level and numbers: the query's sentence nearest to the post, in the language of the post
        where the query has one, and in the readers'."""
        query, rows = self.queries[index], self._rows[index]
        cosines = self._sentences[rows] @ vector

        def nearest_in(wanted: str) -> int | None:
            own = [at for at, row in enumerate(rows) if _base(self._lang[row]) == _base(wanted)]
            return max(own, key=lambda at: float(cosines[at])) if own else None

        own, read = nearest_in(lang), nearest_in(self.config.reader_language)
        at = int(cosines.argmax()) if own is None else own
        told = None if read is None or _base(self._lang[rows[at]]) == _base(self._lang[rows[read]]) else rows[read]
        return Match(
            post_id=post_id,
            query_id=query.id,
            query_version=query.version,
            level="suggestion",
            score=0.0,
            threshold=round(float(self._alert[index]), 4),
            nearest=self._text[rows[at]],
            nearest_lang=self._lang[rows[at]],
            nearest_cosine=round(float(cosines[at]), 4),
            nearest_told="" if told is None else self._text[told],
            nearest_told_lang="" if told is None else self._lang[told],
        )


def _base(lang: str) -> str:
    """The language of a tag, without script and region: pt-BR → pt."""
    return lang.partition("-")[0].lower()


class Contrast:
    """The fixed material every query is told apart from, as moments: built once for all queries."""

    def __init__(
        self, background: np.ndarray, others: Sequence[tuple[Query, np.ndarray]], share: float = MatchConfig.contrast
    ) -> None:
        """background: (b, d). others: each bundled query with the vectors of its sentences. share: of the
        background.
        """
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
        common: np.ndarray = solve(groups) if known is None else known
        directions: np.ndarray = common + accents(groups, means)  # (languages, d + 1)
        return directions


def _encode_once(encoder: Encoder, texts: Sequence[str]) -> tuple[dict[str, int], np.ndarray]:
    """Each distinct text's row, and the rows: (n distinct, d)."""
    place: dict[str, int] = {}
    for text in texts:
        place.setdefault(text, len(place))
    if not place:
        return place, np.zeros((0, encoder.dim), np.float32)
    return place, encoder.encode(list(place))
