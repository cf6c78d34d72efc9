"""Two encoder versions over the same posts: which alerts would be gained and which lost. Blocking: both encode.

A post has one alert, under its first reading, as workers give it: filters are asked, and of a need and an offer the
likelier counts. Bars that follow the stream (models/bars.py) are not laid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct

from models.encoders.ready import Ready
from models.records import Frame, Post, account_of

__all__ = ["Change", "Diff", "at_the_end", "diff_versions"]

BLOCK = 512  # posts encoded at once


class Change(Struct, frozen=True, omit_defaults=True):
    """One alert that only one of the two versions gives, or both under another query."""

    post_id: str
    lang: str
    text: str
    query_id: str  # under which it alerts; where both do, B's
    score_a: float
    threshold_a: float
    score_b: float
    threshold_b: float
    instead_of: str = ""  # where both alert: A's query


class Tally(Struct):
    """Of one language, or of all. Everything but `posts` counts posts that alert."""

    posts: int = 0
    alerts_a: int = 0
    alerts_b: int = 0
    gained: int = 0
    lost: int = 0
    moved: int = 0  # alert in both, under another query

    @property
    def kept(self) -> int:
        return self.alerts_a - self.lost


class Diff(Struct, frozen=True):
    """What changes for people if B takes A's place."""

    a: str
    b: str
    total: Tally
    by_language: dict[str, Tally]
    gained: list[Change]
    lost: list[Change]
    moved: list[Change]


def diff_versions(posts: Iterable[Post], a: Ready, b: Ready) -> Diff:
    """Alerts of both versions over the posts, each with its own query vectors, background and calibration.

    Both must have been made ready with the same queries. Gained and lost come biggest change first.
    """
    total, by_language = Tally(), {}
    changes: dict[str, list[Change]] = {"gained": [], "lost": [], "moved": []}
    for block in _blocks(posts):
        (scores_a, first_a), (scores_b, first_b) = (_alerts(block, ready) for ready in (a, b))
        for i, post in enumerate(block):
            one, other = first_a.get(post.id, ""), first_b.get(post.id, "")
            how = "" if one == other else "gained" if not one else "lost" if not other else "moved"
            for tally in (total, by_language.setdefault(post.lang, Tally())):
                tally.posts += 1
                tally.alerts_a += bool(one)
                tally.alerts_b += bool(other)
                if how:
                    setattr(tally, how, getattr(tally, how) + 1)
            if how:
                q = a.matcher.place[other or one]
                change = Change(
                    post.id,
                    post.lang,
                    post.text,
                    other or one,
                    round(float(scores_a[i, q]), 4),
                    round(a.matcher.thresholds[q].alert, 4),
                    round(float(scores_b[i, q]), 4),
                    round(b.matcher.thresholds[q].alert, 4),
                    one if how == "moved" else "",
                )
                changes[how].append(change)

    def size(change: Change) -> tuple:
        return -abs((change.score_b - change.threshold_b) - (change.score_a - change.threshold_a)), change.post_id

    return Diff(a.name, b.name, total, by_language, **{how: sorted(some, key=size) for how, some in changes.items()})


def _alerts(posts: list[Post], ready: Ready) -> tuple[np.ndarray, dict[str, str]]:
    """(scores: (posts, queries); post id → the query it alerts under, of those that alert)."""
    vectors = ready.encoder.encode([post.text for post in posts])
    found = ready.matcher.match([post.id for post in posts], vectors, ready.encoder.version, posts)
    first: dict[str, str] = {}
    for match in found:
        if match.level == "alert":
            first.setdefault(match.post_id, match.query_id)
    return ready.matcher.scores(vectors), first


def _blocks(posts: Iterable[Post]) -> Iterator[list[Post]]:
    block: list[Post] = []
    for post in posts:
        block.append(post)
        if len(block) == BLOCK:
            yield block
            block = []
    if block:
        yield block


def at_the_end(frames: Iterable[Frame]) -> list[Post]:
    """Of each post its last text; deleted ones are gone, and those of deleted accounts."""
    posts: dict[str, Post] = {}
    of: dict[str, set[str]] = {}  # account → posts
    for frame in frames:
        for post in frame.posts:
            posts[post.id] = post
            of.setdefault(account_of(post.id), set()).add(post.id)
        for deletion in frame.deletions:
            for gone in of.pop(deletion.id, {deletion.id}):
                posts.pop(gone, None)
    return list(posts.values())
