"""How good alerts are: do they tell what a post is, do their probabilities hold, what are they worth to a responder?

A *right* reading is one of the post's labels: `gold`, `second` or what it also says. Weights are the posts of a stream
that a labelled post stands for; without them every post counts once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

__all__ = [
    "NONE",
    "Told",
    "aimed_at",
    "alert_counts",
    "alerting_worth",
    "calibration_error",
    "f1",
    "gain_minus_pain",
    "mean_worth",
    "ndcg",
    "push",
    "ranked_precision",
    "reading_counts",
    "reliability",
    "share",
    "type_overlap",
]

NONE = "none"
# Alerting Worth: credit for the alert itself, weight of actionable types, score of a needless alert at worst
ALPHA, LAMBDA, WORST = 0.3, 0.75, -1.0


class Told(Struct, frozen=True):
    """What a post is by its labels, and what it was told as."""

    gold: str  # query id, or "none"
    second: str = ""  # the other right reading; "" = there is none
    urgent: bool = False  # lives hang on the next hours
    weight: float = 1.0
    alert: str = ""  # query id its alert was made for; "" = no alert
    also: tuple[str, ...] = ()  # further queries of the same alert
    first: str = ""  # the query it scores highest under, alert or not
    more: tuple[str, ...] = ()  # right readings beside `gold` and `second`

    @property
    def labels(self) -> set[str]:
        """The right readings."""
        return {self.gold, self.second, *self.more} - {NONE, ""}


class Reliability(Struct, frozen=True):
    """One bin of a reliability table: posts by what was promised, and how often it was so."""

    posts: int
    weight: float
    promised: float  # mean probability
    right: float  # share that was right


class Worth(Struct, frozen=True):
    """Alerting Worth, -1 to 1, by priority; `all` is the mean of both halves. nan where there is no such post."""

    high: float
    low: float
    all: float


class Pushed(Struct, frozen=True):
    """What alerts of a stream brought and cost."""

    gain: float
    pain: int  # alerts that brought nothing
    hours: int  # with at least one post


def f1(told: np.ndarray, gold: np.ndarray) -> float:
    """Harmonic mean of precision and recall of (n,) bool answers; 0 where nothing is right."""
    either = int(told.sum()) + int(gold.sum())
    return 2 * int((told & gold).sum()) / either if either else 0.0


def kind_of(query_id: str) -> str:
    """ "need" or "offer" of "need.water"."""
    return query_id.partition(".")[0]


def alert_counts(told: Sequence[Told]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """By figure, (hits, of), both (n,) bool: the figure is the share of `of` that hits."""

    def column(of) -> np.ndarray:
        return np.array([bool(of(post)) for post in told], bool)

    wanted = column(lambda p: p.gold != NONE)
    alerted = column(lambda p: p.alert)
    right = column(lambda p: p.alert in p.labels)
    any_right = column(lambda p: p.alert and {p.alert, *p.also} & p.labels)
    rescue = column(lambda p: p.gold == "need.search_rescue")
    offered, needed = column(lambda p: kind_of(p.alert) == "offer"), column(lambda p: kind_of(p.alert) == "need")
    in_kind = column(lambda p: p.alert and kind_of(p.alert) in {kind_of(label) for label in p.labels})
    kind_first = column(lambda p: p.first and kind_of(p.first) in {kind_of(label) for label in p.labels})
    urgent = wanted & column(lambda p: p.urgent)
    return {
        "own_query": (right, wanted),
        "own_query_any_reading": (any_right, wanted),
        "any_query": (alerted, wanted),
        "rescue": (alerted & column(lambda p: p.alert == "need.search_rescue"), rescue),
        "rescue_any_reading": (column(lambda p: "need.search_rescue" in (p.alert, *p.also)), rescue),
        "urgent": (right, urgent),
        "urgent_any_query": (alerted, urgent),
        "others_alerted": (alerted, ~wanted),
        "alerts_right": (right, alerted),
        "alerts_right_in_kind": (in_kind, alerted),
        "alerts_need_or_offer": (wanted, alerted),
        "offer_alerts_that_are_needs": (~in_kind & column(lambda p: kind_of(p.gold) == "need"), offered),
        "need_alerts_that_are_offers": (~in_kind & column(lambda p: kind_of(p.gold) == "offer"), needed),
        "right_query_first": (column(lambda p: p.first in p.labels), wanted),
        "need_or_offer_right": (kind_first, wanted),
    }


def reading_counts(told: Sequence[Told]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """By figure, (hits, weights), both (m,), a row a reading, not a post: what is told beside the first reading of an
    alert and is right; of the right readings of posts that have several, those told."""
    further = [(query in post.labels, post.weight) for post in told if post.alert for query in post.also]
    several = [
        (query in (post.alert, *post.also), post.weight)
        for post in told
        if len(post.labels) > 1
        for query in sorted(post.labels)
    ]
    listed = {"further_readings_right": further, "readings_of_several_found": several}
    return {
        name: (np.array([hit for hit, _ in rows], bool), np.array([weight for _, weight in rows], np.float64))
        for name, rows in listed.items()
    }


def share(hits: np.ndarray, of: np.ndarray, weights: np.ndarray) -> float:
    """The weighted share of `of` that hits, all (n,); nan where `of` is empty."""
    total = float(weights[of].sum())
    return float(weights[hits & of].sum()) / total if total else float("nan")


def ranked_precision(scores: np.ndarray, positive: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Average precision, posts of equal score taken together, so that the order of posts says nothing. All (n,).

    Sum over scores of precision there times the recall gained there, as scikit-learn's. nan without a positive.
    """
    w = np.ones(len(scores)) if weights is None else np.asarray(weights, np.float64)
    order = np.argsort(-scores, kind="stable")
    found = np.cumsum((w * positive)[order])
    passed = np.cumsum(w[order])
    last = np.flatnonzero(np.diff(scores[order], append=np.nan) != 0)  # of each run of equal scores
    found, passed = found[last], passed[last]
    if not len(found) or found[-1] <= 0:
        return float("nan")
    return float(np.sum(np.diff(found, prepend=0.0) * found / passed) / found[-1])


