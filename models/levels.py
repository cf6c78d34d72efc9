"""What a score means: where each query alerts and suggests, and how likely a reading is at a score.

With a learnt head (models/reading.py) a score is a probability and the thresholds are stated ones. Without one, the
thresholds are calibrated; a probability is what labelled posts say, or a stated prior: one half at the alert
threshold, one fifth at the suggestion threshold, logistic between and beyond.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from models.calibration import Calibration, fallback_thresholds
from models.directions import by_value
from models.explanation import log_odds
from models.queries import Query
from models.reading import logistic, logit, moved
from models.records import is_notice

__all__ = ["Levels", "MatchConfig", "Thresholds"]

PRIOR_LOGIT = float(np.log(4))  # log-odds between one half and one fifth


@dataclass(frozen=True)
class MatchConfig:
    """How matches are made."""

    alert_probability: float = 0.5  # that a post is a need or an offer: from here it alerts, with a learnt head
    suggestion_probability: float = 0.2  # and from here it is a suggestion
    notice_probability: float = 0.5  # that it is a warning, an order or a report: from here it alerts
    notice_suggestion: float = 0.3  # and from here it is a suggestion; more would fill the page with news of damage
    target_precision: float | None = None  # instead of alert_probability: this share of the alerts is to be right
    contrast: float = 0.75  # share of the everyday texts in what a query is told apart from; calibrations hold for one
    suggestions: bool = True  # also emit matches between the suggestion and the alert threshold
    reader_language: str = "en"  # of those who read the alerts: the nearest sentence is told in it too

    def __post_init__(self) -> None:
        if self.target_precision is not None and not 0 < self.target_precision < 1:
            raise ValueError(f"target_precision {self.target_precision} is not between 0 and 1")
        if not 0 <= self.contrast <= 1:
            raise ValueError(f"contrast {self.contrast} is not from 0 to 1")
        told = ("alert_probability", "suggestion_probability"), ("notice_probability", "notice_suggestion")
        for bar, below in told:
            alert, suggestion = getattr(self, bar), getattr(self, below)
            if not (0 < alert < 1 and 0 < suggestion < 1):  # 50 for 50 % would let next to nothing alert, silently
                raise ValueError(f"{bar} {alert} and {below} {suggestion}: probabilities, between 0 and 1")
            if self.suggestions and suggestion > alert and self.target_precision is None:
                raise ValueError(f"{below} {suggestion} is above {bar} {alert}: nothing would be a suggestion")


class Thresholds(Struct, frozen=True):
    """Of one query for one encoder version, in units of score."""

    alert: float
    suggestion: float


class Levels:
    """The thresholds of every query, and the way between scores and probabilities.

    queries: (q,), in the order of the scores. usual: (q, 2), mean and spread of their scores on texts that ask and
    offer nothing; None where there are none. before: levels of the same config and calibration, and for each query its
    place there, -1 for a new one: what has not changed is taken over.
    """

    def __init__(
        self,
        config: MatchConfig,
        queries: Sequence[Query],
        usual: np.ndarray | None,
        calibration: Calibration | None = None,
        before: tuple[Levels, np.ndarray] | None = None,
    ) -> None:
        self._config, self._queries, self._calibration = config, queries, calibration
        self._headed = bool(calibration and calibration.head)
        old, places = before if before else (None, np.full(len(queries), -1))
        kept = places.tolist()
        self._measured: list[Thresholds] = [
            self._measure(q, None if usual is None else (float(usual[i, 0]), float(usual[i, 1])))
            if old is None or at < 0
            else old._measured[at]
            for i, (q, at) in enumerate(zip(queries, kept, strict=True))
        ]
        self._half = np.array([t.alert for t in self._measured], np.float32)  # (q,): where a prior says one half
        self._suggested = np.array([t.suggestion for t in self._measured], np.float32)
        self._unit = np.maximum(self._half - self._suggested, 1e-3) / PRIOR_LOGIT  # score that one unit of log-odds is
        steep = PRIOR_LOGIT / np.maximum(self._half.astype(np.float64) - self._suggested, 1e-3)
        self._steep, self._bias = steep.astype(np.float32), (-steep * self._half).astype(np.float32)  # (q,): as told
        self._curved = np.array([bool(calibration and calibration.curve(q)) for q in queries], bool)
        self.thresholds: list[Thresholds] = [
            self._chosen(i, q) if old is None or at < 0 else old.thresholds[at]
            for i, (q, at) in enumerate(zip(queries, kept, strict=True))
        ]
        self.alert = np.array([t.alert for t in self.thresholds], np.float32)  # (q,)
        suggested = np.array([t.suggestion for t in self.thresholds], np.float32)
        moves = np.array([self._moves(query) for query in queries], bool)  # a live bar may lie anywhere above these
        self.lowest = np.where(config.suggestions | moves, suggested, self.alert)  # (q,): from where on it is a match

    def _measure(self, query: Query, usual: tuple[float, float] | None) -> Thresholds:
        if self._headed:
            alert, suggestion = self._config.alert_probability, self._config.suggestion_probability
            if is_notice(query.id):
                alert, suggestion = self._config.notice_probability, self._config.notice_suggestion
            suggestion = min(suggestion, alert)
        else:
            known = self._calibration.thresholds(query) if self._calibration else None
            alert, suggestion = known or fallback_thresholds(usual, self._calibration)
            if is_notice(query.id) and not known:  # without labels a suggested notice is noise beside calls for help
                suggestion = alert
        if query.threshold is not None:  # a person's choice wins; keep the calibrated distance between the levels
            alert, suggestion = query.threshold, query.threshold - max(alert - suggestion, 0.0)
        return Thresholds(alert=alert, suggestion=suggestion)

    def _chosen(self, index: int, query: Query) -> Thresholds:
        measured = self._measured[index]
        if query.probability is None:
            return measured
        alert = self.score_at(index, query.probability)
        return Thresholds(alert=alert, suggestion=min(measured.suggestion, alert))

    def _moves(self, query: Query) -> bool:
        """May its bar lie below its own (models/bars.py)?"""
        follows = self._config.target_precision is not None and query.follows_target
        return query.target_precision is not None or follows

    def score_at(self, index: int, probability: float) -> float:
        """The score at which a query stands at this probability."""
        if self._headed:
            return probability
        curve = self._calibration.curve(self._queries[index]) if self._calibration else []
        if curve:
            at, precision = zip(*curve, strict=True)
            reached = [score for score, likely in curve if likely >= probability]
            return float(np.interp(probability, precision, at)) if reached else 1.0
        alert = float(self._half[index])
        return alert + log_odds(probability) / PRIOR_LOGIT * max(alert - float(self._suggested[index]), 1e-3)

    def terms(self, scores: np.ndarray, which: np.ndarray) -> list[dict[str, float]]:
        """Without a head: the terms (models/explanation.py) of the log-odds at each score (m,) of the query beside it,
        an index (m,)."""
        summands = self._bias[which].tolist(), (self._steep[which] * scores).tolist()
        told = [{"bias": bias, "query": query} for bias, query in zip(*summands, strict=True)]
        at, odds = self._measured_odds(scores, which)
        for place, measured in zip(at.tolist(), odds.tolist(), strict=True):
            told[place] = {"measured": measured}
        return told

    def likely(self, scores: np.ndarray, which: np.ndarray) -> np.ndarray:
        """Without a head: the probability at each score (m,) of the query beside it, an index (m,)."""
        summed = np.asarray((scores - self._half[which]) / self._unit[which], np.float32)
        at, odds = self._measured_odds(scores, which)
        summed[at] = odds
        return logistic(summed)

    def _measured_odds(self, scores: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where a query with a curve stands, and the log-odds of what that says at the score."""
        curved = np.flatnonzero(self._curved[which])
        odds = np.zeros(len(curved), np.float32)
        for index, some in by_value(which[curved]):
            query, own = self._queries[index], scores[curved[some]]
            said = self._calibration.probabilities(query, own) if self._calibration else None
            odds[some] = [log_odds(p) for p in said or ()]
        return curved, odds

    def odds(self, scores: np.ndarray, which: np.ndarray) -> np.ndarray:
        """(n, m) scores of the queries with these indices (m,) → log-odds of an alert as shipped: 0 at one half."""
        if self._headed:
            return logit(scores)
        odds: np.ndarray = (scores - self._half[which]) / self._unit[which]
        return odds

    def moved(self, scores: np.ndarray, added: np.ndarray, which: np.ndarray) -> np.ndarray:
        """Scores (n, m) of the queries with these indices (m,), moved by log-odds (n, m); where 0 is added they stay as
        they are to the bit."""
        if self._headed:
            return moved(scores, added)
        apart = np.clip(scores + added * self._unit[which], -1.0, 1.0)
        return np.where(added == 0, scores, apart).astype(np.float32)
