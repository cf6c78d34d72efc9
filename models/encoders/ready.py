"""One way from an encoder version to one that can serve: workers, replay, commands and training take it.

    load("path/to/bundle")             verified (hashed once), loaded, warm; with all that was measured for it
    ready(loaded, queries, match)      … and its queries embedded: it can score posts

A version is atomic: vectors, calibration, query vectors and cluster thresholds come from one bundle and change
together.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from models.calibration import Calibration, material_hash, read_calibration
from models.encoders.bundle import ADDED, CALIBRATION, CLUSTERS, MANIFEST, QUERY_VECTORS, Bundle, read_bundle
from models.encoders.cluster_thresholds import TunedClusters, read_tuned_clusters
from models.encoders.load import FLOOD, folder_of, load_encoder
from models.encoders.mixture import Mixture
from models.encoders.probes import check_probes
from models.encoders.protocol import Encoder
from models.encoders.query_vectors import CachedEncoder, Known, read_vectors
from models.encoders.registry import OWN
from models.errors import BundleError, CrisisError, EncoderError
from models.matching import MatchConfig, Matcher
from models.queries import Query, aid_queries, background_texts

__all__ = ["Loaded", "Ready", "load", "ready", "stale", "static"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Loaded:
    """A version whose encoder is warm and gives what it should."""

    name: str  # its version in the registry, or OWN
    encoder: Encoder
    calibration: Calibration | None = None
    known: Known = field(default_factory=dict, repr=False)  # vectors that came with it: the queries need not be encoded
    clusters: TunedClusters | None = None

    @cached_property
    def clustered_by(self) -> Encoder:
        """What clusters compare posts by: the encoder, or a mixture with the static one where its thresholds say so."""
        beside = self.clusters.beside if self.clusters else 0.0
        return Mixture([(1.0, self.encoder), (beside, static().encoder)]) if beside else self.encoder


@cache
def static() -> Loaded:
    """The bundled static encoder, once a process: what clusters compare by beside another, and what is skimmed with."""
    return load(FLOOD)


@dataclass(frozen=True)
class Ready(Loaded):
    """… and whose queries are embedded: it can serve."""

    matcher: Matcher = field(kw_only=True, repr=False)

    @cached_property
    def queries(self) -> dict[str, Query]:
        """The queries the matcher knows, by id."""
        return {q.id: q for q in self.matcher.queries}


def load(ref: str | Path | Bundle | None = None, name: str = OWN) -> Loaded:
    """Load and warm up the bundled encoder (None), a bundle, or whatever else `load_encoder` takes. Blocking, seconds.

    A bundle that was verified already is not hashed again. Raises EncoderError with the reason it cannot be used.
    """
    path = ref.path if isinstance(ref, Bundle) else folder_of(ref)
    bundle = ref if isinstance(ref, Bundle) else read_bundle(path) if (path / MANIFEST).exists() else None
    try:
        encoder = load_encoder(bundle or ref)
        check_probes(encoder, bundle.manifest.evaluation.get("probes") if bundle else None)
    except CrisisError:
        raise
    except Exception as error:  # a bundle from outside fails as its libraries like; the worker keeps what it has
        raise EncoderError(f"version {name} cannot be used: {type(error).__name__}: {error}") from error
    # The manifest says what there is: what is gone by now is missing, and a version without it would be another one.
    held = bundle.manifest.files if bundle else [name for name in ADDED if (path / name).is_file()]
    calibration = read_calibration(path / CALIBRATION, encoder.version) if CALIBRATION in held else None
    if calibration is not None and (told := stale(calibration)):
        log.warning("version %s: %s", name, told)
    clusters = read_tuned_clusters(path / CLUSTERS, encoder.version) if CLUSTERS in held else None
    if clusters and clusters.beside and clusters.beside_version != (here := read_bundle(FLOOD).id):
        raise BundleError(
            f"{path / CLUSTERS} was measured with the static encoder {clusters.beside_version} beside it, here is "
            f"{here}: measure anew"
        )
    known = read_vectors(path / QUERY_VECTORS, encoder) if QUERY_VECTORS in held else {}
    return Loaded(name, encoder, calibration, known, clusters)


def ready(
    loaded: Loaded, queries: Sequence[Query], match: MatchConfig | None = None, kept: Known | None = None
) -> Ready:
    """Embed the queries with a version, as far as their vectors did not come with it and are not `kept`. Blocking.

    Of one that was ready before, only what changed is made anew: with 100,000 queries a change takes under a second.
    """
    encoder = CachedEncoder(loaded.encoder, {**kept, **loaded.known} if kept else loaded.known)
    before = loaded.matcher if isinstance(loaded, Ready) else None
    matcher = Matcher(match or MatchConfig(), queries, encoder, background_texts(), loaded.calibration, before=before)
    return Ready(loaded.name, loaded.encoder, loaded.calibration, loaded.known, loaded.clusters, matcher=matcher)


def stale(calibration: Calibration) -> str:
    """What is wrong if the calibration was measured against other queries or background than are here; else empty."""
    here = material_hash(background_texts(), aid_queries())
    if calibration.material == here:
        return ""
    return (
        f"its calibration was measured against other query packs or background posts (material {calibration.material}, "
        f"here {here}): its thresholds and probabilities may be off; run `python -m training."
        f"{'head' if calibration.head else 'calibrate'} laptop encoder=DIR`, or install the release of crisis-streams "
        "it was published with"
    )
