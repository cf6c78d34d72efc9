"""What a post is: a linear head over its vector names the query it answers, or what else it is.

    log p(class | post) = log softmax(W v + b)          classes: the bundled queries, then kinds of post such as "news"

The head is learnt by `training.head` from written and read posts and lives in its encoder's calibration. A query it
was taught has a class of its own; a query it never saw, such as one a user just added, is told by its direction
(models/matching.py), as far as the post is of its kind at all:

    taught:  logistic(head · h + query · s + bias)      h: log-odds of the query's class, s: its score
    unknown: p(kind) · logistic(query · z + bias)       z: s in standard deviations over its mean on the bundled
                                                        sentences of the kind; of a notice, on background texts

The kind is a veto: added to the log-odds instead, "we need a boat" read as the offer of a boat. And z is taken among
what is of the kind, for any need lies nearer to a need than background does. Of queries of one to three sentences (each
bundled one as a user might write it, under another name; `training.evaluate alerts`, the set `own`), on written posts
that judge, before and since: alerts right .60, .70; of the right kind .86, .97; found .38, .45.

Both are probabilities that held on posts nothing was fitted on (`training.head`). Whether anybody is called does not
hang on one category: a post that is surely a need, of water or of food, must not be missed because neither is likelier
than not. So the score of a taught query is the probability that a responder could act on the post, shared out:

    score = p(need or offer) · min(1, s / c) · p(query) / max p(queries of the kind)     p from gate · g + bias

and never less than p(query), moved as the post's language moves it. s is the share of the query's kind in p(need or
offer): where it is in doubt whether something is needed or offered, the score is lower. c, .85 for needs and 1.1 for
offers, leaves an offer in doubt for longer: who reads that something is offered where it is needed calls nobody.
Measured on 800 written posts in 20 languages set aside (training/posts), right query and near misses that alert:
p(query) ≥ .5 .50, 4.4 %; this score ≥ .5 .61, 5.6 %.

What a post asks for beside that has lines of its own (models/several.py), q(query) of a post of the kind: the score of
such a reading is at least p(need or offer) · min(1, s / c) · q(query), its probability p(need or offer) · s · q(query),
and always less than the likeliest's.

The score of a query that was never taught is p(need or offer) · min(1, s / c) · logistic(query · z + bias), and never
less than its probability: it takes nothing from the others.

A notice (a warning, an order to leave, a report of damage) takes no part in that: its score is p(query), by terms of
its own, since notices are rarer and told apart more easily. The kind of a notice that was never taught is a notice of
any kind: each has too few classes of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from models.queries import Query
from models.records import AID, KINDS, NOTICES, Kind, is_notice
from models.several import Several

__all__ = ["CLEAR", "CLEAR_OFFER", "LEAST_APART", "LEAST_SPREAD", "Head", "Terms", "logistic", "logit", "moved"]

CLEAR = 0.85  # share of a kind from which it is not in doubt whether something is needed or offered
# Over 1: an offer is never quite beyond doubt. With .85 for both 3 to 5 of 100 OFFER alerts were needs, with this 2 to
# 3, for 1 to 3 needs and offers of 100 that no longer alert under their query (written posts that judge).
CLEAR_OFFER = 1.1
LEAST_APART = 0.01  # log-odds by which a further reading is less likely than the first, at least
LEAST_SPREAD = 1e-3  # a query that scores all background alike says nothing


class Terms(Struct, frozen=True, omit_defaults=True):
    """Weights of what adds up to a reading's log-odds."""

    query: float  # of the query's own score
    head: float = 0.0  # of the log-odds of its class
    gate: float = 0.0  # of the log-odds that the post is a need or an offer at all
    bias: float = 0.0


