"""Which encoder version serves what, and frames made anew by another one. Pure: no client, no settings, no clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import msgspec

from models.encoders.protocol import Encoder
from models.encoders.ready import Ready
from models.records import EmbeddedFrame, Frame, MatchedFrame
from streams.pipeline import stages

__all__ = ["Serving", "restate"]

F = TypeVar("F", EmbeddedFrame, MatchedFrame)


@dataclass(frozen=True)
class Serving:
    """What serves at this moment. Immutable and swapped whole: a handler reads it once per batch of frames."""

    current: Ready
    canary: Ready | None = None
    canary_partitions: range = range(0)
    shadow: Ready | None = None
    shadow_share: float = 0.0
    trial: str = ""  # names the counters of the trial going on; empty = none
    others: tuple[Ready, ...] = ()  # loaded and still welcome: frames begun by them finish on them

    def for_partition(self, partition: int) -> Ready:
        """The version that embeds frames of a raw partition."""
        return self.canary if self.canary is not None and partition in self.canary_partitions else self.current

    def of(self, frame: EmbeddedFrame) -> Ready | None:
        """The version that can match this frame: its vectors are of the same encoder. None if none is loaded."""
        mine = self.for_partition(frame.origin.partition)
        for ready in (mine, self.current, self.canary, self.shadow, *self.others):
            if ready is not None and ready.encoder.version == frame.encoder_version:
                return ready
        return None

    @property
    def dim(self) -> int:
        """The widest vector a frame may get."""
        return max(r.encoder.dim for r in (self.current, self.canary) if r is not None)


def restate(frame: F, encoder: Encoder) -> F:
    """The frame with its posts embedded again by another encoder; its matches stay. Blocking.

    How vectors of a version this worker does not have (or has left) are handled: never compared, made anew.
    """
    plain = Frame(origin=frame.origin, posts=frame.posts, repeats=frame.repeats, deletions=frame.deletions)
    fresh = stages.embed(plain, encoder)
    return msgspec.structs.replace(frame, encoder_version=fresh.encoder_version, dim=fresh.dim, vectors=fresh.vectors)
