"""The numbers on the page. Pure: the time is an argument."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from msgspec import Struct

from models.audit import MergeProposal
from models.records import ClusterEvent
from streams.dashboard.filters import Filter
from streams.dashboard.page_model import AlertPage, Category, OpenCount
from streams.pipeline.outcomes import OUTCOMES
from streams.search.follower import SearchStatus
from streams.view.health import Health
from streams.view.status import WorkerStatus

__all__ = ["COUNTED", "PageData", "Rate", "State", "Stats", "biggest", "encode", "percentiles", "worker_statuses"]

COUNTED = ("read", "accepted", *OUTCOMES)  # what the page is told, of all posts so far
WORKER_FORGOTTEN_S = 3600.0


class ShownWorker(Struct, frozen=True):
    """What a worker said last, and how long ago."""

    name: str
    state: str  # ready | loading | failed | gone
    agents: list[str] = []
    encoder_version: str = ""
    message: str = ""
    silent_s: float = 0.0


class Stats(Struct, frozen=True):
    """Sent every second. Counters are since the live view was made; lag is None while the broker does not answer."""

    at: float
    posts_per_s: float = 0.0
    latency_p50_ms: float | None = None
    latency_p95_ms: float | None = None
    totals: dict[str, int] = {}
    reasons: dict[str, int] = {}
    open: dict[str, OpenCount] = {}
    langs: list[tuple[str, int]] = []
    sources: list[tuple[str, int]] = []
    lag: dict[str, int] | None = None
    workers: list[ShownWorker] = []
    clusters: int = 0
    proposals: list[MergeProposal] = []  # clusters the last audit takes for one, most similar first
    search: SearchStatus | None = None
    repeats: dict[str, int] = {}  # changed since the last time
    problem: str = ""  # why the numbers are old, if they are
    taught: int = 0  # grows when labels change: then /api/taught has news
    health: Health = Health("down", "starting")


class Rate:
    """Posts per second over the last seconds, from a counter that is read now and then."""

    def __init__(self, span_s: float = 5.0) -> None:
        self._span_s = span_s
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, at: float, total: int) -> float:
        """Note the counter; returns the rate. A counter that went back (a reset) starts over.

        at: seconds of a clock that is never put back (monotonic).
        """
        if self._seen and total < self._seen[-1][1]:
            self._seen.clear()
        self._seen.append((at, total))
        while len(self._seen) > 2 and self._seen[1][0] <= at - self._span_s:
            self._seen.popleft()
        first_at, first = self._seen[0]
        passed = at - first_at
        return (total - first) / passed if passed > 0 else 0.0


def percentiles(latencies_ms: Sequence[float]) -> tuple[float | None, float | None]:
    """(p50, p95), linear between neighbours; None without a measurement."""
    if not latencies_ms:
        return None, None
    p50, p95 = np.percentile(np.asarray(latencies_ms), [50, 95])
    return round(float(p50), 1), round(float(p95), 1)


def biggest(counts: Mapping[str, int], most: int = 12) -> list[tuple[str, int]]:
    """The biggest counters, and the sum of the others under the empty name."""
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rest = sum(n for _, n in order[most:])
    return order[:most] + ([("", rest)] if rest else [])


def worker_statuses(said: Mapping[str, WorkerStatus], at: float) -> list[ShownWorker]:
    """Workers by name; the silent are gone, the long silent left out."""
    return [
        ShownWorker(
            name,
            word.state if word.lives(at) else "gone",
            word.agents,
            word.encoder_version,
            word.message,
            round(word.silent_s(at), 1),
        )
        for name, word in sorted(said.items())
        if word.silent_s(at) <= WORKER_FORGOTTEN_S
    ]


encode = msgspec.json.Encoder().encode


class State(Struct, frozen=True):
    """Answer of /api/state."""

    stats: Stats
    categories: list[Category]
    clusters: list[ClusterEvent]
    history: list[float]  # posts/s, one per second, oldest first
    event_id: str


class PageData(Struct, frozen=True):
    """What the page carries, so that its first paint needs no other request."""

    state: State
    alerts: AlertPage
    wanted: Filter
