"""The numbers on the page. Pure: the time is an argument."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from msgspec import Struct

from models.audit import MergeProposal
from streams.dashboard.board import OpenCount
from streams.searcher import SearchStatus

OUTCOMES = ("read", "accepted", "alert", "suggestion", "no_match", "folded", "rejected", "deleted")
WORKER_GONE_S = 15.0  # a worker speaks every second; silent for so long it counts as gone
WORKER_FORGOTTEN_S = 3600.0


class WorkerStatus(Struct, frozen=True):
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
    workers: list[WorkerStatus] = []
    clusters: int = 0
    proposals: list[MergeProposal] = []  # clusters the last audit takes for one, most similar first
    search: SearchStatus | None = None
    repeats: dict[str, int] = {}  # changed since the last time
    problem: str = ""  # why the numbers are old, if they are


class Rate:
    """Posts per second over the last seconds, from a counter that is read now and then."""

    def __init__(self, span_s: float = 5.0) -> None:
        self._span_s = span_s
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, at: float, total: int) -> float:
        """Note the counter; returns the rate. A counter that went back (a reset) starts over."""
        if self._seen and total < self._seen[-1][1]:
            self._seen.clear()
        self._seen.append((at, total))
        while len(self._seen) > 2 and self._seen[1][0] <= at - self._span_s:
            self._seen.popleft()
        (first_at, first), passed = self._seen[0], at - self._seen[0][0]
        return (total - first) / passed if passed > 0 and first_at <= at else 0.0


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


def worker_statuses(said: Mapping[str, Mapping], at: float) -> list[WorkerStatus]:
    """Workers by name; the silent are gone, the long silent left out."""
    found = []
    for name, word in sorted(said.items()):
        silent_s = max(0.0, at - float(word.get("at", 0.0)))
        if silent_s > WORKER_FORGOTTEN_S:
            continue
        state = "gone" if silent_s > WORKER_GONE_S else str(word.get("state", "ready"))
        found.append(
            WorkerStatus(
                name, state, [str(a) for a in word.get("agents", [])], str(word.get("encoder_version", "")),
                str(word.get("message", "")), round(silent_s, 1),
            )
        )  # fmt: skip
    return found


encode = msgspec.json.Encoder().encode
