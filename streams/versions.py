"""Encoder versions in a worker: loaded, checked, with the queries embedded; and which one serves what. No Kafka, no clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec

from models.bundle import CALIBRATION, MANIFEST, QUERY_VECTORS, read_bundle
from models.calibration import Calibration, read_calibration
from models.encoder import BUNDLED, Encoder, load_encoder
from models.errors import ConfigError, CrisisError, EncoderError
from models.matching import Matcher
from models.probes import check_probes
from models.queries import Query, background_texts
from models.records import EmbeddedFrame, Frame, MatchedFrame
from models.registry import Registry, version_cache
from models.standing import Known, Remembering, read_vectors
from streams import stages
from streams.config import Settings
from streams.releases import OWN

F = TypeVar("F", EmbeddedFrame, MatchedFrame)


@dataclass(frozen=True)
class Loaded:
    """A version whose encoder is warm and gives what it should."""

    name: str  # in the registry, or OWN
    encoder: Encoder
    calibration: Calibration | None = None
    known: Known = field(default_factory=dict, repr=False)  # vectors that came with it: the queries need not be encoded


@dataclass(frozen=True)
class Ready(Loaded):
    """… and whose queries are embedded: it can serve."""

    matcher: Matcher = field(default=None, repr=False)  # type: ignore[assignment]

    @cached_property
    def queries(self) -> dict[str, Query]:
        """The queries the matcher knows, by id."""
        return {q.id: q for q in self.matcher.queries}


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


def load_version(settings: Settings, name: str, cache: Path | None = None) -> Loaded:
    """Fetch, verify, load and warm up a version. Blocking, seconds. Raises EncoderError or ServiceError with the reason.

    `name`: a version of the registry, or OWN for the encoder of the worker's own settings.
    """
    if name == OWN:
        ref, path = settings.encoder.ref, BUNDLED if settings.encoder.ref is None else Path(settings.encoder.ref)
    else:
        if settings.encoder.registry is None:
            raise ConfigError(f"version {name} is asked for and no registry is set: CRISIS_ENCODER__REGISTRY")
        ref = path = Registry(settings.encoder.registry).fetch(name, cache or version_cache())
    try:
        encoder = load_encoder(ref)
        manifest = read_bundle(path).manifest if (path / MANIFEST).exists() else None
        check_probes(encoder, manifest.evaluation.get("probes") if manifest else None)
    except CrisisError:
        raise
    except Exception as error:  # a bundle from outside fails as its libraries like; the worker keeps what it has
        raise EncoderError(f"version {name} cannot be used: {type(error).__name__}: {error}") from error
    calibration = read_calibration(path / CALIBRATION, encoder.version)
    return Loaded(name, encoder, calibration, read_vectors(path / QUERY_VECTORS, encoder))


def make_ready(settings: Settings, loaded: Loaded, queries: Sequence[Query]) -> Ready:
    """Embed the queries with a version, as far as their vectors did not come with it. Blocking."""
    encoder = Remembering(loaded.encoder, loaded.known)
    matcher = Matcher(settings.match, queries, encoder, background_texts(), loaded.calibration)
    return Ready(loaded.name, loaded.encoder, loaded.calibration, loaded.known, matcher)


def restate(frame: F, encoder: Encoder) -> F:
    """The frame with its posts embedded again by another encoder; its matches stay. Blocking.

    How vectors of a version this worker does not have (or has left) are handled: never compared, made anew.
    """
    plain = Frame(origin=frame.origin, posts=frame.posts, repeats=frame.repeats, deletions=frame.deletions)
    fresh = stages.embed(plain, encoder)
    return msgspec.structs.replace(frame, encoder_version=fresh.encoder_version, dim=fresh.dim, vectors=fresh.vectors)


