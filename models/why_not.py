"""Why a post gave no alert, in one sentence. Pure: what happened to it on its way is asked elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from models.bars import held_back
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
    if held := next((m for m in known if held_back(m, matcher)), None):
        return (
            f"{_told(matcher, held)} is held back by its limit of {_limit(matcher, held)}: when it came, only what was "
            "likelier alerted. It was shown as a suggestion."
        )
    bars, likely = _bars(matcher, given), matcher.standings(post, vector)
    if told := _reads_now(matcher, post, vector, bars, given):
        return told
    refusals = [matcher.refusal(i, post) for i in range(len(matcher.queries))]
    over = sorted((int(i) for i in np.flatnonzero(likely >= bars)), key=lambda i: -float(likely[i]))
    if left_out := [i for i in over if refusals[i]]:
        best = left_out[0]
        return f"{_named(matcher, best, likely)} leaves it out: {refusals[best]}."
    if told := next(filter(None, (_is_not_both(matcher, best, likely, bars) for best in over)), ""):
        return told
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


def _reads_now(matcher: Matcher, post: Post, vector: np.ndarray, bars: np.ndarray, given: Mapping[str, Match]) -> str:
    """That it does alert, or may, by its readings of now; empty if it does not. Bars that follow the stream are known
    in the workers alone."""
    found = matcher.match([post.id], vector[None], matcher.encoder_version, [post])
    bar_of = {m.query_id: float(bars[matcher.place[m.query_id]]) for m in found}
    over = [m for m in found if matcher.standing(m) >= bar_of[m.query_id]]
    if sure := next((m for m in over if not _moves(matcher, m)), None):
        named, bar = _told(matcher, sure), _chance(bar_of[sure.query_id])
        if given:
            return f"{named} alerts from {bar} on now; when the post was read, queries or bars were others."
        return f"It does alert, read now: {named}, which alerts from {bar} on."
    for match in found:
        if match.query_id in given or not _moves(matcher, match):
            continue
        if match.query_id not in matcher.budgets:
            target = matcher.targets.get(match.query_id, matcher.config.target_precision or 1.0)
            return (
                f"It may alert, read now: {_told(matcher, match)}; its bar follows the stream, so that "
                f"{_chance(target)} of its alerts are right, and where it lies now is not known here."
            )
        if match in over:
            return (
                f"It alerts, read now, unless its limit of {_limit(matcher, match)} holds it back, which is not known "
                f"here: {_told(matcher, match)}, which alerts from {_chance(bar_of[match.query_id])} on."
            )
    return ""


def _moves(matcher: Matcher, match: Match) -> bool:
    """Does the bar of this reading follow the stream? No budget holds back what is urgent."""
    if match.query_id in matcher.budgets:
        return match.priority != "urgent"
    common = matcher.config.target_precision is not None and match.query_id in matcher.followers
    return common or match.query_id in matcher.targets


def _limit(matcher: Matcher, match: Match) -> str:
    return f"{matcher.budgets[match.query_id]:g} alerts an hour"


def _is_not_both(matcher: Matcher, best: int, likely: np.ndarray, bars: np.ndarray) -> str:
    """For a query that reached its bar: the likelier opposite is below its own. Empty where none is."""
    mine = matcher.queries[best]
    for i, query in enumerate(matcher.queries):
        if query.category == mine.category and i != best and likely[i] > likely[best]:
            return (
                f"{_named(matcher, best, likely)} would alert, but {_named(matcher, i, likely)} is likelier and a post "
                f"is not both; that one alerts from {_chance(bars[i])} on."
            )
    return ""


def _bars(matcher: Matcher, given: Mapping[str, Match]) -> np.ndarray:
    """(q,): the probability from which each query alerts."""
    found = []
    for i, query in enumerate(matcher.queries):
        known = given.get(query.id)
        found.append(matcher.own_bar(i) if known is None else matcher.standing_at(i, known.threshold))
    return np.array(found, np.float32)


def _told(matcher: Matcher, match: Match) -> str:
    return f"{match.query_id} at {_chance(matcher.standing(match))}"


def _named(matcher: Matcher, index: int, likely: np.ndarray) -> str:
    return f"{matcher.queries[index].id} at {_chance(likely[index])}"


def _reads_as(matcher: Matcher, vector: np.ndarray) -> str:
    """What else the learnt head takes it for: no need and no offer, or one that no query listens for."""
    if matcher.head is None:
        return ""
    (kind,) = matcher.head.kinds(vector[None])
    if "." not in kind:
        return f"; it reads as {SAID.get(kind, kind)}"
    return "" if kind in matcher.place else f"; it reads as {kind}, which no query listens for"


def _chance(probability: float) -> str:
    return f"{100 * float(probability):.0f} %"