def reliability(
    probability: np.ndarray, right: np.ndarray, weights: np.ndarray | None = None, bins: int = 15
) -> list[Reliability]:
    """Bins of about equal weight, from the lowest probability up; equal probabilities share a bin. All (n,)."""
    w = np.ones(len(probability)) if weights is None else np.asarray(weights, np.float64)
    values, place = np.unique(probability, return_inverse=True)
    mass = np.bincount(place, w, len(values))
    middle = np.cumsum(mass) - mass / 2
    bin_of = np.minimum((bins * middle / max(mass.sum(), 1e-12)).astype(int), bins - 1)[place]
    return [
        Reliability(
            int(chosen.sum()),
            float(w[chosen].sum()),
            float(np.average(probability[chosen], weights=w[chosen])),
            float(np.average(right[chosen], weights=w[chosen])),
        )
        for chosen in (bin_of == k for k in np.unique(bin_of))
    ]


def calibration_error(table: Sequence[Reliability]) -> float:
    """Expected calibration error: mean of |promised − right| over bins, by weight; nan for an empty table.

    Source: Naeini, Cooper, Hauskrecht 2015; bins of equal mass by Nguyen, O'Connor 2015, https://arxiv.org/abs/1508.05154.
    """
    total = sum(row.weight for row in table)
    return sum(row.weight * abs(row.promised - row.right) for row in table) / total if total else float("nan")


def aimed_at(
    probability: np.ndarray, target: float, weights: np.ndarray | None = None, standing: np.ndarray | None = None
) -> float:
    """A chosen precision as a threshold: the lowest standing from which up the mean probability is `target`. All (n,).

    standing: what posts are ordered by; None = the probability. nan where even the first falls short.
    """
    w = np.ones(len(probability)) if weights is None else np.asarray(weights, np.float64)
    by = probability if standing is None else standing
    order = np.argsort(-by, kind="stable")
    mean = np.cumsum((w * probability)[order]) / np.cumsum(w[order])
    reached = np.flatnonzero(mean >= target)
    return float(by[order][reached[-1]]) if len(reached) else float("nan")


