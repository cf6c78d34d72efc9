"""Why a reading is as likely as it is: its log-odds as numbers that add up, named as people can follow them.

    log p / (1 − p) = bias + query + head + gate + several + language + taught

| term | what it says |
|---|---|
| bias | how likely this reading is before anything is read |
| query | the query's own direction: how near the post is to its sentences, and how far from everything else |
| head | what the post reads as by the learnt head, for a query the head was taught |
| gate | whether it reads as a need, or an offer, at all, for a query the head never saw |
| several | how much likelier it is as one of several things that the post asks for or offers |
| language | how much oftener readings in the post's language were right than in all |
| taught | what people's labels moved it by |
| measured | all of it at once, where an encoder without a head has a measured curve and no sum |

Terms are rounded to thousandths, so their sum is the log-odds to within a thousandth a term.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

__all__ = ["in_words", "log_odds", "rounded"]

TERMS = ("bias", "query", "head", "gate", "several", "language", "taught", "measured")
SURE = 1e-3  # probabilities are told to three digits: none is held nearer to certain than this in log-odds


@lru_cache(maxsize=2048)  # those that are told have three digits
def log_odds(probability: float) -> float:
    """log p / (1 − p), finite."""
    p = min(max(probability, SURE), 1 - SURE)
    return float(np.log(p) - np.log1p(-p))


def rounded(terms: Mapping[str, float]) -> dict[str, float]:
    """The terms as they are told, in the order of TERMS; those that do not occur are left out."""
    return {name: round(float(terms[name]), 3) for name in TERMS if name in terms}


def in_words(terms: Mapping[str, float]) -> str:
    """ "+2.10 = bias −0.50 + query +0.41 + head +2.19"; empty without terms."""
    if not terms:
        return ""
    parts = " + ".join(f"{name} {_signed(value)}" for name, value in terms.items())
    return f"{_signed(sum(terms.values()))} = {parts}"


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")
