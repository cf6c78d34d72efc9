"""How much likelier readings are right in a language than the one line for all says.

One of `training.head`'s parts, on posts that fit nothing else. Judged on events left out, log loss falls by it
(`training/results/scales.json`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.reading import logistic

__all__ = ["fit_languages", "shift", "trust"]

TRUST = 20.0  # posts at which a language's, or a query's, own scale counts as much as everybody's


def fit_languages(odds: np.ndarray, right: np.ndarray, weights: np.ndarray, langs: Sequence[str]) -> dict[str, float]:
    """By language what is added to the log-odds of a reading, trusted by n / (n + 20) of its n posts. All (n,).

    A language in which every reading was right, or none, is left as it is.
    """
    spoken, found = np.array(langs), {}
    for lang in sorted(set(langs)):
        own = spoken == lang
        if right[own].any() and not right[own].all():
            found[lang] = round(trust(int(own.sum())) * shift(odds[own], right[own], weights[own]), 4)
    return found


def shift(odds: np.ndarray, right: np.ndarray, weights: np.ndarray) -> float:
    """What is added to log-odds, (n,), so that their mean probability is the share that is right (by bisection)."""
    low, high, share = -20.0, 20.0, np.average(right, weights=weights)
    for _ in range(50):
        middle = (low + high) / 2
        more = np.average(logistic(odds + middle), weights=weights) < share
        low, high = (middle, high) if more else (low, middle)
    return (low + high) / 2


def trust(n: int) -> float:
    return n / (n + TRUST)
