"""How a long map is saved at the cost of what changed in it: as numbered segments, of which a save writes the last.

A segment says which keys went and which were put, in the order in which it happened. Read one after another they give
the map again. Entries leave a bounded map oldest first, so the first segment can be dropped as soon as the oldest
entry is none of its own: everything in it has died. A key that is taken out before its time leaves the segments that
held it, which are written again: what a person took back stays nowhere.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

__all__ = ["Ledger", "Segment", "Extent", "Trail", "cut"]

V = TypeVar("V")

FULL = 256  # entries: the last segment is written again with every save until it holds so many


class Segment(Struct, Generic[V], array_like=True):
    """What happened to a map for a while: these keys went, then those were put."""

    gone: list[str]
    put: dict[str, V]


class Extent(Struct, array_like=True):
    """Which segments make up a map: `first` up to, not including, `end`; and how many entries it has."""

    first: int
    end: int
    length: int


class Trail:
    """The segments of one map, named `name/NUMBER`. It notes nothing before the first save: nobody may ever save.

    ages: entries leave oldest first; else segments are all kept, and written anew when they outgrow the map.
    """

    def __init__(self, name: str, ages: bool = True, full: int = FULL) -> None:
        self.name, self.ages, self.full = name, ages, full
        self.stop()

    def stop(self) -> None:
        """What was saved counts no more: the next save is of everything."""
        self.on, self.number = False, 0  # the number of the last segment, which is still open
        self.closed: deque[dict[str, None]] = deque()  # keys of each segment before it, in order
        self._thinned: set[int] = set()  # numbers of those that a key was taken out of
        self._begin()

    def _begin(self) -> None:
        self.put: dict[str, None] = {}  # in the open segment; their values are read when it is saved
        self.gone: dict[str, None] = {}
        self._changed = self._anew = False

    def note(self, key: str) -> None:
        """A key was put, and is the newest now."""
        self.put.pop(key, None)
        self.put[key] = None
        self._changed = True

    def touch(self, keys: Iterable[str]) -> None:
        """The values of these keys changed; those that are new came in this order."""
        self.put.update(dict.fromkeys(keys))
        self._changed = True

    def drop(self, key: str) -> None:
        """A key went other than by being the oldest, or is to leave the segments that still held it after that."""
        if key in self.put:
            del self.put[key]
            self._changed = True
        for number, keys in enumerate(self.closed, self.number - len(self.closed)):
            if key in keys:
                del keys[key]
                self._thinned.add(number)

    def renew(self) -> None:
        """Most of the map changed: write all of it with the next save."""
        self._anew = True

    def save(self, entries: Mapping[str, V]) -> tuple[dict[str, bytes], list[str]]:
        """What changed in this map since the last save: segments to write, and names of those to forget."""
        if not self.ages and len(self.closed) * self.full > 2 * len(entries) + self.full:
            self._anew = True
        if self._anew or not self.on:
            old = [f"{self.name}/{n}" for n in range(self.number - len(self.closed), self.number + 1)]
            written = self._all(entries)
            return written, old
        first = self.number - len(self.closed)
        written = {f"{self.name}/{n}": self._packed(self.closed[n - first], entries) for n in self._thinned}
        self._thinned.clear()
        oldest, dead = next(iter(entries), None), []
        if self._changed:
            values = {key: entries[key] for key in self.put if key in entries}
            if self.put or self.gone:
                written[f"{self.name}/{self.number}"] = msgspec.msgpack.encode(Segment(list(self.gone), values))
            else:  # all that it held was taken out
                dead.append(f"{self.name}/{self.number}")
            self._changed = False
            if len(self.put) + len(self.gone) >= self.full:
                self._close()
        while self.ages and self.closed and oldest not in self.closed[0]:
            dead.append(f"{self.name}/{self.number - len(self.closed)}")
            written.pop(dead[-1], None)
            self.closed.popleft()
        return written, dead

    def _all(self, entries: Mapping[str, V]) -> dict[str, bytes]:
        """Everything, in segments that follow those there were; notes from here on what changes."""
        written = {}
        if self.on:
            self.number += 1  # the open one was saved under its number
        self.closed.clear()
        self._thinned.clear()
        self._begin()
        for segment in cut(entries, self.full):
            written[f"{self.name}/{self.number}"] = msgspec.msgpack.encode(segment)
            self.put = dict.fromkeys(segment.put)
            self._close()
        self.on = True
        return written

    @staticmethod
    def _packed(keys: Iterable[str], entries: Mapping[str, V]) -> bytes:
        return msgspec.msgpack.encode(Segment([], {key: entries[key] for key in keys if key in entries}))

    def span(self, length: int) -> Extent:
        """Right after a save of so many entries."""
        return Extent(self.number - len(self.closed), self.number + bool(self.put or self.gone), length)

    def resume(self, span: Extent, segments: Iterable[Segment[V]]) -> None:
        """Go on from what was saved. segments: all of the span, in order."""
        self.on, self.number = True, span.end
        self.closed = deque(dict.fromkeys(segment.put) for segment in segments)
        self._thinned.clear()
        self._begin()

    def _close(self) -> None:
        self.closed.append(dict.fromkeys(self.put))
        self.put, self.gone = {}, {}
        self.number += 1


def cut(entries: Mapping[str, V], full: int = FULL) -> Iterable[Segment[V]]:
    """A whole map as segments."""
    items = iter(entries.items())
    while some := dict(islice(items, full)):
        yield Segment([], some)


class Ledger(OrderedDict[str, V]):
    """A map in the order in which keys were last put; it keeps the newest `keep` of them."""

    def __init__(self, name: str, keep: int) -> None:
        super().__init__()
        self.keep, self.trail = keep, Trail(name)

    def put(self, key: str, value: V) -> Sequence[tuple[str, V]]:
        """Store as the newest entry and drop the oldest beyond `keep`. Returns those."""
        if key in self:
            del self[key]
        self[key] = value
        if self.trail.on:
            self.trail.note(key)
        if len(self) <= self.keep:
            return ()
        return [self.popitem(last=False) for _ in range(len(self) - self.keep)]

    def forget(self, key: str) -> V | None:
        """Take an entry out; None if it was not there. One that went as the oldest leaves its saved segment too."""
        if self.trail.on:
            self.trail.drop(key)
        return self.pop(key, None)

    def load(self, span: Extent, segments: Sequence[Segment[V]]) -> None:
        """Become what was saved. The oldest went as newer ones came: what is too much is at the front."""
        for segment in segments:
            for key in segment.gone:
                self.pop(key, None)
            for key, value in segment.put.items():
                self.pop(key, None)
                self[key] = value
        while len(self) > span.length:
            self.popitem(last=False)
        self.trail.resume(span, segments)
