"""What the agents of a worker have in hand, and how much of their computing has returned: what the watchdog counts."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextvars import ContextVar

from streams.worker.watchdog import Partition

__all__ = ["Work"]

_AGENT: ContextVar[str | None] = ContextVar("agent", default=None)


class Work:
    """One per worker, used on its event loop."""

    def __init__(self) -> None:
        self._in_hand: dict[str, frozenset[Partition]] = {}
        self._returned: Counter[str] = Counter()
        self._reads: dict[str, str] = {}  # topic → the agent that reads it
        self._begun: dict[object, float] = {}  # calls that run in a thread now → monotonic seconds

    @property
    def computing(self) -> int:
        """Calls that run in a thread now."""
        return len(self._begun)

    def longest_s(self, now: float) -> float:
        """How long the oldest of them runs; 0 where none does. now: monotonic seconds."""
        return max((now - begun for begun in self._begun.values()), default=0.0)

    @contextlib.contextmanager
    def on(self, agent: str, partitions: Iterable[Partition]) -> Iterator[None]:
        """An agent works on records of these partitions."""
        before = _AGENT.set(agent)
        self._in_hand[agent] = frozenset(partitions)
        self._reads.update((topic, agent) for topic, _ in self._in_hand[agent])
        try:
            yield
        finally:
            self._in_hand.pop(agent, None)
            _AGENT.reset(before)

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """A call in a thread, counted for its agent when it returns."""
        this = object()
        self._begun[this] = time.monotonic()
        try:
            yield
        finally:
            del self._begun[this]
            if agent := _AGENT.get():
                self._returned[agent] += 1

    def returned(self) -> dict[Partition, int]:
        """Calls returned, for each partition that somebody has records of in hand."""
        return {part: self._returned[agent] for agent, parts in self._in_hand.items() for part in parts}

    def turns(self) -> dict[str, int]:
        """Calls returned for the agent of each topic."""
        return {topic: self._returned[agent] for topic, agent in self._reads.items()}
