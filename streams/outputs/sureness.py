"""How sure an alert is, in words: what is held against its query's bar, and what says that the query is the right one.

With a learnt head (models/reading.py) these are probabilities of different things. `score` asks whether anybody could
act on the post, whatever it is about; `probability`, mostly lower, whether it is about this:

    a need or offer 87% ≥ 50%, under this category 62%

A notice, and a query that the head was never taught, alert by their category alone; where it is in doubt whether that
is needed or offered, the probability says how likely it is as this: "under this category 62% ≥ 50%, as a need 54%".
Without a head `score` is no probability but how close the post is to the query. The page says the same
(dashboard/static/words.js).
"""

from __future__ import annotations

from collections.abc import Callable

from models.records import AID, Alert

__all__ = ["how_sure"]

AS = {"need": "a need", "offer": "an offer"}


def how_sure(alert: Alert) -> str:
    """One clause or two, each number with its name and the first with the bar it is held against."""
    terms = alert.evidence.terms
    likely = "" if alert.probability is None else f"{alert.probability:.0%}"
    if not {"head", "gate"} & terms.keys():  # terms that only a head has
        told = _held(alert, lambda n: f"{n / 100:.2f}")
        return f"{told}, {likely} likely right" if likely else told
    held = _held(alert, lambda n: f"{n}%")
    if "head" in terms and alert.kind in AID:  # of a query that the head was taught, whose score is shared out
        told = f"a need or offer {held}"
        return f"{told}, under this category {likely}" if likely else told
    told, same = f"under this category {held}", likely in ("", f"{alert.score:.0%}")
    return told if same or alert.kind not in AID else f"{told}, as {AS[alert.kind]} {likely}"


def _held(alert: Alert, shown: Callable[[int], str]) -> str:
    """What is held against what, in hundredths: a score below its bar by less than one is one below ("49% < 50%")."""
    score, bar = round(100 * alert.score), round(100 * alert.threshold)
    if alert.score >= alert.threshold:
        return f"{shown(score)} ≥ {shown(bar)}"
    return f"{shown(min(score, bar - 1))} < {shown(bar)}"
