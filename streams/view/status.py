"""What a worker, or a source, says of itself, once a second: written and read here.

Times are by the clock of Redis: one that is wrong on some machine makes nobody look dead, or alive. What workers
measure is told in seconds: theirs is no clock to compare with.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from models.undecodable import UNDECODABLE

__all__ = [
    "DEAD_KEPT",
    "GONE_S",
    "SOURCE_KEPT_S",
    "WORKER_KEPT_S",
    "SourceStatus",
    "WorkerStatus",
    "cleared_away",
    "decode_source",
    "decode_status",
    "encode_status",
]

SOURCE_KEPT_S = 86_400  # a source that died is missed for a day
GONE_S = 15.0  # a worker speaks every second; silent for so long it counts as gone
WORKER_KEPT_S = 3_600  # one that is gone is told of for an hour
DEAD_KEPT = 20  # and of so many at the most, the last: one that is started again and again has a name each time


class WorkerStatus(Struct, frozen=True):
    """A worker's word about itself; `at` tells the living from the dead."""

    at: float = 0.0  # epoch seconds
    agents: list[str] = []
    encoder_version: str = ""  # of the vectors it makes
    lag: dict[str, int] = {}  # frames not yet processed, by topic
    state: str = "ready"  # ready | loading | failed
    message: str = ""  # what it cannot do as it should
    registry_version: str = ""  # the release it serves; own = the encoder of its settings
    waits_s: float = 0.0  # how long the oldest post that it has found waiting had waited when it spoke; 0 = none
    computes_s: float = 0.0  # how long the call runs that its encoder, matcher or clusterer has not returned from
    holds: dict[str, list[int]] | None = None  # partitions it reads, by topic; an older worker does not say
    stands_s: float = 0.0  # how long a partition of it has stood still with records waiting
    held: dict[str, int] = {}  # what alerts an hour held back in the last hour, by query

    def silent_s(self, at: float) -> float:
        """Seconds since it spoke."""
        return max(0.0, at - self.at)

    def lives(self, at: float) -> bool:
        """Did it speak lately?"""
        return self.silent_s(at) <= GONE_S


class SourceStatus(Struct, frozen=True):
    """The word of what brings posts in. Who ends in order takes leave, and is not missed."""

    at: float = 0.0  # epoch seconds
    message: str = ""  # what it cannot do as it should

    def silent_s(self, at: float) -> float:
        """Seconds since it spoke."""
        return max(0.0, at - self.at)

    def missed(self, at: float) -> bool:
        """Does anybody still want to know of it? Who has died for good is not missed for ever."""
        return self.silent_s(at) <= SOURCE_KEPT_S


encode_status = msgspec.json.Encoder().encode
decode_status = msgspec.json.Decoder(WorkerStatus).decode
_source = msgspec.json.Decoder(SourceStatus).decode


def decode_source(value: bytes) -> SourceStatus:
    """What is no status is one that nobody misses: it ends neither the page nor the worker that clears away."""
    try:
        return _source(value)
    except UNDECODABLE:
        return SourceStatus()


def cleared_away(said: Mapping[str, bytes], at: float) -> list[str]:
    """Workers that nobody needs to hear of any more: dead for long, or many others since. at: epoch seconds."""
    # Read as a source's word, which has the same time: that of another version ends no worker that clears away.
    silent_s = {name: decode_source(word).silent_s(at) for name, word in said.items()}
    dead = sorted((name for name, silent in silent_s.items() if silent > GONE_S), key=lambda name: silent_s[name])
    return [name for n, name in enumerate(dead) if n >= DEAD_KEPT or silent_s[name] > WORKER_KEPT_S]
