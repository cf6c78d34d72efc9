"""Fit what a post asks for beside its first reading (models/several.py), from needs and offers with all they ask for.

One of `training.head`'s parts. Each query's line is a logistic regression on the posts of its kind whose labels tell of
the query: disaster messages know of six categories, written and read posts of all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.several import Several
from training.class_material import Asked

__all__ = ["fit_several"]


def fit_several(
    vectors: np.ndarray, asked: Asked, query_ids: Sequence[str], strength: float, iterations: int
) -> Several:
    """vectors: (n, d), of the posts that ask. A query that all or none of its posts ask for gets no line.

    strength: inverse of the l2 penalty; iterations: of each fit at most.
    """
    from sklearn.linear_model import LogisticRegression

    weights = np.array(asked.weights)
    lines: dict[str, list[float]] = {}
    for query in query_ids:
        kind = f"{query.partition('.')[0]}."
        tell = np.array(
            [
                any(name.startswith(kind) for name in said) and (known is None or query in known)
                for said, known in zip(asked.queries, asked.known, strict=True)
            ]
        )
        wanted = np.array([query in said for said in asked.queries])[tell]
        if wanted.any() and not wanted.all():
            model = LogisticRegression(C=strength, max_iter=iterations)
            model.fit(vectors[tell], wanted, sample_weight=weights[tell])
            lines[query] = [round(float(x), 4) for x in (*model.coef_[0], model.intercept_[0])]
    return Several(list(lines), [line[:-1] for line in lines.values()], [line[-1] for line in lines.values()])
