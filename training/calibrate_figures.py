"""What a calibration does: on held-out messages, test sets and the demo stream; and on the ordinary posts its rates
were set by.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from models.encoders.protocol import Encoder
from models.matching import Matcher
from models.queries import Query
from training.demo import demo_rows
from training.evaluate.needs import average_precision
from training.labels import Labelled, Messages

__all__ = ["by_language", "on_demo", "on_test_set", "precision_recall", "ranking", "show"]


def ranking(queries: list[Query], scores: np.ndarray, messages: Messages) -> dict:
    """Average precision by query on the held-out messages, by the language they were sent in."""
    place = {q.id: i for i, q in enumerate(queries)}
    groups = {
        "en": messages.langs == "en",
        "ht": messages.langs == "ht",
        "fr": messages.langs == "fr",
        "translations": messages.langs == "en*",
    }
    found: dict = {}
    for name, chosen in groups.items():
        per_query = {
            query_id: round(average_precision(scores[chosen, place[query_id]], about[chosen]), 4)
            for query_id, about in messages.labels.items()
            if query_id in place and about[chosen].sum() >= 8
        }
        found[name] = {"mean": round(float(np.mean(list(per_query.values()))), 4), "by_query": per_query}
    return found


def on_test_set(matcher: Matcher, labelled: Labelled, scores: np.ndarray) -> dict:
    """AP of the best need and the best offer, and precision and recall of the alerts."""
    found: dict = {"posts": len(labelled.texts)}
    alert = np.array([t.alert for t in matcher.thresholds])
    suggestion = np.array([t.suggestion for t in matcher.thresholds])
    for kind, positive in (("need", labelled.need), ("offer", labelled.offer)):
        if positive is None:
            continue
        of_kind = np.array([q.kind == kind for q in matcher.queries])
        entry = {
            "positives": int(positive.sum()),
            "ap": round(average_precision(scores[:, of_kind].max(1), positive), 4),
        }
        for level, at in (("alert", alert), ("suggestion", suggestion)):
            entry[level] = precision_recall((scores[:, of_kind] >= at[of_kind]).any(1), positive)
        found[kind] = entry
    return found


def precision_recall(found: np.ndarray, wanted: np.ndarray) -> dict[str, float]:
    """Of posts found, both (n,) bool, and how many were found."""
    both = float((found & wanted).sum())
    return {
        "precision": round(both / max(int(found.sum()), 1), 3),
        "recall": round(both / max(int(wanted.sum()), 1), 3),
        "found": int(found.sum()),
    }


def on_demo(matcher: Matcher, encoder: Encoder, path: Path) -> dict:
    """The demo stream: is the gold need or offer found, and how many news and chatter posts are?"""
    posts = demo_rows(path)
    gold = np.array([p["gold"] for p in posts])
    scores = matcher.scores(encoder.encode([p["text"] for p in posts]))
    alert = scores >= np.array([t.alert for t in matcher.thresholds])
    suggestion = scores >= np.array([t.suggestion for t in matcher.thresholds])
    ids = np.array([q.id for q in matcher.queries])
    own = gold[:, None] == ids[None, :]  # (n, q)
    asked, rest = own.any(1), ~own.any(1)
    return {
        "ap": round(
            float(np.mean([average_precision(scores[:, i], own[:, i]) for i in range(len(ids)) if own[:, i].any()])), 4
        ),
        "gold": int(asked.sum()),
        "own_suggested": round(float((own & suggestion).any(1)[asked].mean()), 3),
        "own_alerted": round(float((own & alert).any(1)[asked].mean()), 3),
        "any_suggested": round(float(suggestion.any(1)[asked].mean()), 3),
        "any_alerted": round(float(alert.any(1)[asked].mean()), 3),
        "same_category_alerted": round(float(_category(own, ids, alert)[asked].mean()), 3),
        "rest": int(rest.sum()),
        "rest_suggested": round(float(suggestion.any(1)[rest].mean()), 3),
        "rest_alerted": round(float(alert.any(1)[rest].mean()), 3),
        "alerts_of_own": round(float((own & alert).sum() / max(alert.sum(), 1)), 3),
        "matches_per_post": round(float(suggestion.sum(1).mean()), 2),
    }


def _category(own: np.ndarray, ids: np.ndarray, found: np.ndarray) -> np.ndarray:
    """(n,): was the gold category found, as a need or as an offer?"""
    category = np.array([i.split(".", 1)[1] for i in ids])
    same = category[:, None] == category[None, :]
    return ((own @ same) & found).any(1)


def by_language(matcher: Matcher, scores: np.ndarray, groups: np.ndarray) -> dict:
    """Share of ordinary posts with any alert, by language and set; and the worst single query of each."""
    over = scores >= np.array([t.alert for t in matcher.thresholds])
    found = {}
    for group in np.unique(groups):
        part = over[groups == group]
        found[str(group)] = {
            "any_alert": round(float(part.any(1).mean()), 5),
            "worst_query": round(float(part.mean(0).max()), 5),
            "posts": len(part),
        }
    return found


def show(metrics: dict) -> None:
    print(
        "AP held out  ",
        {k: v["mean"] for k, v in metrics["ranking"].items()},
        "without labels",
        metrics["ranking_without_labels"],
    )
    for name, found in metrics["test_sets"].items():
        print(name, {k: v for k, v in found.items() if k != "posts"})
    rates = metrics["ordinary_by_language"]
    worst = sorted(rates.items(), key=lambda item: -item[1]["any_alert"])[:8]
    print(
        "any alert on ordinary posts: worst",
        {k: v["any_alert"] for k, v in worst},
        "mean",
        round(float(np.mean([v["any_alert"] for v in rates.values()])), 5),
    )
    print("fallback", metrics["fallback"])
    for query_id, found in metrics["thresholds"].items():
        print(f"{query_id:28s}", found, metrics["held_out"].get(query_id, ""))
    print("demo", metrics.get("demo"))
