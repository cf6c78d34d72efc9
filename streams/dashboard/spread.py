"""Which of many alerts a page shows: no crowd takes it all, and who came first is not hidden by later ones. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from models.records import Alert
from streams.dashboard.crowds import crowds_of_page

__all__ = ["Kept", "spread"]

Kept = tuple[Alert, str, int]  # an alert, the folded text of its post, its rank


def spread(newest_first: Iterable[Kept], most: int, of_a_crowd: int) -> tuple[list[Kept], list[Kept]]:
    """(at most `most`, newest first; those newer than the last of them that gave way). Nobody gives way to nobody: with
    room for all, all are there.

    A quarter of a crowd's places is for its oldest, of those as new as the page's last: near copies of a call are newer
    than the call. No older, or a page that goes on below that would miss what is between.
    """
    chosen, left = _fill(newest_first, most, of_a_crowd)
    last = min((one[2] for one in chosen), default=0)
    between = [one for one in left if one[2] > last]
    if not between:
        return chosen, left
    reach = sorted(chosen + between, key=lambda one: -one[2])
    seen: Counter[str] = Counter()
    newest = [one for one in reach if _takes(one, seen, of_a_crowd - of_a_crowd // 4)][:most]
    taken = {one[2] for one in newest}
    oldest = [one for one in reversed(reach) if one[2] not in taken and _takes(one, seen, of_a_crowd)]
    taken |= {one[2] for one in oldest[: most - len(newest)]}
    spare = [one[2] for one in reach if one[2] not in taken]
    taken |= set(spare[: most - len(taken)])
    return [one for one in reach if one[2] in taken], [one for one in left + chosen if one[2] not in taken]


def _fill(newest_first: Iterable[Kept], most: int, of_a_crowd: int) -> tuple[list[Kept], list[Kept]]:
    """(the newest, of each crowd its share, then any while there are places; those that gave way)."""
    chosen: list[Kept] = []
    left: list[Kept] = []
    seen: Counter[str] = Counter()
    for one in newest_first:
        if len(chosen) == most:
            break
        (chosen if _takes(one, seen, of_a_crowd) else left).append(one)
    free = most - len(chosen)
    return sorted(chosen + left[:free], key=lambda one: -one[2]), left[free:]


def _takes(one: Kept, seen: Counter[str], of_a_crowd: int) -> bool:
    crowds = crowds_of_page(one[0])
    if any(seen[crowd] >= of_a_crowd for crowd in crowds):
        return False
    seen.update(crowds)
    return True
