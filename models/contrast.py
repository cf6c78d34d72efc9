"""The fixed material a query is told apart from: everyday and news texts, and bundled queries of other categories."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from models.queries import Query, aid_queries
from models.query_ridge import AGAINST, OPPOSITE, Moments, accents, inverse, moments, solve, solve_with, without
from models.records import AID

__all__ = ["Contrast", "bundled_queries"]


@lru_cache(maxsize=1)
def bundled_queries() -> tuple[Query, ...]:
    """The bundled needs and offers as they were shipped: what every query is told apart from, whichever are active."""
    return tuple(aid_queries())


class Contrast:
    """The fixed material every query is told apart from, as moments: built once for all queries."""

    def __init__(self, background: np.ndarray, others: Sequence[tuple[Query, np.ndarray]], share: float) -> None:
        """background: (b, d). others: each bundled query with the vectors of its sentences. share: of the
        background (`MatchConfig.contrast`).
        """
        self._share = share
        dim = background.shape[1]
        self._background = moments(background)
        self._every = moments(np.vstack([np.zeros((0, dim), np.float32), *(v for _, v in others)]))
        self._of: dict[tuple[str, str], Moments] = {(q.category, q.kind): moments(v) for q, v in others}
        self._none = moments(np.zeros((0, dim), np.float32))
        self._inverses: dict[tuple[str, bool], np.ndarray | None] = {}

    def groups(self, query: Query, sentences: np.ndarray) -> list[tuple[float, Moments]]:
        """What a query's direction is fitted on: its own sentences (n, d), and the rest by its weight."""
        return [(1.0, moments(sentences, 1.0)), *self._fixed(query)]

    def _fixed(self, query: Query) -> list[tuple[float, Moments]]:
        """The part that does not hang on the query's own sentences."""
        opposite = self._of.get((query.category, "offer" if query.kind == "need" else "need"), self._none)
        others = self._every
        for kind in AID:
            others = without(others, self._of.get((query.category, kind), self._none))
        return [
            (AGAINST * self._share, self._background),
            (AGAINST * (1 - self._share), others),
            (OPPOSITE, opposite),
        ]

    def directions(
        self, query: Query, sentences: np.ndarray, langs: Sequence[str], known: np.ndarray | None = None
    ) -> np.ndarray:
        """(languages, d + 1): the query's directions. known: (d + 1,), what calibration made of the common part."""
        fixed = self._inverse(query)
        if fixed is not None:
            return solve_with(fixed, sentences, langs, known)
        groups = self.groups(query, sentences)
        names = np.array(langs)
        means = np.stack([sentences[names == lang].mean(axis=0) for lang in dict.fromkeys(langs)])
        common: np.ndarray = solve(groups) if known is None else known
        directions: np.ndarray = common + accents(groups, means)  # (languages, d + 1)
        return directions

    def _inverse(self, query: Query) -> np.ndarray | None:
        """(d + 1, d + 1): the inverse of the fixed part, kept: queries of no bundled category share one."""
        known = any((query.category, kind) in self._of for kind in AID)
        key = (query.category, query.kind == "need") if known else ("", True)
        if key not in self._inverses:
            self._inverses[key] = inverse(self._fixed(query))
        return self._inverses[key]
