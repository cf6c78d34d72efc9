"""How often alerts were right, by people's own word."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from models.feedback.records import Label

__all__ = ["Precision", "precision"]

Z = 1.959963984540054  # of the normal distribution, two-sided 95 %


class Precision(Struct, frozen=True):
    """Of the alerts of one query that were judged: how many, how many right, and what that says of all (95 %)."""

    query_id: str
    right: int
    judged: int
    low: float
    high: float


def wilson(right: int, judged: int) -> tuple[float, float]:
    """(low, high) of a share, 95 %. Source: Wilson 1927, J. Am. Stat. Assoc. 22. (0, 1) where nothing was judged.

    A closed form here: scipy.stats has it, and takes a second to import, which the page would wait for.
    """
    if not judged:
        return 0.0, 1.0
    share, n, z2 = right / judged, judged, Z * Z
    middle, reach = share + z2 / (2 * n), Z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, (middle - reach) / (1 + z2 / n)), min(1.0, (middle + reach) / (1 + z2 / n))


def precision(labels: Iterable[Label], since: float = 0.0) -> list[Precision]:
    """By query, the most judged first: of alerts labelled at or after `since` (epoch seconds). A suggestion that is
    wrong is no wrong alert, so verdicts on suggestions do not count."""
    judged: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for label in labels:
        if label.level == "alert" and label.at >= since:
            judged[label.query_id] += 1
            right[label.query_id] += label.confirms
    order = sorted(judged, key=lambda query_id: (-judged[query_id], query_id))
    return [
        Precision(query_id, right[query_id], judged[query_id], *wilson(right[query_id], judged[query_id]))
        for query_id in order
    ]
