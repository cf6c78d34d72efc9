"""The figures of alerts, set by set: a matcher reads the posts, `training.metrics.alerting` counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from models.records import NOTICES, PRIORITIES, is_notice
from training.evaluate.alert_material import ACTIONABLE, HIGH, Timed, information_type, kind_types
from training.evaluate.alert_reading import Judged, Reader
from training.evaluate.figure import Drawing, Figure, figure
from training.labels import Labelled, Messages, Ordinary
from training.metrics import alerting
from training.metrics.alerting import NONE

__all__ = [
    "BUDGETS",
    "budget_figures",
    "by_category",
    "calibration_figures",
    "disaster_figures",
    "humaid_figures",
    "labelled_figures",
    "notice_figures",
    "ordinary_figures",
    "priority_figures",
    "ranked",
    "trecis_figures",
]

GOOD_SIX = ("water", "food", "shelter", "clothing_blankets", "medical_help", "medicine")  # annotators agree there
BUDGETS = (5, 20, 60)  # alerts an hour
ALPHAS = (0.33, 0.5, 0.66)
ENOUGH = 200  # labels of a language before its calibration error is told
TARGET = 0.8  # precision asked for by a person


def labelled_figures(judged: Judged, draw: Drawing) -> list[Figure]:
    """Alerts at default, the first reading, and how posts rank. See `alerting.alert_counts`."""
    weights, n = judged.weights, len(judged.posts)
    found = [draw.share(name, hits, of, weights) for name, (hits, of) in alerting.alert_counts(judged.told).items()]
    for name, (hits, own) in alerting.reading_counts(judged.told).items():
        found.append(draw.share(name, hits, np.ones(len(hits), bool), own))  # rows are readings
    wanted = np.array([told.gold != NONE for told in judged.told], bool)
    if wanted.any() and not wanted.all():
        found.append(draw.precision("ap_against_none", judged.best, wanted, weights, n))
        found.append(figure("base_against_none", float(np.average(wanted, weights=weights)), n))
    return found


def by_category(judged: Judged) -> dict[str, dict[str, float | int]]:
    """Of each category's alerts, of needs and of offers: how many there are, and how many of them are right."""
    found = {}
    for category in sorted({told.alert.partition(".")[2] for told in judged.told if told.alert}):
        own = [told for told in judged.told if told.alert.partition(".")[2] == category]
        hits = np.array([told.alert in told.labels for told in own])
        right = float(np.average(hits, weights=[told.weight for told in own]))
        found[category] = {"alerts": len(own), "right": round(right, 4)}
    return found


def notice_figures(judged: Judged, draw: Drawing) -> list[Figure]:
    """Alerts that are notices, by kind: how many are right, how many posts of the kind are found; and how many posts
    that are none alert as one. A need or an offer that alerts as a notice is wrong."""
    weights, found = judged.weights, []
    for kind in NOTICES:
        alerted = np.array([any(query.startswith(f"{kind}.") for query in own) for own in judged.notices], bool)
        right = np.array([post.label.startswith(f"{kind}.") for post in judged.posts], bool)
        found.append(draw.share(f"{kind}_alerts_right", right, alerted, weights))
        found.append(draw.share(f"{kind}_found", alerted, right, weights))
    neither = np.array([not is_notice(post.label) for post in judged.posts], bool)
    alerted = np.array([bool(own) for own in judged.notices], bool)
    return [*found, draw.share("others_alerted", alerted, neither, weights)]


def priority_figures(judged: Judged, draw: Drawing) -> list[Figure]:
    """F1 of the priority of posts whose urgency was labelled: of each, and the mean of the three."""
    at = [i for i, post in enumerate(judged.posts) if post.urgency and judged.priority[i]]
    gold = np.array([judged.posts[i].urgency for i in at])
    told = np.array([judged.priority[i] for i in at])
    occurring = [name for name in PRIORITIES if (gold == name).any()]

    def mean(rows: np.ndarray) -> float:
        return float(np.mean([alerting.f1(told[rows] == name, gold[rows] == name) for name in occurring]))

    each = [
        figure(f"{name}_f1", alerting.f1(told == name, gold == name), int((gold == name).sum())) for name in occurring
    ]
    return [draw.of("priority_macro_f1", mean, len(at), len(at)), *each] if at else []


