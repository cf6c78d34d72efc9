"""A version by its name: fetched from the registry and loaded, or the settings' own; and which one is current."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from models.encoders.kept_vectors import KeptVectors
from models.encoders.ready import Loaded, Ready, load, ready
from models.encoders.registry import OWN, Registry, version_cache
from models.errors import ConfigError, ServiceError
from models.queries import Query
from streams.config import Settings

__all__ = ["current_version", "load_version", "make_ready", "registry_of", "resolve"]


def registry_of(settings: Settings) -> Registry:
    """The registry of the settings. Raises ConfigError if they name none."""
    if settings.encoder.registry is None:
        raise ConfigError("no registry of encoder versions is set: CRISIS_ENCODER__REGISTRY=DIRECTORY or s3://…")
    return Registry(settings.encoder.registry)


def resolve(settings: Settings, name: str) -> str:
    """The full name of a version given by its first letters, or OWN. Raises EncoderError naming the choices."""
    return OWN if name == OWN else registry_of(settings).resolve(name)


def load_version(settings: Settings, name: str, cache: Path | None = None) -> Loaded:
    """Fetch, verify, load and warm up a version. Blocking, seconds. Raises EncoderError or ServiceError with the
    reason.

    `name`: a version of the registry, or OWN for the encoder of the settings (bundled, or encoder.ref).
    """
    if name == OWN:
        return load(settings.encoder.ref)
    if settings.encoder.registry is None:
        raise ConfigError(f"version {name} is asked for and no registry is set: CRISIS_ENCODER__REGISTRY")
    return load(Registry(settings.encoder.registry).fetch(name, cache or version_cache()), name)


def make_ready(settings: Settings, loaded: Loaded, queries: Sequence[Query]) -> Ready:
    """Embed the queries with a version. Blocking.

    Sentences that people added are encoded once on this machine: their vectors are kept for the next start.
    """
    version, asked = loaded.encoder.version, _custom_sentences(loaded, queries)
    if not asked:
        return ready(loaded, queries, settings.match)
    store = KeptVectors(vector_file())
    kept = store.read(version, loaded.encoder.dim, asked)
    made = ready(loaded, queries, settings.match, kept)
    if len(kept) < len(asked):
        fresh = set(asked) - kept.keys()
        looks = made.matcher.directions.looks
        store.write(
            version, {t: v for one in looks for t, v in zip(one.texts, one.sentences, strict=True) if t in fresh}
        )
    return made


def vector_file() -> Path:
    """Where vectors of sentences that people added are kept on this machine."""
    return version_cache().parent / "vectors.sqlite"


def _custom_sentences(loaded: Loaded, queries: Sequence[Query]) -> list[str]:
    """Each sentence whose vector neither came with the version nor is held by it, once."""
    held = loaded.queries if isinstance(loaded, Ready) else {}
    changed = [q for q in queries if (known := held.get(q.id)) is None or known.sentences != q.sentences]
    return list(dict.fromkeys(text for q in changed for _, text in q.texts() if text not in loaded.known))


def current_version(settings: Settings) -> tuple[str, str]:
    """(the version workers are to serve, where that is known from): the `encoders` topic where a broker answers and
    has one, else the settings' own.
    """
    from streams.releases.topic import read_release  # with it the Kafka clients, which a replay can do without

    try:
        return read_release(settings).current, f"current at {settings.broker.bootstrap}"
    except ServiceError:
        return OWN, f"of the settings: no broker at {settings.broker.bootstrap} tells which version is current"
