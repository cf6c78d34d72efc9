"""What is told of a reading: its match, and the numbers that add up to its log-odds (models/explanation.py)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.directions import by_value
from models.explanation import rounded
from models.pairs import Pairs
from models.records import PRIORITIES, Match, Post
from models.standing import StandingQueries

__all__ = ["tell", "terms_of"]


def tell(
    matcher: StandingQueries, post_ids: Sequence[str], vectors: np.ndarray, posts: Sequence[Post] | None, read: Pairs
) -> list[Match]:
    """The readings as matches, with all that explains them. vectors: (n, d), of the posts."""
    own, head = vectors[read.rows], matcher.head
    terms = terms_of(matcher, own, read.shipped, read.which)
    if read.added.any():
        _say_taught(matcher, terms, read.added, terms_of(matcher, own, read.scores, read.which))
    if head and posts:
        spoken = head.spoken([posts[row].lang for row in read.rows]) * matcher.taught_aid[read.which]
        for told, by in zip(terms, spoken, strict=True):
            if by:
                told["language"] = float(by)
    for told in terms:
        if not told.get("several", 1.0):
            del told["several"]
    urgent = head.urgent(own) if head else None
    priorities = head.priorities(own) if head else np.zeros((len(own), 0), np.float32)
    found = []
    columns = read.rows, read.which, read.scores, read.likely, matcher.levels.alert[read.which]
    for at, (row, i, score, likely, bar) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        query, lang = matcher.queries[i], posts[row].lang if posts else ""
        nearest = matcher.directions.nearest(i, own[at], lang, matcher.config.reader_language)
        first = int(priorities[at].argmax()) if priorities.shape[1] else None
        made = Match(
            post_id=post_ids[row],
            query_id=query.id,
            query_version=query.version,
            level="alert" if score >= bar else "suggestion",
            score=round(score, 4),
            threshold=round(bar, 4),
            probability=round(likely, 3),
            nearest=nearest.text,
            nearest_lang=nearest.lang,
            nearest_cosine=round(nearest.cosine, 4),
            nearest_told=nearest.told,
            nearest_told_lang=nearest.told_lang,
            urgent=None if urgent is None else round(float(urgent[at]), 3),
            priority=None if first is None else PRIORITIES[first],
            priority_probability=None if first is None else round(float(priorities[at, first]), 3),
            terms=rounded(terms[at]),
        )
        found.append(made)
    return found


def terms_of(
    matcher: StandingQueries, vectors: np.ndarray, scores: np.ndarray, which: Sequence[int] | np.ndarray
) -> list[dict[str, float]]:
    """For each row and its query (an index) what adds up to the log-odds of the reading.

    vectors: (m, d). scores: (m,), what the matcher gave for them and their query. which: (m,).
    """
    head, which = matcher.head, np.asarray(which, np.int64)
    if head is None:
        return matcher.levels.terms(scores, which)
    told: list[dict[str, float]] = [{} for _ in vectors]
    log_probabilities = head.log_probabilities(vectors)
    for i, at in by_value(which):
        directed = matcher.directed(vectors[at], np.array([i]))
        found = log_probabilities[at]
        (read,) = head.terms([matcher.queries[i]], vectors[at], found, directed, matcher.among[[i]])
        of = matcher.own_sentences.terms(head, i, vectors[at], found, read)
        for place, *values in zip(at.tolist(), *(column.tolist() for column in of.values()), strict=True):
            told[place] = dict(zip(of, values, strict=True))
    return told


def _say_taught(
    matcher: StandingQueries, terms: list[dict[str, float]], added: np.ndarray, moved: list[dict[str, float]]
) -> None:
    """Add the term of what people taught: `added`, or without a head what the moved score makes of it."""
    for told, by, after in zip(terms, added, moved, strict=True):
        if by:
            told["taught"] = float(by) if matcher.head else sum(after.values()) - sum(told.values())
