"""Two encoder versions over the same posts: which alerts would be gained and which lost. Blocking: both encode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct

from models.encoders.ready import Ready
from models.records import Frame, Post

__all__ = ["Change", "Diff", "diff_versions"]

BLOCK = 512  # posts encoded at once


class Change(Struct, frozen=True):
    """One alert that only one of the two versions gives."""

    post_id: str
    lang: str
    text: str
    query_id: str
    score_a: float
    threshold_a: float
    score_b: float
    threshold_b: float


class Tally(Struct):
    """Of one language, or of all."""

    posts: int = 0
    alerts_a: int = 0
    alerts_b: int = 0
    gained: int = 0
    lost: int = 0

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


def diff_versions(posts: Iterable[Post], a: Ready, b: Ready) -> Diff:
    """Alerts of both versions over the posts, each with its own query vectors, background and calibration.

    Both must have been made ready with the same queries. Gained and lost come biggest change first.
    """
    total, by_language = Tally(), {}
    gained: list[Change] = []
    lost: list[Change] = []
    for block in _blocks(posts):
        (scores_a, over_a), (scores_b, over_b) = (_alerts(block, ready) for ready in (a, b))
        for i, post in enumerate(block):
            mine = by_language.setdefault(post.lang, Tally())
            for tally in (total, mine):
                tally.posts += 1
                tally.alerts_a += int(over_a[i].sum())
                tally.alerts_b += int(over_b[i].sum())
                tally.gained += int((over_b[i] & ~over_a[i]).sum())
                tally.lost += int((over_a[i] & ~over_b[i]).sum())
            for q in np.flatnonzero(over_a[i] != over_b[i]):
                change = Change(
                    post.id,
                    post.lang,
                    post.text,
                    a.matcher.queries[q].id,
                    round(float(scores_a[i, q]), 4),
                    round(a.matcher.thresholds[q].alert, 4),
                    round(float(scores_b[i, q]), 4),
                    round(b.matcher.thresholds[q].alert, 4),
                )
                (gained if over_b[i, q] else lost).append(change)

    def size(change: Change) -> tuple:
        return -abs((change.score_b - change.threshold_b) - (change.score_a - change.threshold_a)), change.post_id

    return Diff(a.name, b.name, total, by_language, sorted(gained, key=size), sorted(lost, key=size))


def _alerts(posts: list[Post], ready: Ready) -> tuple[np.ndarray, np.ndarray]:
    """(scores, is it an alert), both (posts, queries)."""
    scores = ready.matcher.scores(ready.encoder.encode([p.text for p in posts]))
    return scores, scores >= np.array([t.alert for t in ready.matcher.thresholds], np.float32)


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
    """Of each post its last text; deleted ones are gone."""
    posts: dict[str, Post] = {}
    for frame in frames:
        posts.update({p.id: p for p in frame.posts})
        for deletion in frame.deletions:
            posts.pop(deletion.id, None)
    return list(posts.values())
