"""Which encoder version is current, which one is on trial, and where to roll back to: pure, each change a new state.

stage V [--shadow s] [--canary c]   V scores a share of the stream beside the current one; or serves a share
use V                               V is current; what was current is remembered
rollback                            a canary ends; with none, the version before comes back
"""

from __future__ import annotations

import math

import msgspec
from msgspec import Struct

from models.encoders.registry import OWN
from models.errors import ConfigError, EncoderError
from streams.releases.bands import Bands

__all__ = ["Release", "Staged", "canary_partitions", "trial_of"]

KEPT = 10  # versions one can roll back to


class Staged(Struct, frozen=True):
    """A version on trial. `shadow`: share of frames it scores unseen; `canary`: share of partitions it serves."""

    version: str
    shadow: float = 0.0
    canary: float = 0.0
    bands: Bands = Bands()


class Refusal(Struct, frozen=True):
    """A canary that was rolled back, and why."""

    version: str
    reason: str
    at: float  # epoch seconds


class Release(Struct, frozen=True, omit_defaults=True):
    """What every worker is to run. Immutable: each change is the next revision."""

    revision: int = 0
    current: str = OWN
    earlier: tuple[str, ...] = ()  # what was current before, newest last
    staged: Staged | None = None
    refused: Refusal | None = None  # the last canary that was rolled back by itself
    changed_at: float = 0.0  # epoch seconds
    change: str = ""  # in words, for people

    @property
    def previous(self) -> str | None:
        """Where `rollback` goes back to."""
        return self.earlier[-1] if self.earlier else None

    def stage(
        self, version: str, at: float, shadow: float = 0.1, canary: float = 0.0, bands: Bands | None = None
    ) -> Release:
        """Put a version on trial beside the current one; it takes the place of one already there."""
        for name, share in (("shadow", shadow), ("canary", canary)):
            if not 0.0 <= share <= 1.0:
                raise ConfigError(f"{name} is {share}: a share between 0 and 1")
        if version == self.current:
            raise EncoderError(f"{version} is the current version already: nothing to try")
        staged = Staged(version, shadow, canary, bands or Bands())
        return self._next(at, f"stage {version} (shadow {shadow:g}, canary {canary:g})", staged=staged)

    def unstage(self, at: float) -> Release:
        """End the trial."""
        if self.staged is None:
            raise EncoderError("no version is staged")
        return self._next(at, f"unstage {self.staged.version}", staged=None)

    def use(self, version: str, at: float) -> Release:
        """Make a version current everywhere."""
        if version == self.current:
            raise EncoderError(f"{version} is the current version already")
        staged = None if self.staged and self.staged.version == version else self.staged
        earlier = (*self.earlier, self.current)[-KEPT:]
        return self._next(at, f"use {version}", current=version, earlier=earlier, staged=staged)

    def rollback(self, at: float) -> Release:
        """End a canary; where none is on, go back to the version that was current before."""
        if self.staged and self.staged.canary > 0:
            return self._next(at, f"rollback: canary {self.staged.version} ended", staged=None)
        if self.previous is None:
            raise EncoderError(f"no version before {self.current} is known: `crisis encoder use V` names one")
        staged = None if self.staged and self.staged.version == self.previous else self.staged
        return self._next(
            at,
            f"rollback from {self.current} to {self.previous}",
            current=self.previous,
            earlier=self.earlier[:-1],
            staged=staged,
        )

    def refuse(self, staged: Staged, reason: str, at: float) -> Release:
        """The canary left its band: end it. Nothing changes if it is no longer the one on trial."""
        if self.staged != staged:
            return self
        refusal = Refusal(staged.version, reason, at)
        return self._next(at, f"canary {staged.version} rolled back by itself: {reason}", staged=None, refused=refusal)

    def _next(self, at: float, change: str, **changes: object) -> Release:
        return msgspec.structs.replace(self, revision=self.revision + 1, changed_at=at, change=change, **changes)


def canary_partitions(share: float, partitions: int) -> range:
    """The raw partitions a canary serves: the lowest numbers, at least one if any, all only for a share of 1."""
    count = math.ceil(share * partitions - 1e-9)
    return range(min(count, partitions - 1) if share < 1.0 and partitions > 1 else count)


def trial_of(release: Release) -> str:
    """The name of the counters of the trial going on; a change of either version starts new ones."""
    return f"trial-{release.revision}"
