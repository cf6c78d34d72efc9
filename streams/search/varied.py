"""Search results that no text and no account fills: a thousand copies of a sentence are one answer, not all ten.

Pure: the search is an argument.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice

from models.records import account_of
from models.search import Found

__all__ = ["ALIKE", "varied"]

ALIKE = 3  # results with one text (digits, signs and case aside), or of one account
MOST_ASKED = 4_096  # nearest posts looked through for others than the copies


def varied(nearest: Callable[[int], Sequence[Found]], k: int) -> list[Found]:
    """k posts, best first, at most ALIKE alike while there are others; those left out fill what stays free.

    nearest: the n nearest posts, best first; fewer than n where there are no more.
    """
    asked = k
    while True:
        found = nearest(asked)
        apart, alike = _apart(found)
        if len(apart) >= k or len(found) < asked or asked >= MOST_ASKED:
            break
        asked = min(MOST_ASKED, 4 * asked)
    apart = apart[:k]
    filled = apart + list(islice(alike, k - len(apart)))
    return sorted(filled, key=lambda one: -one.score)


def _apart(found: Sequence[Found]) -> tuple[list[Found], list[Found]]:
    seen: Counter[tuple[str, str]] = Counter()
    apart: list[Found] = []
    alike: list[Found] = []
    for one in found:
        crowds = _crowds_of(one)
        if any(seen[crowd] >= ALIKE for crowd in crowds):
            alike.append(one)
            continue
        seen.update(crowds)
        apart.append(one)
    return apart, alike


def _crowds_of(one: Found) -> list[tuple[str, str]]:
    letters = "".join(filter(str.isalpha, one.post.text.casefold()))
    who = one.post.author or account_of(one.post.id)
    return [("text", letters or one.post.id), *([] if who == one.post.id else [("account", who)])]
