"""What is read in context first while posts come faster than the reader reads. Pure: lag, scores and vectors are given.

Within `within_s` of lag everything is read as it comes. Each further `within_s` halves the share that is, down to
`LEAST`: the lag then settles where what is read is what can be read (at ten times the reader's speed after 4.3 ×
`within_s`), and a fill of a million posts passes at the speed of the skim, so the newest posts wait seconds. What is
not read now takes a turn; nothing is left out.

Who is read now:

- Every group (a language from a source) has a claim that grows with the root of its posts, and keeps what it could not
  use for the next frames. A source that sends a hundred times as much gets ten times as much; none gets nothing.
- Within a group the highest score of the skim comes first, of equals the newest. An author's posts beyond `EACH` lately
  (of the last posts read, and in the frame) come after those of all others, who have their next `EACH` then: however
  many different cries one account invents, it takes no more of its group than anybody else. What says again what was
  read `TOLD` times lately (repeats by others, clusters that are answered) comes last.

Turns: 1 = the better half of what a group has left, 2 = the other half, 3 = what was told. They are taken up in the
proportion of `SHARES`, so none waits for ever for the turns before it.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from math import sqrt

import numpy as np
from msgspec import Struct

from models.records import PutByReason

__all__ = ["SHARES", "TURNS", "Place", "Skimmed", "Triage", "Turns", "share_at"]

LEAST = 1 / 64  # of the posts are read in context however far behind; 300 posts/s read let 19,000 pass
SHARES = {1: 4, 2: 2, 3: 1}  # turn → of seven frames taken up, where all three wait
TURNS = len(SHARES)
HALF_LIFE_POSTS = 2_000.0  # of what a group's claim is made of
MOST_CLAIM = 4.0  # posts a group may save up, or have had too many; and all together
MOST_GROUPS = 1_000  # remembered; sources may be anything

EACH = 2  # posts of an author before it is the others' turn: a call for help and what was forgotten in it
TOLD = 3  # times that something was read before it counts as told: one copy may be somebody else's own call
ALIKE = 0.9  # cosine of the skim: "house 1" and "house 217" have .94, two ways to ask for water .32
REMEMBERED = 1_024  # posts read lately: some seconds of a reader

Group = tuple[str, str]  # language, source
Author = tuple[str, str | None]  # source, author


class Skimmed(Struct, frozen=True):
    """A post as the policy sees it."""

    group: Group
    score: float
    at: float  # epoch seconds, when it was seen
    author: str | None = None  # within its source; None = nobody is named, and it is of none but itself


class Place(Struct, frozen=True):
    """Its turn (0 = now), and why it was put by."""

    turn: int
    reason: PutByReason = "order"


def share_at(lag_s: float, within_s: float) -> float:
    """The share of the posts to read in context as they come, 1 down to LEAST."""
    return float(max(LEAST, min(1.0, 2.0 ** ((within_s - lag_s) / within_s)))) if lag_s < 64 * within_s else LEAST


class Triage:
    """Remembers, bounded, what groups are due and what was read lately: a new one orders a little less well."""

    def __init__(self) -> None:
        self._posts: dict[Group, float] = {}  # decayed
        self._claims: dict[Group, float] = {}
        self._due = 0.0  # part of a post that may be read beyond the last frame
        self._read: np.ndarray | None = None  # (≤ REMEMBERED, d), newest last
        self._authors: deque[Author] = deque(maxlen=REMEMBERED)  # of the posts read, newest last

    def divide(self, posts: Sequence[Skimmed], vectors: np.ndarray, share: float) -> list[Place]:
        """A place for each post. vectors: (n, d) float32 unit rows of the skim."""
        told = self._told(vectors)
        best = sorted(range(len(posts)), key=lambda i: (told[i], -posts[i].score, -posts[i].at))
        goes = self._goes(posts, best)
        order: dict[Group, list[int]] = defaultdict(list)
        for i in sorted(best, key=lambda i: (told[i], goes[i])):
            order[posts[i].group].append(i)
        now = self._choose(order, share)
        self._remember(vectors[sorted(now)])
        self._authors.extend(_author(posts[i]) for i in sorted(now) if posts[i].author is not None)
        places = [Place(0)] * len(posts)
        for members in order.values():
            left = [i for i in members if i not in now and not told[i]]
            for rank, i in enumerate(left):
                places[i] = Place(1 if 2 * rank < len(left) else 2)
            for i in members:
                if i not in now and told[i]:
                    places[i] = Place(3, "told")
        return places

    def _goes(self, posts: Sequence[Skimmed], best: Sequence[int]) -> list[int]:
        """How often its author had EACH posts lately, before each post. best: the posts, each author's best first."""
        had = Counter(self._authors)
        goes = [0] * len(posts)
        for i in best:
            if posts[i].author is not None:
                author = _author(posts[i])
                goes[i] = had[author] // EACH
                had[author] += 1
        return goes

    def _choose(self, order: dict[Group, list[int]], share: float) -> set[int]:
        """Those to read now: one after the other, the next of the group with the greatest claim."""
        n = sum(map(len, order.values()))
        decay = 0.5 ** (n / HALF_LIFE_POSTS)
        self._posts = {group: count * decay for group, count in self._posts.items()}
        for group, members in order.items():
            self._posts[group] = self._posts.get(group, 0.0) + len(members)
        self._forget_groups()
        weights = {group: sqrt(count) for group, count in self._posts.items()}
        total = sum(weights.values())
        claims = dict.fromkeys(order, 0.0)
        claims |= {g: self._claims.get(g, 0.0) + share * n * weight / total for g, weight in weights.items()}
        self._due = share * n + self._due if share < 1 else float(n)
        taken: Counter[Group] = Counter()
        chosen: set[int] = set()
        while len(chosen) < n:
            group = max((g for g in order if taken[g] < len(order[g])), key=lambda g: (claims[g], g))
            if self._due < 1 and (claims[group] < 1 or self._due <= 1 - MOST_CLAIM):
                break  # a claim of one may run ahead of what is due: frames of one post come in any rhythm
            chosen.add(order[group][taken[group]])
            taken[group] += 1
            claims[group] -= 1.0
            self._due -= 1.0
        self._due = min(self._due, 1.0)
        self._claims = {g: min(MOST_CLAIM, max(-MOST_CLAIM, claim)) for g, claim in claims.items()}
        return chosen

    def _forget_groups(self) -> None:
        kept = {g: count for g, count in self._posts.items() if count >= LEAST}
        if len(kept) > MOST_GROUPS:
            kept = dict(sorted(kept.items(), key=lambda item: -item[1])[: MOST_GROUPS // 2])
        self._posts, self._claims = kept, {g: claim for g, claim in self._claims.items() if g in kept}

    def _told(self, vectors: np.ndarray) -> np.ndarray:
        """(n,) bool: says what was read TOLD times lately."""
        if self._read is None or self._read.shape[1] != vectors.shape[1]:
            return np.zeros(len(vectors), bool)
        return np.asarray(np.count_nonzero(vectors @ self._read.T >= ALIKE, axis=1) >= TOLD)

    def _remember(self, vectors: np.ndarray) -> None:
        known = self._read if self._read is not None and self._read.shape[1] == vectors.shape[1] else vectors[:0]
        self._read = np.concatenate([known, vectors])[-REMEMBERED:]


def _author(post: Skimmed) -> Author:
    return post.group[1], post.author


class Turns:
    """Which turn is taken up next, so that each that waits has its share."""

    def __init__(self) -> None:
        self._had = dict.fromkeys(SHARES, 0.0)

    def next_of(self, waiting: Iterable[int]) -> int:
        """One of the turns that wait: the one that had least of its share."""
        turns = sorted(set(waiting))
        turn = min(turns, key=lambda t: (self._had[t] + 1 / SHARES[t], t))
        self._had[turn] += 1 / SHARES[turn]
        least = min(self._had[t] for t in turns)  # who did not wait saves nothing up
        self._had = {t: max(had, least) for t, had in self._had.items()}
        return turn