def calibration_figures(judged: Judged) -> tuple[list[Figure], dict]:
    """How far probabilities hold, over all posts that have one and by language; and the reliability tables.

    A post counts by its primary reading, whether shown or not; without a learnt head only readings that are shown have
    a probability. Most posts of a stream are easy, so the error of those that are shown is told apart. Where a
    precision is asked, the bar lies as models/bars.py lays it: by standing, where the mean probability above it is
    what is asked.
    """
    known = ~np.isnan(judged.probability)
    langs = np.array([post.lang for post in judged.posts])
    groups = {"": known, "_of_shown": known & judged.shown}
    for lang in sorted(set(langs.tolist())):
        if (known & (langs == lang)).sum() >= ENOUGH:
            groups[f" {lang}"] = known & (langs == lang)
    found, tables = [], {}
    for name, own in groups.items():
        rows = alerting.reliability(judged.probability[own], judged.right[own], judged.weights[own])
        found.append(figure(f"calibration_error{name}", alerting.calibration_error(rows), int(own.sum())))
        tables[f"reliability{name}"] = [_row(row) for row in rows]
    p, right, weights = judged.probability[known], judged.right[known], judged.weights[known]
    standing = judged.standing[known]
    over = standing >= alerting.aimed_at(p, TARGET, weights, standing)
    found.append(figure("precision_where_80_is_asked", alerting.share(right, over, weights), int(over.sum())))
    return found, tables


def disaster_figures(reader: Reader, messages: Messages, sample: np.ndarray, draw: Drawing) -> list[Figure]:
    """Alerts on water, food and shelter under any reading, and average precision. A message that asks is right."""
    texts, asks = [messages.texts[i] for i in sample], messages.asks[sample]
    read, one = reader.read(texts), np.ones(len(sample))
    found, rankings = [], []
    for category in GOOD_SIX:
        query = f"need.{category}"
        right, score = messages.labels[query][sample] & asks, reader.column(read.scores, query)
        rankings.append((score, right))
        if category in GOOD_SIX[:3]:
            alerts = zip(read.alert, read.also, strict=True)
            alerted = np.array([query in (first, *also) for first, also in alerts], bool)
            found.append(draw.share(f"{category}_precision", right, alerted, one))
            found.append(draw.share(f"{category}_recall", alerted, right, one))
        found.append(figure(f"{category}_ap", alerting.ranked_precision(score, right), int(right.sum())))

    def mean(at: np.ndarray) -> float:
        return float(np.mean([alerting.ranked_precision(score[at], right[at]) for score, right in rankings]))

    return [*found, draw.of("mean_ap_good_six", mean, len(texts), len(texts))]


def humaid_figures(reader: Reader, labelled: Labelled, sample: np.ndarray, draw: Drawing) -> list[Figure]:
    """Average precision of requests by the best need, of efforts by the best offer and by the best of all."""
    read, one = reader.read([labelled.texts[i] for i in sample]), np.ones(len(sample))
    need, offer = read.scores[:, reader.needs].max(1), read.scores[:, reader.offers].max(1)
    requests, effort = labelled.need[sample], labelled.offer[sample]
    return [
        draw.precision("ap_requests", need, requests, one, int(requests.sum())),
        draw.precision("ap_effort", offer, effort, one, int(effort.sum())),
        draw.precision("ap_effort_any_reading", np.maximum(need, offer), effort, one, int(effort.sum())),
    ]


