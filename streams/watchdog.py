"""Ends the process when it stands still with work waiting, so that its supervisor starts it again.

Faust consumers are known to stall silently after broker trouble or a rebalance (faust-streaming #175, #640).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Partition = tuple[str, int]
STALLED = 70  # exit status (EX_SOFTWARE): the supervisor should start the worker again


@dataclass
class Watchdog:
    """Pure: told positions and ends, says which partitions have stood still with lag for `stall_s` seconds."""

    stall_s: float
    _since: dict[Partition, tuple[int, float]] = field(default_factory=dict)

    def stalled(self, positions: Mapping[Partition, int], ends: Mapping[Partition, int], now: float) -> list[Partition]:
        """positions, ends: next offset to process and end of each assigned partition; now: monotonic seconds."""
        self._since = {p: v for p, v in self._since.items() if p in positions}
        found = []
        for part, position in positions.items():
            last, since = self._since.get(part, (-1, now))
            if position != last or ends.get(part, 0) <= position:
                self._since[part] = (position, now)
            elif now - since >= self.stall_s:
                found.append(part)
        return found
