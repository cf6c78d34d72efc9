"""What is asked of every live cluster now and then, in arrays: when it was touched, whether it was told, whether it
bursts. To walk over thousands of clusters for it would be a cost a post that grows with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from models.clusters.cluster import Cluster

__all__ = ["Ages"]

_ROW = np.dtype([("post", "i8"), ("at", "f8"), ("many", "?"), ("told", "?"), ("bursts", "?")])


class Ages:
    """A row for each slot, as it was when last noted; rows of slots that ended mean nothing."""

    def __init__(self) -> None:
        self._rows = np.zeros(0, _ROW)

    def note(self, slots: Iterable[int], clusters: Sequence[Cluster | None]) -> None:
        """These slots changed. clusters: by slot."""
        if len(clusters) > len(self._rows):
            more = max(len(clusters), len(self._rows) * 3 // 2) - len(self._rows)
            self._rows = np.concatenate([self._rows, np.zeros(more, _ROW)])
        found = [(slot, c) for slot in slots if (c := clusters[slot]) is not None]
        if found:
            rows = [(c.touched_post, c.touched_s, c.posts > 1, c.version > 0, c.burst_level > 0) for _, c in found]
            self._rows[[slot for slot, _ in found]] = np.array(rows, _ROW)

    def move(self, keep: Sequence[int]) -> None:
        """Gaps were closed: keep[new] is the old slot."""
        self._rows[: len(keep)] = self._rows[list(keep)]

    def told(self, live: np.ndarray) -> np.ndarray:
        """(size,) bool: live slots that were told."""
        told: np.ndarray = live & self._rows["told"][: len(live)]
        return told

    def quiet(
        self, live: np.ndarray, posts: int, clock: float, many: tuple[int, float], single: tuple[int, float]
    ) -> list[int]:
        """Live slots that got nothing for more than so many posts and at least so many seconds.

        live: (size,) bool. many, single: (posts, seconds) for clusters of several posts and of one.
        """
        rows = self._rows[: len(live)]
        least, seconds = (np.where(rows["many"], m, s) for m, s in zip(many, single, strict=True))
        ended: list[int] = np.flatnonzero(
            live & (posts - rows["post"] > least) & (clock - rows["at"] >= seconds)
        ).tolist()
        return ended

    def stalest(self, live: np.ndarray, born: np.ndarray, most: int) -> list[int]:
        """At most so many live slots: those that were never told first, then single posts, then the longest quiet, then
        the oldest. born: by slot."""
        slots = np.flatnonzero(live)
        rows = self._rows[slots]
        order = np.lexsort((born[slots], rows["post"], rows["many"], rows["told"]))
        found: list[int] = slots[order[:most]].tolist()
        return found

    def bursting(self, live: np.ndarray) -> list[int]:
        """Live slots that were last told as bursting."""
        found: list[int] = np.flatnonzero(live & self._rows["bursts"][: len(live)]).tolist()
        return found
