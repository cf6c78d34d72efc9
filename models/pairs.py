"""Which posts reach which queries: of the queries that are scored for every post, and of those that are screened.

Both give what a comparison of every post with every query would give (models/matching.py says which is which).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from models.reading import LEAST_SPREAD, logistic
from models.records import KINDS, Kind, Post
from models.standing import StandingQueries

__all__ = ["READINGS", "Pairs", "readings", "reached_by_scored", "reached_by_screened"]

READINGS = 3  # of one post: what a responder acts on first, and at most two more it also says


class Pairs(NamedTuple):
    """Posts and queries that reach the query's lowest level: all (m,)."""

    rows: np.ndarray
    which: np.ndarray  # indices of the queries
    scores: np.ndarray
    likely: np.ndarray  # the probability that the reading is right
    shipped: np.ndarray  # the score before what people taught
    added: np.ndarray  # log-odds that they added

    def of(self, kept: np.ndarray) -> Pairs:
        """Those at these places, or where this is true."""
        return Pairs(*(column[kept] for column in self))


def reached_by_scored(matcher: StandingQueries, vectors: np.ndarray, posts: Sequence[Post] | None) -> Pairs:
    """What queries reach that are scored for every post. vectors: (n, d)."""
    which, levels = matcher.scored, matcher.levels
    likely = matcher.probabilities(vectors, which)
    shipped = matcher.directed(vectors, which) if likely is None else matcher.shared(vectors, likely, which)
    added = None if posts is None else matcher.added(vectors, posts, which)
    scores = shipped
    if added is not None:
        scores = levels.moved(shipped, added, which)
        likely = None if likely is None else levels.moved(likely, added, which)
    rows, at = np.nonzero(scores >= levels.lowest[which])
    sure = levels.likely(scores[rows, at], which[at]) if likely is None else likely[rows, at]
    by = np.zeros(len(rows), np.float32) if added is None else added[rows, at]
    return Pairs(rows, which[at], scores[rows, at], sure, shipped[rows, at], by)


def reached_by_screened(matcher: StandingQueries, vectors: np.ndarray, posts: Sequence[Post] | None) -> Pairs:
    """What all other queries reach. vectors: (n, d)."""
    head, levels, usual = matcher.head, matcher.levels, matcher.usual
    gates: dict[Kind, np.ndarray] = {}
    adds: dict[Kind, np.ndarray] = {kind: np.zeros(len(vectors), np.float32) for kind in KINDS}
    weights = {kind: head.weights_unknown(kind) for kind in KINDS} if head else {}
    if head and matcher.screens:
        found = head.log_probabilities(vectors)
        gates = {kind: head.gate_of(found, kind) for kind in KINDS}
        adds = {kind: weights[kind].gate * gates[kind] / (weights[kind].query or 1.0) for kind in KINDS}
    rows, which = matcher.screened(vectors, adds, posts)
    scores = matcher.directions.scores_of(vectors, rows, which)
    if head and len(rows):
        kinds = matcher.kinds[which]
        query, gate, bias = np.array([(w.query, w.gate, w.bias) for w in weights.values()], np.float32)[kinds].T
        looked = (scores - usual[which, 0]) / np.maximum(usual[which, 1], LEAST_SPREAD)
        scores = logistic(query * looked + (bias + gate * np.stack(list(gates.values()))[kinds, rows]))
    over = scores >= levels.lowest[which]
    rows, which, scores = rows[over], which[over], scores[over]
    likely = scores if head else levels.likely(scores, which)
    return Pairs(rows, which, scores, likely, scores, np.zeros(len(rows), np.float32))


def readings(matcher: StandingQueries, pairs: Pairs) -> np.ndarray:
    """The places of each post's readings among its pairs, post by post, the likeliest first: at most READINGS that can
    hold at once, so not the need and the offer of one category. What alerts comes before what does not, as queries have
    bars of their own, and needs and offers before notices: who asks for help in a post that also warns is helped first.

    pairs: by post, then by query.
    """
    likeliest = np.zeros(len(pairs.rows)) if matcher.head is None else -pairs.scores
    order = np.lexsort((-pairs.likely, likeliest, pairs.rows))
    category = pairs.rows[order] * len(matcher.queries) + matcher.categories[pairs.which[order]]
    kept = order[np.sort(np.unique(category, return_index=True)[1])]
    which = pairs.which[kept]
    below = pairs.scores[kept] < matcher.levels.alert[which]
    kept = kept[np.lexsort((matcher.notices[which], below, pairs.rows[kept]))]  # stable
    rows = pairs.rows[kept]
    found: np.ndarray = kept[np.arange(len(rows)) - np.searchsorted(rows, rows) < READINGS]
    return found
