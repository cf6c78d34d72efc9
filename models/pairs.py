"""Which posts reach which queries: of the queries that are scored for every post, and of those that are screened.

Both give what a comparison of every post with every query would give (models/matching.py says which is which).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

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
    shipped, likely = matcher.shipped(vectors, which, None if posts is None else [post.lang for post in posts])
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
    head, levels, among = matcher.head, matcher.levels, matcher.among
    likely_kind: dict[Kind, np.ndarray] = {}  # how likely each post is of the kind at all
    scored_kind: dict[Kind, np.ndarray] = {}  # the most that a score can be
    adds: dict[Kind, np.ndarray] = {kind: np.zeros(len(vectors), np.float32) for kind in KINDS}
    if head and matcher.screens:
        found = head.log_probabilities(vectors)
        likely_kind = {kind: head.may_be(found, kind) for kind in KINDS}
        scored_kind = {kind: likely_kind[kind] * head.cleared(found, kind) for kind in KINDS}
        adds = {kind: matcher.added_by_kind(kind, most) for kind, most in scored_kind.items()}
    rows, which = matcher.screened(vectors, adds, posts)
    scores = likely = matcher.directions.scores_of(vectors, rows, which)
    if head and len(rows):
        kinds, looks = matcher.kinds[which], np.empty(len(rows), np.float32)
        for at, kind in enumerate(KINDS):
            own = kinds == at
            looks[own] = head.looks(kind, scores[own], among[which[own]])
        scores = np.stack(list(scored_kind.values()))[kinds, rows] * looks
        likely = np.stack(list(likely_kind.values()))[kinds, rows] * looks
    over = scores >= levels.lowest[which]
    rows, which, scores, likely = rows[over], which[over], scores[over], likely[over]
    likely = likely if head else levels.likely(scores, which)
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
