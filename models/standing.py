"""The standing queries, ready for one encoder version: what each looks for, where it alerts, what people taught it.

models/matching.py reads posts with them; models/pairs.py finds which post reaches which query.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Self

import numpy as np

from models.calibration import Calibration
from models.contrast import bundled_queries
from models.directions import Directions, Look
from models.encoders.protocol import Encoder
from models.errors import VersionMismatch
from models.feedback.fit import Feedback, Space
from models.levels import Levels, MatchConfig, Thresholds
from models.own_sentences import OwnSentences
from models.queries import Query
from models.reading import LEAST_SPREAD, logit, moved
from models.records import KINDS, Kind, Match, Post, is_notice
from models.screen import Member, Screen

__all__ = ["StandingQueries"]


class StandingQueries:
    """Every active query, ready for one encoder version. Immutable: a changed query makes a new one.

    background: texts that ask and offer nothing. contrast: queries whose sentences of other categories are held
    against each query; default the bundled ones. before: a matcher of the same encoder, background and contrast, from
    which what has not changed is taken over. Raises VersionMismatch if the calibration is for another encoder.
    """

    def __init__(
        self,
        config: MatchConfig,
        queries: Sequence[Query],
        encoder: Encoder,
        background: Sequence[str],
        calibration: Calibration | None = None,
        contrast: Sequence[Query] | None = None,
        before: Self | None = None,
    ) -> None:
        if calibration and calibration.encoder_version != encoder.version:
            raise VersionMismatch(
                f"calibration of {calibration.encoder_version} with encoder {encoder.version}: recalibrate with"
                f" `python -m training.{'head' if calibration.head else 'calibrate'} laptop encoder=DIR`"
            )
        if calibration and calibration.contrast != config.contrast:
            again = f"recalibrate with `python -m training.calibrate laptop encoder=DIR contrast={config.contrast}`"
            raise VersionMismatch(
                f"calibration for contrast {calibration.contrast}, the setting is {config.contrast}: set it back"
                + ("" if calibration.head else f", or {again}")  # a head is learnt with the default contrast alone
            )
        self.config, self.calibration = config, calibration
        self.queries = sorted(queries, key=lambda q: q.id)
        self.encoder_version, self.dim = encoder.version, encoder.dim
        others = bundled_queries() if contrast is None else tuple(contrast)
        if before and (before.config, before.encoder_version) != (config, encoder.version):
            before = None
        if before and before.calibration is not calibration:
            before = None
        kept, looks = self._take_over(before)
        self.directions: Directions = Directions(
            self.queries,
            encoder,
            background,
            others,
            config.contrast,
            calibration,
            before.directions if before else None,
            looks,
        )
        self.head = calibration.head if calibration else None
        earlier_own = before.own_sentences if before else None
        self.own_sentences: OwnSentences = OwnSentences(
            self.queries, self.head, others, encoder, self.directions, earlier_own
        )
        self.feedback: Feedback | None = None
        self.among = self.directions.among  # (q, 2)
        usual = self.directions.usual if len(self.directions.background) > 1 else None
        earlier = (before.levels, kept) if before else None
        self.levels: Levels = Levels(config, self.queries, usual, calibration, earlier)
        self._divide(before, kept)

    def _take_over(self, before: Self | None) -> tuple[np.ndarray, list[Look | None]]:
        """(q,) the place of each unchanged query in the earlier matcher, else -1; and (q,) what it looked for, or None.

        An unchanged query becomes the very same object: the screen knows its own by that.
        """
        kept = np.full(len(self.queries), -1)
        looks: list[Look | None] = [None] * len(self.queries)
        for i, query in enumerate(self.queries) if before else ():
            assert before
            at = before.place.get(query.id)
            if at is None:
                continue
            known = before.queries[at]
            if known is query or known == query:
                kept[i], self.queries[i] = at, known
            if kept[i] >= 0 or known.version == query.version:
                looks[i] = before.directions.looks[at]
        return kept, looks

    def _divide(self, before: Self | None, kept: np.ndarray) -> None:
        """Sort the queries into those that are scored for every post and those that are screened."""
        reachable = self.levels.lowest > (1e-6 if self.head else -1.0)  # (q,): the others are reached by every post
        known = self.head.place if self.head else self.calibration.queries if self.calibration else {}
        self._screened = np.array([q.id not in known for q in self.queries], bool) & reachable
        if self.head:
            rising = {kind for kind in KINDS if self.head.weights_unknown(kind).query > 0}
            self._screened &= np.array([q.kind in rising for q in self.queries], bool)
        fresh = [Member(self.queries[i], self._bars(int(i))) for i in np.flatnonzero(self._screened & (kept < 0))]
        self._screen: Screen = before._screen.changed(self.place, self.queries, fresh) if before else Screen.of(fresh)
        self._owners = self._screen.owners(self.place, self.queries)
        self._filtered = np.array([q.where is not None or bool(q.expires) for q in self.queries], bool)

    def _bars(self, index: int) -> np.ndarray:
        """(languages, d + 1): a query's directions so that its lowest level is at 0, but for what the post adds."""
        rows = self.directions.looks[index].rows.astype(np.float64)
        lowest = float(self.levels.lowest[index])
        if not self.head:
            rows[:, -1] -= lowest
            return rows.astype(np.float32)
        weights = self.head.weights_unknown(self.queries[index].kind)
        mean, spread = float(self.among[index, 0]), max(float(self.among[index, 1]), LEAST_SPREAD)
        rows[:, -1] -= mean
        rows /= spread
        rows[:, -1] -= (float(logit(np.array(lowest))) - weights.bias) / weights.query
        return rows.astype(np.float32)

    @cached_property
    def place(self) -> dict[str, int]:
        """The index of each query, by id."""
        return {query.id: i for i, query in enumerate(self.queries)}

    @cached_property
    def budgets(self) -> dict[str, float]:
        """Alerts an hour, at most, of the queries that have such a budget, by id."""
        return {q.id: q.alerts_per_hour for q in self.queries if q.alerts_per_hour is not None}

    @cached_property
    def targets(self) -> dict[str, float]:
        """The share of their alerts that is to be right, of the queries that have such a target, by id."""
        return {q.id: q.target_precision for q in self.queries if q.target_precision is not None}

    @cached_property
    def followers(self) -> frozenset[str]:
        """Ids of the queries of which nobody said from where on they alert."""
        return frozenset(query.id for query in self.queries if query.follows_target)

    @cached_property
    def kinds(self) -> np.ndarray:
        """(q,) int64: the place of each query's kind among KINDS."""
        return np.array([KINDS.index(query.kind) for query in self.queries], np.int64)

    @cached_property
    def notices(self) -> np.ndarray:
        """(q,) bool: the queries that are notices, no needs and no offers."""
        return np.array([is_notice(query.id) for query in self.queries], bool)

    @cached_property
    def taught_aid(self) -> np.ndarray:
        """(q,) bool: the needs and offers that a head was taught; all false without one."""
        known = self.head.place if self.head else {}
        return np.array([query.id in known and not is_notice(query.id) for query in self.queries], bool)

    @cached_property
    def categories(self) -> np.ndarray:
        """(q,) int64: the same number for the queries of one category."""
        number: dict[str, int] = {}
        return np.array([number.setdefault(query.category, len(number)) for query in self.queries], np.int64)

    @property
    def scored(self) -> np.ndarray:
        """The queries that are scored for every post: indices, rising."""
        return np.flatnonzero(self._always)

    @property
    def _always(self) -> np.ndarray:
        """(q,) bool: are they scored for every post?"""
        corrected = [] if self.feedback is None else [self.place.get(name, -1) for name in self.feedback.corrections]
        some: np.ndarray = ~self._screened
        some[[i for i in corrected if i >= 0]] = True
        return some

    @property
    def screens(self) -> bool:
        """Are there others?"""
        return bool(self._screened.any())

    def added_by_kind(self, kind: Kind, most: np.ndarray) -> np.ndarray:
        """(n,): what posts add to the directions of the screened queries of a kind, at most; −∞ where none can be
        reached. most: (n,), the highest score a post can have.

        most · logistic(x) ≥ lowest needs x ≥ logit(lowest / most), which is no less than logit(lowest) − log(most).
        """
        assert self.head
        with np.errstate(divide="ignore"):
            adds: np.ndarray = np.log(most) / (self.head.weights_unknown(kind).query or 1.0)
        return np.where(most >= self._least.get(kind, np.inf), adds, -np.inf)

    @cached_property
    def _least(self) -> dict[Kind, float]:
        """The lowest level of the screened queries of each kind."""
        found: dict[Kind, float] = {}
        for i in np.flatnonzero(self._screened):
            kind = self.queries[i].kind
            found[kind] = min(found.get(kind, np.inf), float(self.levels.lowest[i]))
        return found

    def screened(
        self, vectors: np.ndarray, adds: Mapping[Kind, np.ndarray], posts: Sequence[Post] | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(rows, queries) that may reach the lowest level, of the others (`Screen.reached`)."""
        rows, which = self._screen.reached(vectors, adds, self._owners, posts)
        mine = ~self._always[which]  # what people corrected is scored for every post
        return rows[mine], which[mine]

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
        every = np.arange(len(self.queries))
        (scores, _), added = self.shipped(vector[None], every, [post.lang]), self.added(vector[None], [post], every)
        scores = (scores if added is None else self.levels.moved(scores, added, every))[0]
        return scores if self.head else self.levels.likely(scores, every)

    def standing(self, match: Match) -> float:
        """The same of one match."""
        return match.score if self.head else match.probability or 0.0

    def standing_at(self, index: int, score: float) -> float:
        """The same of one query at a score."""
        return score if self.head else float(self.levels.likely(np.array([score], np.float32), np.array([index]))[0])

    def own_bar(self, index: int) -> float:
        """The standing from which one query alerts, where nothing moves its bar (models/bars.py)."""
        return self.standing_at(index, self.thresholds[index].alert)

    def score_at(self, index: int, probability: float) -> float:
        """The score at which a query stands at this probability: the inverse of `standing_at`."""
        return self.levels.score_at(index, probability)

    def check_shape(self, vectors: np.ndarray) -> None:
        """Raises VersionMismatch unless these are vectors as the queries' encoder makes them, (n, d)."""
        if vectors.ndim != 2 or vectors.shape[1] != self.dim:
            raise VersionMismatch(
                f"vectors of shape {vectors.shape} against queries of dim {self.dim} ({self.encoder_version})"
            )

    def scores(self, vectors: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
        """Scores in [-1, 1], higher is closer: (n, d) float32 → (n, q) float32. With a learnt head: how likely a
        responder could act on the post, as far as it is this one.

        which: only the queries with these indices. With a head they must hold all it was taught, for it shares out what
        it reads. Raises VersionMismatch if the vectors have another dimension than the encoder these queries were
        embedded with.
        """
        self.check_shape(vectors)
        return self.shipped(vectors, which)[0]

    def shipped(
        self, vectors: np.ndarray, which: np.ndarray | None = None, langs: Sequence[str] | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """(n, q) scores and, with a head, the probabilities of the same readings, before what people taught: every
        reader of posts begins here. langs: of the posts, (n,); a head's readings move by them where they are given.
        """
        likely = self.probabilities(vectors, which)
        if likely is None or self.head is None:
            return self.directed(vectors, which), None
        scores = self.shared(vectors, likely, which)
        if langs is not None and self.head.languages:
            aid = self.taught_aid if which is None else self.taught_aid[which]
            likely = moved(likely, self.head.spoken(langs)[:, None] * aid)
            scores = np.maximum(scores, likely * aid)
        return scores, likely

    def probabilities(self, vectors: np.ndarray, which: np.ndarray | None = None) -> np.ndarray | None:
        """(n, d) → (n, q) float32: how likely each query is a right reading. None without a learnt head."""
        if not self.head or not self.queries:
            return None
        among = self.among if which is None else self.among[which]
        likely = self.head.probabilities(self._chosen(which), vectors, self.directed(vectors, which), among)
        every = range(len(self.queries)) if which is None else which.tolist()
        return self.own_sentences.raised(self.head, vectors, likely, every)

    def shared(self, vectors: np.ndarray, likely: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
        """(n, q) scores from what `probabilities` gave for the same queries; with a head."""
        assert self.head
        return self.head.shared(self._chosen(which), vectors, likely)

    def _chosen(self, which: np.ndarray | None) -> Sequence[Query]:
        return self.queries if which is None else [self.queries[i] for i in which]

    @property
    def space(self) -> Space:
        """Where the vectors of this encoder lie, as corrections see them."""
        return Space.of(self.background)

    def corrected_by(self, feedback: Feedback | None) -> Self:
        """The same queries, moved by what people taught; None: as shipped."""
        made = copy.copy(self)
        made.feedback = feedback
        return made

    def odds(
        self, vectors: np.ndarray, which: np.ndarray | None = None, langs: Sequence[str] | None = None
    ) -> np.ndarray:
        """(n, q) float32: log-odds of an alert as shipped, before feedback: 0 at one half. which, langs: as of
        `shipped`."""
        self.check_shape(vectors)
        which = np.arange(len(self.queries)) if which is None else which
        return self.levels.odds(self.shipped(vectors, which, langs)[0], which)

    def directed(self, vectors: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
        """(n, q) float32: scores by the queries' directions, clipped to [-1, 1]."""
        return self.directions.scores(vectors, which)

    def added(self, vectors: np.ndarray, posts: Sequence[Post], which: np.ndarray) -> np.ndarray | None:
        """(n, q) log-odds that what people taught adds to these queries; None where nobody taught anything."""
        if not self.feedback or not posts:
            return None
        ids = [self.queries[i].id for i in which]
        return self.feedback.added(ids, vectors, [p.lang for p in posts])

    def refusal(self, index: int, post: Post) -> str:
        """Why a query does not read a post, as the end of a sentence; empty if it does."""
        query = self.queries[index]
        if post.seen_at >= query.expires_at:
            return f"the query ended at {query.expires}"
        return query.where.refusal(post) if query.where else ""
