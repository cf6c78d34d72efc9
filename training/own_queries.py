"""Bundled queries as people would add them: a few sentences in one language, under a name no head was taught.

What makes the direction of a query that was never taught a probability is fitted on them (`training.head`), and how
such queries alert is measured with others of them (`training.evaluate alerts`, the set `own`). Each looks for what the
bundled query it was drawn from looks for, so the labels of posts tell whether it was right. A person's query is often
narrower: then it is right less often than that, and its category's posts that it leaves out were not to be found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from models.encoders.protocol import Encoder
from models.encoders.ready import Loaded, ready
from models.encoders.registry import OWN
from models.queries import Query

__all__ = ["OwnQuery", "as_people_add_them", "directions_of"]

SENTENCES = (("en", 1), ("en", 1), ("en", 3), ("", 2))  # language ("": one of the others) and how many of each query


class OwnQuery(NamedTuple):
    """A query as a person might add it."""

    bundled: str  # id of the one it was drawn from
    query: Query


def as_people_add_them(queries: Sequence[Query], seed: int) -> list[OwnQuery]:
    """Four for each bundled query, in the order of their ids."""
    drawn, made = np.random.default_rng(seed), []
    for query in queries:
        others = sorted(query.sentences.keys() - {"en"})
        for number, (lang, count) in enumerate(SENTENCES):
            lang = lang or str(drawn.choice(others))
            texts = query.sentences[lang]
            some = drawn.choice(len(texts), min(count, len(texts)), replace=False)
            name = f"own_{query.category}_{number}"
            own = Query(f"{query.kind}.{name}", query.kind, name, query.label, {lang: [texts[i] for i in sorted(some)]})
            made.append(OwnQuery(query.id, own))
    return sorted(made, key=lambda one: one.query.id)


def directions_of(own: Sequence[OwnQuery], encoder: Encoder, vectors: np.ndarray) -> np.ndarray:
    """(n, q) float32: how far each query's score lies over what it is on sentences of its kind, in standard deviations.
    vectors: (n, d)."""
    matcher = ready(Loaded(OWN, encoder), [one.query for one in own]).matcher
    standard: np.ndarray = (matcher.directed(vectors) - matcher.among[:, 0]) / matcher.among[:, 1]
    return standard
