"""Which pairs of clusters may have come near enough to merge since they were last compared.

Average similarity is a mean over pairs of posts. When post x joins cluster a, that of a with any other cluster c moves
towards the mean similarity of x with c, and a merge of a and b gives a value between those of (a, c) and (b, c). So two
clusters that were further apart than a threshold can only have passed it if some post since was, when it came, at
least that near to the other one. Placing a post computes just these similarities: no two clusters need be compared
again for lack of knowing. Taking a post out can bring its cluster nearer to any other: such a cluster is `open`, to
be compared with all.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

__all__ = ["Near"]

SHIFT = 32  # a pair as one integer: the slot that changed, then the other one
OTHER = (1 << SHIFT) - 1


class Near:
    """Pairs and open slots since the last merge at one threshold."""

    def __init__(self, open_slots: Iterable[int] = ()) -> None:
        self.open = set(open_slots)
        self._keys: list[np.ndarray] = []
        self._heirs: dict[int, int] = {}  # absorbed slot → the one it went into

    def __bool__(self) -> bool:
        """Is there anything to compare?"""
        return bool(self.open or self._keys)

    def add(self, slots: np.ndarray, others: np.ndarray) -> None:
        """Note that posts put into `slots` were near to `others`; to their own, by the nature of it."""
        if (apart := slots != others).any():
            self._keys.append((slots[apart] << SHIFT) | others[apart])

    def absorb(self, gone: int, into: int) -> None:
        self._heirs[gone] = into
        if gone in self.open:
            self.open.discard(gone)
            self.open.add(into)

    def drop(self, slot: int) -> None:
        self.open.discard(slot)

    def pairs(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """(n,), (n,): each pair once, by its first slot, after what was absorbed since; it may have died."""
        if not self._keys:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        keys = np.concatenate(self._keys)
        if self._heirs:
            heirs = np.arange(size)
            heirs[list(self._heirs)] = list(self._heirs.values())
            while not np.array_equal(heirs, heirs[heirs]):
                heirs = heirs[heirs]
            keys = (heirs[keys >> SHIFT] << SHIFT) | heirs[keys & OTHER]
        keys = np.unique(keys)
        slots, others = keys >> SHIFT, keys & OTHER
        apart = slots != others
        return slots[apart], others[apart]

    def move(self, to: np.ndarray) -> None:
        """Slots got new numbers: to[old] = new, or −1 where it is gone."""
        slots, others = (to[side] for side in self.pairs(len(to)))
        kept = (slots >= 0) & (others >= 0)
        self._keys, self._heirs = [], {}
        self.add(slots[kept], others[kept])
        self.open = {int(to[slot]) for slot in self.open}

    def clear(self) -> None:
        self.open.clear()
        self._keys.clear()
        self._heirs.clear()
