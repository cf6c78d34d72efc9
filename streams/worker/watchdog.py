"""Ends the process when it stands still with work waiting, so that its supervisor starts it again.

Faust consumers are known to stall silently after broker trouble or a rebalance (faust-streaming #175, #640).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

__all__ = ["Partition", "STALLED", "Watchdog"]

Partition = tuple[str, int]
LOOK_S = 5.0  # it is asked every second; longer between two looks and the process itself did not run
WAITS = 5  # times the limit that a partition may wait for others of its topic: a backlog is read one after the other
STALLED = 70  # exit status (EX_SOFTWARE): the supervisor should start the worker again


@dataclass
class Watchdog:
    """Pure: told positions and ends, says which partitions have stood still with lag for `stall_s` seconds.

    Seconds in which it looked: a process that was paused, or a machine that slept, has not stood still meanwhile.
    """

    stall_s: float
    _since: dict[Partition, tuple[tuple[int, int], float]] = field(default_factory=dict)
    _turns: dict[str, tuple[int, float]] = field(default_factory=dict)  # topic → calls returned, since when so many
    _clock_s: float = 0.0
    _last_s: float | None = None
    standing_s: float = 0.0  # how long, by the last look, one of them has stood still with work waiting for it alone

    def stalled(
        self,
        positions: Mapping[Partition, int],
        ends: Mapping[Partition, int],
        now: float,
        returned: Mapping[Partition, int] = MappingProxyType({}),
        excused: bool = False,
        turns: Mapping[str, int] = MappingProxyType({}),
    ) -> list[Partition]:
        """positions, ends: next offset to process and end of each assigned partition; now: monotonic seconds.

        returned: calls that returned, of partitions whose records are in hand: a batch of costly records is no stall.
        turns: calls that returned for the agent of each topic, whatever partition it had in hand: others wait.
        excused: what the worker waits for is away, and a new worker would wait for it too.
        """
        self._clock_s += min(now - (now if self._last_s is None else self._last_s), LOOK_S)
        self._last_s = now
        self._since = {p: v for p, v in self._since.items() if p in positions}
        for topic, calls in turns.items():
            if self._turns.get(topic, (-1, 0.0))[0] != calls:
                self._turns[topic] = calls, self._clock_s
        found, self.standing_s = [], 0.0
        for part, position in positions.items():
            done = position, returned.get(part, 0)
            last, since = self._since.get(part, ((-1, -1), 0.0))
            if done != last or ends.get(part, 0) <= position or excused:
                self._since[part] = (done, self._clock_s)
            else:
                stands_s = self._clock_s - max(since, self._turns.get(part[0], (0, 0.0))[1])
                self.standing_s = max(self.standing_s, stands_s)
                if stands_s >= self.stall_s or self._clock_s - since >= WAITS * self.stall_s:
                    found.append(part)
        return found
