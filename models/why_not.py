"""Why a post gave no alert, in one sentence. Pure: what happened to it on its way is asked elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.matching import Matcher
from models.records import Match, Post

__all__ = ["likeliest", "why_not"]

SAID = {  # the head's classes that are no queries (NEAR of training/posts), in words for people
    "met": "a need that was met",
    "negated": "word that nothing is needed",
    "past": "something past",
    "news": "news",
    "hypothetical": "something that might be",
    "figurative": "a figure of speech",
    "opinion": "an opinion",
    "thanks": "thanks",
    "prayer": "a prayer",
    "refused": "word that no more help should come",
    "scam_talk": "a warning of a scam",
    "advert": "an advertisement",
    "chatter": "everyday talk",
    "ordinary": "everyday talk",
}


def why_not(matcher: Matcher, post: Post, vector: np.ndarray, known: Sequence[Match] = ()) -> str:
    """One sentence. vector: (d,), of the matcher's encoder. known: the matches the pipeline gave the post, where it
    did: their thresholds are those of that moment, which bars that follow the stream (models/bars.py) have moved since.
    """
    if not matcher.queries:
        return "There is no query: `crisis query add` makes one."
    given = {m.query_id: m for m in known}
    if alerted := next((m for m in known if m.level == "alert"), None):
        return f"It gave an alert: {alerted.query_id}, {_chance(matcher.standing(alerted))}."
    bars, likely = _bars(matcher, given), matcher.standings(post, vector)
    refusals = [matcher.refusal(i, post) for i in range(len(matcher.queries))]
    over = sorted((int(i) for i in np.flatnonzero(likely >= bars)), key=lambda i: -float(likely[i]))
    if left_out := [i for i in over if refusals[i]]:
        best = left_out[0]
        return f"{_named(matcher, best, likely)} leaves it out: {refusals[best]}."
    if over:
        return _yields(matcher, over[0], likely, bars, given)
    open_to = [i for i, refused in enumerate(refusals) if not refused]
    if not open_to:
        best = int(likely.argmax())
        return f"Every query leaves it out; the likeliest, {matcher.queries[best].id}: {refusals[best]}."
    nearest = max(open_to, key=lambda i: float(likely[i]))
    missing = 100 * float(bars[nearest] - likely[nearest])
    shown = " It was shown as a suggestion." if matcher.queries[nearest].id in given else ""
    return (
        f"No query is likely enough: nearest is {_named(matcher, nearest, likely)}, {missing:.0f} points below the "
        f"{_chance(bars[nearest])} from which it alerts{_reads_as(matcher, vector)}.{shown}"
    )


def likeliest(matcher: Matcher, post: Post, vector: np.ndarray) -> str:
    """The id of the query that a post comes nearest to alerting for; empty where there is none."""
    if not matcher.queries:
        return ""
    return matcher.queries[int((matcher.standings(post, vector) - _bars(matcher, {})).argmax())].id


def _yields(matcher: Matcher, best: int, likely: np.ndarray, bars: np.ndarray, given: dict[str, Match]) -> str:
    """For a query that reached its bar and yet gave no alert by itself: the likelier opposite is below its own."""
    mine = matcher.queries[best]
    opposite = [
        i
        for i, q in enumerate(matcher.queries)
        if q.category == mine.category and i != best and likely[i] > likely[best]
    ]
    if opposite:
        other = opposite[0]
        return (
            f"{_named(matcher, best, likely)} would alert, but {_named(matcher, other, likely)} is likelier and a post "
            f"is not both; that one alerts from {_chance(bars[other])} on."
        )
    named = _named(matcher, best, likely)
    if given:
        return f"{named} alerts from {_chance(bars[best])} on now; when the post was read, queries or bars were others."
    return f"It does alert, read now: {named}, which alerts from {_chance(bars[best])} on."


def _bars(matcher: Matcher, given: dict[str, Match]) -> np.ndarray:
    """(q,): the probability from which each query alerts."""
    found = []
    for i, query in enumerate(matcher.queries):
        known = given.get(query.id)
        score = matcher.thresholds[i].alert if known is None else known.threshold
        found.append(matcher.standing_at(i, score))
    return np.array(found, np.float32)


def _named(matcher: Matcher, index: int, likely: np.ndarray) -> str:
    return f"{matcher.queries[index].id} at {_chance(likely[index])}"


def _reads_as(matcher: Matcher, vector: np.ndarray) -> str:
    """What else the learnt head takes it for, where that is no need and no offer."""
    if matcher.head is None:
        return ""
    (kind,) = matcher.head.kinds(vector[None])
    return "" if "." in kind else f"; it reads as {SAID.get(kind, kind)}"


def _chance(probability: float) -> str:
    return f"{100 * float(probability):.0f} %"