def trecis_figures(reader: Reader, posts: Sequence[Timed], draw: Drawing) -> tuple[list[Figure], dict]:
    """Ranking of priorities by best need, by urgency and by priority, and Alerting Worth of the alerts: of
    needs and offers, of notices too, of urgent posts, and of a system that is silent."""
    read = reader.read([post.text for post in posts])
    gains = np.array([post.gain for post in posts])
    high = gains >= HIGH
    over = read.scores - np.array(
        [t.alert for t in reader.matcher.thresholds]
    )  # without a head, queries differ in scale
    rankings = {"best_need": over[:, reader.needs].max(1)}
    if read.urgent is not None:
        rankings["urgency"] = read.urgent
    if read.ranked is not None:
        rankings["priority"] = read.ranked
    found = []
    for name, score in rankings.items():
        found.append(draw.precision(f"ap_high_by_{name}", score, high, np.ones(len(posts)), int(high.sum())))
        found.append(figure(f"ndcg100_by_{name}", alerting.ndcg(score, gains), len(posts)))
    found.append(figure("base_high", float(high.mean()), len(posts)))
    alerts = {"alerts": np.array([bool(query) for query in read.alert], bool)}
    alerts["alerts_and_notices"] = alerts["alerts"] | np.array([bool(own) for own in read.notices], bool)
    if read.urgent is not None:
        alerts["urgent"] = read.urgent >= 0.5
    told = [
        {information_type(query) for query in shown} or kind_types(kind)
        for shown, kind in zip(read.shown, read.kinds or [""] * len(posts), strict=True)
    ]
    overlap = np.array([alerting.type_overlap(t, set(p.types), ACTIONABLE) for t, p in zip(told, posts, strict=True)])
    events = np.array([post.event for post in posts])
    details = {}
    for name, alerted in (alerts | {"no_alert_at_all": np.zeros(len(posts), bool)}).items():
        worth = np.zeros(len(posts))
        for event in np.unique(events):
            own = events == event
            worth[own] = alerting.alerting_worth(alerted[own], high[own], overlap[own])
        whole = alerting.mean_worth(worth, high)
        found += [
            figure(f"worth_high_by_{name}", whole.high, int(high.sum())),
            figure(f"worth_all_by_{name}", whole.all, len(posts)),
            figure(f"share_alerted_by_{name}", float(alerted.mean()), len(posts)),
        ]
        details[f"worth_by_{name}"] = {
            str(event): _row(alerting.mean_worth(worth[own], high[own]))
            for event in np.unique(events)
            for own in (events == event,)
        }
    return found, details


def ranked(urgent: np.ndarray, posts: Sequence[Timed]) -> list[Figure]:
    """Ranking of priorities by an urgency that learnt nothing of a post's event (training/evaluate/left_out.py)."""
    gains = np.array([post.gain for post in posts])
    precision = alerting.ranked_precision(urgent, gains >= HIGH, np.ones(len(posts)))
    return [
        figure("ap_high_by_urgency_event_left_out", precision, int((gains >= HIGH).sum())),
        figure("ndcg100_by_urgency_event_left_out", alerting.ndcg(urgent, gains), len(posts)),
    ]


def budget_figures(reader: Reader, posts: Sequence[Timed]) -> list[Figure]:
    """Gain − pain an hour, at so many alerts an hour at most."""
    read = reader.read([post.text for post in posts])
    at_s, gain = np.array([post.at_s for post in posts]), np.array([post.gain for post in posts])
    alerted = np.array([bool(query) for query in read.alert], bool)
    found = [
        figure("alerts_with_gain", alerting.share(gain > 0, alerted, np.ones(len(posts))), int(alerted.sum())),
        figure("gain_found", alerting.share(alerted, gain > 0, np.ones(len(posts))), int((gain > 0).sum())),
    ]
    for budget in BUDGETS:
        pushed = alerting.push(at_s, alerted, gain, budget)
        for alpha in ALPHAS:
            name = f"gain_minus_pain_{budget}_an_hour" + ("" if alpha == 0.5 else f"_alpha_{alpha}")
            found.append(figure(name, alerting.gain_minus_pain(pushed, alpha), pushed.hours))
    return found


def ordinary_figures(reader: Reader, posts: Ordinary) -> tuple[list[Figure], dict]:
    """Share of ordinary posts with an alert under any query: sentences and news by language, chatter by set."""
    read = reader.read(posts.texts)
    alerted = np.array([bool(query) for query in read.alert], bool)
    by_group = {
        str(group): {"share": float(alerted[own].mean()), "n": int(own.sum())}
        for group in np.unique(posts.groups)
        for own in (posts.groups == group,)
    }
    chatter = np.char.startswith(posts.groups.astype(str), "chatter")
    found = [figure("ordinary_alerted", float(alerted.mean()) if len(alerted) else None, len(alerted))]
    for name, own in (("sentences_and_news_alerted", ~chatter), ("chatter_alerted", chatter)):
        found.append(figure(name, float(alerted[own].mean()) if own.any() else None, int(own.sum())))
    worst = max((g["share"] for g in by_group.values() if g["n"] >= 30), default=None)
    return [*found, figure("worst_group_alerted", worst, len(by_group))], {"by_group": by_group}


def _row(row: Struct) -> dict:
    """A struct as JSON takes it, null for nan."""
    values = {name: getattr(row, name) for name in row.__struct_fields__}
    return {k: None if isinstance(v, float) and np.isnan(v) else v for k, v in values.items()}
