"""The clusterer's state in parts, so that a save costs what changed: each is msgpack, arrays packed, never pickle.
Written by saving.py, read by restoring.py.

| part | what |
|---|---|
| head | settings it was made with, clocks, counters, what was applied, ids of the live clusters in order |
| lexicon | its counters |
| cluster/ID, examples/ID | one live cluster: sum, number and bookkeeping; its sample of posts, which changes seldom |
| terms/N, placed/N, members/N, repeats/N, redirects/N, retired/N, gone/N | segments of long maps (trail.py) |

Sums are whole numbers of grid steps, so the round trip is exact and a restored clusterer continues bit by bit.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from models.clusters.cluster import Cluster, Rates
from models.clusters.live import Counters, Due, LiveClusters
from models.clusters.trail import Extent, Ledger
from models.records import Origin

__all__ = ["Changes", "FORMAT", "Head", "Progress", "Saved", "ledgers"]

FORMAT = 2


class Changes(Struct, frozen=True):
    """What to keep of a state so that it can be restored: parts to write, and names of those to forget.

    whole: these are all parts; whatever was kept before must go.
    """

    put: dict[str, bytes]
    gone: list[str]
    whole: bool


class Head(Struct):
    """What is small. Clusters are numbered by their place in `clusters`."""

    format: int
    encoder_version: str
    dim: int
    lexical: float
    t_attach: float
    t_merge: float
    clock: float
    started: float
    merge: Due
    quick: Due
    counters: Counters
    applied: list[Origin]
    stream: Rates
    clusters: list[str]  # ids, oldest first
    dirty: list[int]
    fresh: list[int]
    strange: list[int]
    changed: list[int]
    lexicon_seen: int
    terms_since: float | None
    terms_total: float
    spans: dict[str, Extent]
    counted: bool = False  # repeats name the cluster they were counted in; in a state of before, their original


class Saved(Struct, array_like=True):
    """One cluster, its examples apart."""

    posts: int  # with a vector
    steps: bytes  # (width,) grid steps: int32, or int64 if the cluster passed half a million posts
    cluster: Cluster


class Progress(Struct):
    """Where a clusterer stands in the stream."""

    encoder_version: str
    applied: dict[tuple[int, int], Origin]
    merge: Due
    quick: Due


def ledgers(live: LiveClusters) -> tuple[Ledger[Any], ...]:
    """Those of its maps that are saved in segments, besides the words."""
    memory = live.memory
    return memory.placed, memory.members, memory.repeats, memory.redirects, memory.retired, memory.gone
