"""What viewers are told, in batches, the newest of which are kept for those that come back."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from models.records import Alert, ClusterEvent

__all__ = ["Batch", "Batches"]


class Batch(Struct, frozen=True):
    """What came within one flush, by id, or a call to start over."""

    number: int
    alerts: dict[str, Alert] = {}
    clusters: dict[str, ClusterEvent] = {}
    resync: bool = False


class Batches:
    """The newest batches, for viewers that come back. Each alert and cluster stands in the last one that tells of it:
    who comes back is not told what was taken back since, and it is in nobody's memory."""

    def __init__(self, most: int) -> None:
        self._batches: dict[int, Batch] = {}  # by number, oldest first
        self._most = most
        self._last: dict[str, int] = {}  # id of an alert or a cluster → number of its batch

    def append(self, batch: Batch) -> None:
        """Take the newest; the oldest may go."""
        self._batches[batch.number] = batch
        self._last |= dict.fromkeys((*batch.alerts, *batch.clusters), batch.number)
        while len(self._batches) > self._most:
            oldest = self._batches.pop(next(iter(self._batches)))
            for told in (*oldest.alerts, *oldest.clusters):
                del self._last[told]

    def forget(self, alerts: Iterable[str], clusters: Iterable[str]) -> None:
        """These are told anew: what was told of them goes."""
        for told in (*alerts, *clusters):
            if (number := self._last.pop(told, None)) is not None:
                self._batches[number].alerts.pop(told, None)
                self._batches[number].clusters.pop(told, None)

    def first(self, none: int) -> int:
        """The oldest's number; `none` if there is none."""
        return next(iter(self._batches), none)

    def after(self, number: int) -> list[Batch]:
        """Those after this one, in order."""
        return [batch for batch in self._batches.values() if batch.number > number]