class Head(Struct, frozen=True, dict=True):
    """The learnt head. `classes`: query ids, then kinds of post that are none. weight: (classes, d) as rows."""

    classes: list[str]
    weight: list[list[float]]
    bias: list[float]
    taught: Terms
    unknown: Terms
    actionable: Terms | None = None  # of the log-odds that the post is a need or an offer at all
    urgency: list[float] = []  # (d + 1,): log-odds that lives hang on the next hours, the constant last
    taught_notice: Terms | None = None  # of notices; None: as of needs and offers
    unknown_notice: Terms | None = None
    clear: float = CLEAR
    clear_offer: float | None = None  # of offers; None: as of needs
    priority: list[float] = []  # (d + 2,): a line, then its constants for "urgent" and for "soon or urgent"
    several: Several | None = None  # what a post asks for beside its first reading
    languages: dict[str, float] = {}  # log-odds by which readings of a language are likelier, or less, than all

    @cached_property
    def place(self) -> dict[str, int]:
        """The row of each class."""
        return {name: i for i, name in enumerate(self.classes)}

    @cached_property
    def _rows(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.weight, np.float32), np.array(self.bias, np.float32)

    def log_probabilities(self, vectors: np.ndarray) -> np.ndarray:
        """(n, d) → (n, classes): log p of each class, float32."""
        weight, bias = self._rows
        logits: np.ndarray = vectors @ weight.T + bias
        found: np.ndarray = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        return found

    def kinds(self, vectors: np.ndarray) -> list[str]:
        """What each post reads as: a query id, or "news", "met", "warning" …"""
        return [self.classes[i] for i in self.log_probabilities(vectors).argmax(axis=1)]

    def spoken(self, langs: Sequence[str]) -> np.ndarray:
        """(n,) float32: log-odds that a post's language adds to what readings of taught needs and offers are likely."""
        return np.array([self.languages.get(lang, 0.0) for lang in langs], np.float32)

    def urgent(self, vectors: np.ndarray) -> np.ndarray:
        """(n,) float32: probability that lives hang on the next hours."""
        if not self.urgency:
            return np.zeros(len(vectors), np.float32)
        line = np.array(self.urgency, np.float32)
        return logistic(vectors @ line[:-1] + line[-1])

    def worth(self, vectors: np.ndarray) -> np.ndarray:
        """(n,) float32: how likely each post is a need, an offer or a notice, by the classes alone."""
        return logistic(self.gate(self.log_probabilities(vectors), *KINDS))

    def priorities(self, vectors: np.ndarray) -> np.ndarray:
        """(n, 3) float32: how likely each of PRIORITIES is, of a post worth an alert. Empty rows where none was learnt.

        Cumulative logits with one line, so that "soon or urgent" is never less likely than "urgent" (McCullagh 1980,
        Regression models for ordinal data, doi:10.1111/j.2517-6161.1980.tb01109.x).
        """
        if not self.priority:
            return np.zeros((len(vectors), 0), np.float32)
        line = np.array(self.priority, np.float32)
        along = vectors @ line[:-2]
        urgent, soon = logistic(along + line[-2]), logistic(along + line[-1])
        return np.stack([urgent, soon - urgent, 1 - soon], axis=1)

    def probabilities(
        self, queries: Sequence[Query], vectors: np.ndarray, scores: np.ndarray, among: np.ndarray
    ) -> np.ndarray:
        """(n, q) float32: how likely each query is a right reading of each post.

        scores: (n, q), of the queries' directions. among: (q, 2), mean and spread of each query's scores on
        sentences of its kind.
        """
        found = self.log_probabilities(vectors)
        out = np.empty(scores.shape, np.float32)
        taught = [i for i, query in enumerate(queries) if query.id in self.place]
        told = self.terms([queries[i] for i in taught], vectors, found, scores[:, taught], among[taught])
        for i, terms in zip(taught, told, strict=True):
            out[:, i] = sum(terms.values())
        for kind in {query.kind for query in queries}:
            some = np.array([i for i, q in enumerate(queries) if q.kind == kind and q.id not in self.place], np.int64)
            out[:, some] = logit(self.may_be(found, kind)[:, None] * self.looks(kind, scores[:, some], among[some]))
        return logistic(out)

    def weights_unknown(self, kind: Kind) -> Terms:
        """What adds up for a query the head never saw."""
        return (self.unknown_notice or self.unknown) if is_notice(f"{kind}.") else self.unknown

    def looks(self, kind: Kind, scores: np.ndarray, among: np.ndarray) -> np.ndarray:
        """How likely posts of this kind are what queries the head never saw look for, by their directions' scores.

        among: mean and spread of those on sentences of the kind, in the last axis; the rest as scores.
        """
        return logistic(self._looked(kind, scores, among) + self.weights_unknown(kind).bias)

    def _looked(self, kind: Kind, scores: np.ndarray, among: np.ndarray) -> np.ndarray:
        standard: np.ndarray = (scores - among[..., 0]) / np.maximum(among[..., 1], LEAST_SPREAD)
        looked: np.ndarray = self.weights_unknown(kind).query * standard
        return looked

    def may_be(self, found: np.ndarray, kind: Kind) -> np.ndarray:
        """(n,): how likely each post is of this kind at all; of a notice, of any notice. found: `log_probabilities`."""
        likely: np.ndarray
        if kind in AID:
            likely = self._whole(found) * self._share(found, kind)
        else:
            rows = [i for one in NOTICES for i in self._rows_of(one)]
            likely = np.minimum(np.exp(found[:, rows]).sum(axis=1), np.float32(1 - 1e-6))
        return likely

    def cleared(self, found: np.ndarray, kind: Kind) -> np.ndarray:
        """(n,): how many times its probability the score is of a query that the head never saw, at least 1."""
        if kind not in AID or self.actionable is None:
            return np.ones(len(found), np.float32)
        share = self._share(found, kind)
        times: np.ndarray = np.maximum(1, self._clear(share, kind) / share).astype(np.float32)
        return times

    def terms(
        self, queries: Sequence[Query], vectors: np.ndarray, found: np.ndarray, scores: np.ndarray, among: np.ndarray
    ) -> Iterator[dict[str, np.ndarray]]:
        """For each query what adds up to its log-odds, by name: each (n,). found: what `log_probabilities` gave."""
        asked = {query.kind for query in queries if query.id in self.place and query.kind in AID}
        further = {kind: self._further(vectors, found, queries, kind) for kind in asked} if self.several else {}
        for i, query in enumerate(queries):
            if query.id not in self.place:
                yield self.terms_unknown(query.kind, found, scores[:, i], among[i])
                continue
            weights = (self.taught_notice or self.taught) if is_notice(query.id) else self.taught
            bias = np.full(len(found), weights.bias, np.float32)
            told: dict[str, np.ndarray] = {"bias": bias, "query": weights.query * scores[:, i]}
            told["head"] = weights.head * self.log_odds(found, query.id)
            if query.kind in further:
                told["several"] = np.maximum(further[query.kind][:, i] - sum(told.values()), 0)
            yield told

    def terms_unknown(
        self, kind: Kind, found: np.ndarray, scores: np.ndarray, among: np.ndarray
    ) -> dict[str, np.ndarray]:
        """What adds up to the log-odds of a query the head never saw: each (n,). `gate`: what its kind takes away."""
        query, bias = (
            self._looked(kind, scores, among),
            np.full(len(found), self.weights_unknown(kind).bias, np.float32),
        )
        looks = query.astype(np.float64) + bias
        log_p = np.log(np.maximum(self.may_be(found, kind), 1e-9)) - np.logaddexp(0, -looks)
        return {"bias": bias, "query": query, "gate": log_p - np.log1p(-np.exp(log_p)) - looks}

    def _further(self, vectors: np.ndarray, found: np.ndarray, queries: Sequence[Query], kind: str) -> np.ndarray:
        """(n, q): log-odds that a post says this beside its likeliest reading of the kind, less than that one's; −∞
        for the likeliest itself and for queries of another kind."""
        assert self.several
        own = [query.id if query.kind == kind else "" for query in queries]
        rows = self._rows_of(kind)
        likeliest = np.array(rows)[found[:, rows].argmax(axis=1)]
        with np.errstate(divide="ignore"):
            p = (self._whole(found) * self._share(found, kind))[:, None] * logistic(self.several.log_odds(vectors, own))
            odds = np.log(p) - np.log1p(-p)
        most = self.taught.head * _log_odds(found[:, rows].max(axis=1)) + self.taught.bias
        most -= abs(self.taught.query) + LEAST_APART  # whatever the likeliest's own score in [-1, 1] adds
        odds[likeliest[:, None] == np.array([self.place.get(name, -1) for name in own])] = -np.inf
        capped: np.ndarray = np.minimum(odds, most[:, None])
        return capped

    def shared(self, queries: Sequence[Query], vectors: np.ndarray, likely: np.ndarray) -> np.ndarray:
        """(n, q) float32: scores from the readings' probabilities, also (n, q)."""
        out = likely.copy()
        if self.actionable is None:
            return out
        found = self.log_probabilities(vectors)
        whole = self._whole(found)
        for kind in AID:
            rows = [i for i, query in enumerate(queries) if query.kind == kind and query.id in self.place]
            others = [i for i, query in enumerate(queries) if query.kind == kind and query.id not in self.place]
            out[:, others] *= self.cleared(found, kind)[:, None]
            if rows:
                clear = self._clear(self._share(found, kind), kind)
                most = np.maximum(self._most(found, kind, {queries[i].id for i in rows}), likely[:, rows].max(axis=1))
                out[:, rows] *= (whole * clear / most)[:, None]
                if self.several:
                    said = logistic(self.several.log_odds(vectors, [queries[i].id for i in rows]))
                    out[:, rows] = np.maximum(out[:, rows], (whole * clear)[:, None] * said)
        best: np.ndarray = np.maximum(out, likely)
        return best

    def _clear(self, share: np.ndarray, kind: str) -> np.ndarray:
        """(n,): how far it is beyond doubt that something is needed, or offered, where the kind has this share."""
        doubt = self.clear if kind == "need" or self.clear_offer is None else self.clear_offer
        clear: np.ndarray = np.minimum(1, share / doubt)
        return clear

    def _whole(self, found: np.ndarray) -> np.ndarray:
        """(n,): how likely a responder could act on the post at all; 1 where that was not learnt."""
        if self.actionable is None:
            return np.ones(len(found), np.float32)
        return logistic(self.actionable.gate * self.gate(found, *AID) + self.actionable.bias)

    def _most(self, found: np.ndarray, kind: str, active: set[str]) -> np.ndarray:
        """(n,): of the kind's classes that are no active query, the likeliest one's probability.

        A post about water is not about food because nobody asks for water. Scores of queries that are not there are not
        known, and weigh little.
        """
        out = np.full(len(found), 1e-9, np.float32)
        for row in self._rows_of(kind):
            if self.classes[row] not in active:
                odds = self.taught.head * self.log_odds(found, self.classes[row]) + self.taught.bias
                out = np.maximum(out, logistic(odds))
        return out

    def _share(self, found: np.ndarray, kind: str) -> np.ndarray:
        """(n,): of need and offer together, how much is of this kind."""
        need, offer = (np.exp(found[:, self._rows_of(one)]).sum(axis=1) + 1e-12 for one in AID)
        share: np.ndarray = (need if kind == "need" else offer) / (need + offer)
        return share

    def log_odds(self, found: np.ndarray, query_id: str) -> np.ndarray:
        """(n,): of the query's class. found: what `log_probabilities` gave."""
        return _log_odds(found[:, self.place[query_id]])

    def gate(self, found: np.ndarray, *kinds: str) -> np.ndarray:
        """(n,): log-odds that the post is of one of these kinds, of any category."""
        rows = [i for kind in kinds for i in self._rows_of(kind)]
        return _log_odds(np.logaddexp.reduce(found[:, rows], axis=1))

    def _rows_of(self, kind: str) -> list[int]:
        return self._rows_by_kind.get(kind, [])

    @cached_property
    def _rows_by_kind(self) -> dict[str, list[int]]:
        """Asked for with every reading that is told: going through all names each time took a sixth of a frame."""
        found: dict[str, list[int]] = {}
        for i, name in enumerate(self.classes):
            kind, dot, _ = name.partition(".")
            if dot:
                found.setdefault(kind, []).append(i)
        return found


def _log_odds(log_probability: np.ndarray) -> np.ndarray:
    """log p − log(1 − p), finite: a class is never held impossible or certain beyond 1 in a million."""
    p: np.ndarray = np.clip(log_probability, np.log(1e-6), np.log1p(-1e-6))
    odds: np.ndarray = p - np.log(-np.expm1(p))
    return odds


def logit(p: np.ndarray) -> np.ndarray:
    """log p − log(1 − p), float32, finite: as of 1 in 10 million at most."""
    p = np.clip(p.astype(np.float64), 1e-7, 1 - 1e-7)
    found: np.ndarray = (np.log(p) - np.log1p(-p)).astype(np.float32)
    return found


def moved(p: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Probabilities moved by log-odds; where 0 is added they stay as they are to the bit."""
    return np.where(by == 0, p, logistic(logit(p) + by)).astype(np.float32)


def logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + e^-x), float32, without overflow."""
    return (0.5 * (1 + np.tanh(0.5 * x))).astype(np.float32)
