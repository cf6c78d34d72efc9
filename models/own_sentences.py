"""Sentences that people added to a query which the head was taught: looked for beside its class.

A head (models/reading.py) learnt its queries from posts, not from their sentences, so a sentence that is added later
changes nothing of the class. It gets a direction of its own, as a query nobody taught has, and the reading is as likely
as the likelier of the two. What the class knows is kept, whatever is taken out of the query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec
import numpy as np

from models.directions import Directions, Look
from models.encoders.protocol import Encoder
from models.queries import Query, load_queries
from models.reading import Head
from models.records import is_notice

__all__ = ["OwnSentences"]


class OwnSentences:
    """Of all queries those that the head was taught and that hold sentences they were not shipped with."""

    def __init__(
        self,
        queries: Sequence[Query],
        head: Head | None,
        shipped: Sequence[Query],
        encoder: Encoder,
        directions: Directions,
        before: OwnSentences | None = None,
    ) -> None:
        """queries: all that are active. shipped: what the needs and offers looked like when the head was taught.
        before: of the same encoder and head, for what has not changed."""
        known = {**_notices(), **{query.id: query for query in shipped}}
        made = {
            i: _added(query, known.get(query.id)) for i, query in enumerate(queries) if head and query.id in head.place
        }
        found = {i: query for i, query in made.items() if query is not None}
        self._place: dict[int, int] = {i: at for at, i in enumerate(found)}
        self._queries = list(found.values())
        looks: list[Look | None] = [before.look_of(query) if before else None for query in self._queries]
        self._directions: Directions | None = (
            Directions(self._queries, encoder, [], [], 0.0, None, directions, looks) if found else None
        )

    def look_of(self, query: Query) -> Look | None:
        """What this very query looked for, if it was here."""
        if self._directions is None or query not in self._queries:
            return None
        return self._directions.looks[self._queries.index(query)]

    def raised(self, head: Head, vectors: np.ndarray, likely: np.ndarray, which: Sequence[int]) -> np.ndarray:
        """(n, m) probabilities of the queries with these indices (m,), where their own sentences say more, raised."""
        if not self._place:
            return likely
        found, out = head.log_probabilities(vectors), likely.copy()
        for column, i in enumerate(which):
            if i in self._place:
                out[:, column] = np.maximum(likely[:, column], self._likely(head, vectors, found, i))
        return out

    def terms(
        self, head: Head, index: int, vectors: np.ndarray, found: np.ndarray, told: Mapping[str, np.ndarray]
    ) -> Mapping[str, np.ndarray]:
        """What adds up to the log-odds of a query's reading (models/explanation.py): `told`, of its class, or where its
        own sentences say more, what they say."""
        if index not in self._place:
            return told
        scores, among = self._looked(vectors, index)
        own = head.terms_unknown(self._queries[self._place[index]].kind, found, scores, among)
        more, nothing = np.greater(sum(own.values()), sum(told.values())), np.zeros(len(found))
        names = dict.fromkeys((*told, *own))
        return {name: np.where(more, own.get(name, nothing), told.get(name, nothing)) for name in names}

    def _looked(self, vectors: np.ndarray, index: int) -> tuple[np.ndarray, np.ndarray]:
        """(n,) scores by the direction of a query's own sentences, and its (2,) mean and spread."""
        assert self._directions
        at = self._place[index]
        return self._directions.scores(vectors, np.array([at]))[:, 0], self._directions.among[at]

    def _likely(self, head: Head, vectors: np.ndarray, found: np.ndarray, index: int) -> np.ndarray:
        kind, (scores, among) = self._queries[self._place[index]].kind, self._looked(vectors, index)
        found_likely: np.ndarray = head.may_be(found, kind) * head.looks(kind, scores, among)
        return found_likely


@lru_cache(maxsize=1)
def _notices() -> dict[str, Query]:
    return {query.id: query for query in load_queries() if is_notice(query.id)}


def _added(query: Query, shipped: Query | None) -> Query | None:
    """The query with the sentences alone that it was not shipped with; None where there are none."""
    if shipped is None or query.version == shipped.version:
        return None
    known = set(shipped.texts())
    added: dict[str, list[str]] = {}
    for lang, text in query.texts():
        if (lang, text) not in known:
            added.setdefault(lang, []).append(text)
    return msgspec.structs.replace(query, sentences=added) if added else None