def ndcg(scores: np.ndarray, gains: np.ndarray, depth: int = 100) -> float:
    """Normalised discounted cumulative gain of the top `depth`: linear gains, log2 discount; ties in input order.

    scores, gains: (n,).
    Source: Järvelin, Kekäläinen 2002, with the discount of Burges et al. 2005. nan where nothing has a gain.
    """
    discount = 1 / np.log2(np.arange(2, min(depth, len(gains)) + 2))
    best = float(np.sort(gains)[::-1][: len(discount)] @ discount)
    return float(gains[np.argsort(-scores, kind="stable")][: len(discount)] @ discount) / best if best else float("nan")


def type_overlap(found: set[str], labelled: set[str], actionable: set[str]) -> float:
    """How well a post's information types were told, 0 to 1: the Jaccard index of the actionable ones weighs λ = .75
    where the post has such, that of the others the rest. Types told in excess cost.

    Source: as of `alerting_worth`.
    """
    share = LAMBDA if labelled & actionable else 0.0

    def alike(one: set[str], other: set[str]) -> float:
        return len(one & other) / len(one | other) if one | other else 0.0

    others = alike(found - actionable, labelled - actionable)
    return share * alike(found & actionable, labelled & actionable) + (1 - share) * others


def alerting_worth(alerts: np.ndarray, high: np.ndarray, overlap: np.ndarray) -> np.ndarray:
    """(n,) what each post of one event is worth, in time order. alerts, high: (n,) bool; overlap: of `type_overlap`.

    A post of high or critical priority: α + (1 − α) · overlap if alerted (α = .3), −1 if not. Another post: overlap if
    not alerted, else max(−1, −log10(δ/2 + 1)), δ = needless alerts since the last needed one, before this one.
    Source: McCreadie, Buntain, Soboroff 2020, Incident Streams 2019: Actionable Insights and How to Find Them, ISCRAM,
    as the track's evaluation notebook (2019-B, version 2.3) computes it. Two differences: a system alerts by its own
    threshold, where the notebook takes a priority score of .7; and for types that are not actionable it compares the
    actionable ones once more, which reads as an oversight.
    """
    worth = np.zeros(len(alerts))
    needless = 0
    for i, (alert, needed) in enumerate(zip(alerts, high, strict=True)):
        if needed:
            worth[i] = ALPHA + (1 - ALPHA) * overlap[i] if alert else WORST
            needless = 0 if alert else needless
        elif alert:
            worth[i] = max(WORST, -math.log10(needless / 2 + 1))
            needless += 1
        else:
            worth[i] = overlap[i]
    return worth


def mean_worth(worth: np.ndarray, high: np.ndarray) -> Worth:
    """Alerting Worth of posts of all events together, as the track reports it: the mean of each kind of post, and the
    mean of both."""
    of_high, of_low = (float(worth[own].mean()) if own.any() else float("nan") for own in (high, ~high))
    return Worth(of_high, of_low, (of_high + of_low) / 2)


def push(at_s: np.ndarray, alerts: np.ndarray, gain: np.ndarray, per_hour: int) -> Pushed:
    """Alerts in order of arrival, at most `per_hour` in an hour of the clock; the rest of that hour's are not shown.

    at_s: (n,) epoch seconds, rising. gain: (n,); 0 = the alert was for nothing, a pain.
    """
    shown: dict[int, int] = {}
    pushed = Pushed(0.0, 0, len(np.unique(at_s // 3600)))
    total, pain = 0.0, 0
    for i in np.flatnonzero(alerts):
        hour = int(at_s[i] // 3600)
        if shown.get(hour, 0) < per_hour:
            shown[hour] = shown.get(hour, 0) + 1
            total += float(gain[i])
            pain += int(gain[i] == 0)
    return Pushed(total, pain, pushed.hours)


def gain_minus_pain(pushed: Pushed, alpha: float = 0.5) -> float:
    """α · gain − (1 − α) · pain, an hour with posts. α = .33, .5 or .66: how a person weighs one against the other.

    Source: the GMP of the TREC 2016 Real-Time Summarization track, Lin et al. 2016; there a sum over the whole period.
    """
    return (alpha * pushed.gain - (1 - alpha) * pushed.pain) / pushed.hours if pushed.hours else float("nan")
