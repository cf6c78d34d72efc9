"""Ends the process when it stands still with work waiting, so that its supervisor starts it again.

Faust consumers are known to stall silently after broker trouble or a rebalance (faust-streaming #175, #640).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

__all__ = ["Partition", "STALLED", "Watchdog"]

Partition = tuple[str, int]
Since = tuple[tuple[int, int], float]  # (position, calls returned), since when they are these
LOOK_S = 5.0  # it is asked every second; longer between two looks and the process itself did not run
WAITS = 5  # times the limit that a partition may wait for others of its topic: a backlog is read one after the other
STALLED = 70  # exit status (EX_SOFTWARE): the supervisor should start the worker again


@dataclass
class Watchdog:
    """Pure: told positions and ends, says which partitions have stood still with lag for `stall_s` seconds.

    Seconds in which it looked: a process that was paused, or a machine that slept, has not stood still meanwhile.
    """

    stall_s: float
    _since: dict[Partition, Since] = field(default_factory=dict)  # of what is acknowledged: what it is ended for
    _applied: dict[Partition, Since] = field(default_factory=dict)  # of what is applied: what is told of it
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
        applied: Mapping[Partition, int] = MappingProxyType({}),
    ) -> list[Partition]:
        """positions, ends: next offset to process and end of each assigned partition; now: monotonic seconds.

        returned: calls that returned, of partitions whose records are in hand: a batch of costly records is no stall.
        turns: calls that returned for the agent of each topic, whatever partition it had in hand: others wait.
        excused: what the worker waits for is away, and a new worker would wait for it too.
        applied: next offset after what has had its effects and is acknowledged later: nothing stands still meanwhile,
        but who never acknowledges is ended all the same.
        """
        self._clock_s += min(now - (now if self._last_s is None else self._last_s), LOOK_S)
        self._last_s = now
        for topic, calls in turns.items():
            if self._turns.get(topic, (-1, 0.0))[0] != calls:
                self._turns[topic] = calls, self._clock_s
        done = {part: (position, returned.get(part, 0)) for part, position in positions.items()}
        reached = {part: (max(position, applied.get(part, 0)), calls) for part, (position, calls) in done.items()}
        self._since = self._stand(self._since, done, ends, excused)
        self._applied = self._stand(self._applied, reached, ends, excused)
        found, self.standing_s = [], 0.0
        for part in positions:
            turned = self._turns.get(part[0], (0, 0.0))[1]
            self.standing_s = max(self.standing_s, self._clock_s - max(self._applied[part][1], turned))
            since = self._since[part][1]
            if self._clock_s - max(since, turned) >= self.stall_s or self._clock_s - since >= WAITS * self.stall_s:
                found.append(part)
        return found

    def _stand(
        self,
        before: Mapping[Partition, Since],
        now: Mapping[Partition, tuple[int, int]],
        ends: Mapping[Partition, int],
        excused: bool,
    ) -> dict[Partition, Since]:
        """Since when each has not moved with work waiting: since this moment, where it moved or nothing waits."""
        stands = {
            part
            for part, done in now.items()
            if part in before and before[part][0] == done and ends.get(part, 0) > done[0] and not excused
        }
        return {part: before[part] if part in stands else (done, self._clock_s) for part, done in now.items()}
