"""An encoder version on disk: one directory, content-addressed, verified file by file before anything is used.

    manifest.json         what it is, where it came from, what it was measured to do, sha256 of every file
    model.safetensors     weights, never pickle
    tokenizer.json        a `tokenizers` file
    README.md             optional: the model card, for people
    calibration.json      optional: thresholds per query, made for this encoder by `training.calibrate`
    clusters.json         optional: cluster thresholds, measured for this encoder by `training.evaluate_clusters`
    words.safetensors     optional: word axes beside the vectors (models/encoders/words.py), by `training.words`
    queries.safetensors   optional: vectors of the bundled queries and background, made when it is published

`id` is a hash of the weights, the tokenizer and the settings that decide what the vectors mean (back-end, dimension,
length, cleaning, pooling, whitening). The optional files, measurements and licence may be added later and leave it as
it is: vectors of the same id may be compared, whatever was learnt about them since.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import msgspec
from msgspec import Struct

from models.errors import BundleError
from models.text import Cleaning
from models.undecodable import UNDECODABLE

__all__ = [
    "ADDED",
    "Bundle",
    "CALIBRATION",
    "CARD",
    "CLUSTERS",
    "FORMATS",
    "LanguageFigures",
    "MANIFEST",
    "Manifest",
    "QUERY_VECTORS",
    "WORDS",
    "add_file",
    "contents",
    "is_file_name",
    "read_bundle",
    "without_words",
    "write_bundle",
]

FORMAT = "crisis-encoder/1"
MANIFEST = "manifest.json"
CALIBRATION = "calibration.json"
CARD = "README.md"
CLUSTERS = "clusters.json"
QUERY_VECTORS = "queries.safetensors"
WORDS = "words.safetensors"
ADDED = (
    CARD,
    CALIBRATION,
    CLUSTERS,
    QUERY_VECTORS,
)  # files that say something about the vectors and do not change them
FORMATS = (FORMAT,)


class LanguageFigures(Struct, frozen=True, omit_defaults=True):
    """What was measured in one language; a measure that was not taken is left out."""

    matching: float | None = None  # sentence matching, mean accuracy of both directions
    relatedness: float | None = None  # Spearman
    relatedness_overlap: float | None = None  # Spearman of the lexical-overlap baseline on the same pairs
    pairs: int | None = None  # training pairs


class Manifest(Struct, frozen=True):
    """The bundle's own description. See the module for what `id` covers."""

    backend: str  # a name of BACK_ENDS in load.py
    dim: int
    max_length: int  # pieces read of a post; the rest is not seen
    cleaning: Cleaning
    pooling: str  # "sum": unit vector of the sum of piece vectors; "mean", "cls" for transformers
    licence: str
    format: str = FORMAT
    id: str = ""
    parent: str | None = None
    whitening: str | None = None  # name of the file that holds it
    settings: dict[str, Any] = {}  # what else the back-end needs to know
    languages: dict[str, LanguageFigures] = {}
    evaluation: dict[str, Any] = {}
    training: dict[str, Any] = {}
    data_hashes: dict[str, str] = {}
    files: dict[str, str] = {}  # name: sha256
    sizes: dict[str, int] = {}  # name: bytes, so that nobody fetches gigabytes of what is not it; older ones have none


class Bundle(Struct, frozen=True):
    """A verified bundle: every file is what the manifest says."""

    path: Path
    manifest: Manifest

    @property
    def id(self) -> str:
        return self.manifest.id


def content_id(manifest: Manifest) -> str:
    """12 hex digits over what decides the vectors."""
    meaning = [
        manifest.format,
        manifest.backend,
        manifest.dim,
        manifest.max_length,
        manifest.cleaning,
        manifest.pooling,
        manifest.whitening,
        sorted(manifest.settings.items()),
        sorted(item for item in manifest.files.items() if item[0] not in ADDED),
    ]
    return hashlib.sha256(msgspec.json.encode(meaning)).hexdigest()[:12]


def without_words(manifest: Manifest, axes: int) -> Manifest:
    """The manifest, id and all, of the encoder whose vectors stand before `axes` word axes."""
    files = {name: digest for name, digest in manifest.files.items() if name != WORDS}
    plain = msgspec.structs.replace(manifest, dim=manifest.dim - axes, files=files)
    return msgspec.structs.replace(plain, id=content_id(plain))


def read_bundle(path: str | Path) -> Bundle:
    """Verify the bundle at `path` and return it. Raises BundleError with the reason it is refused."""
    path = Path(path)
    try:
        raw = (path / MANIFEST).read_bytes()
    except OSError as error:
        raise BundleError(f"no encoder bundle at {path}: cannot read {MANIFEST} ({error.strerror})") from None
    try:
        format_ = msgspec.json.decode(raw, type=dict).get("format")
    except UNDECODABLE as error:
        raise BundleError(f"{path / MANIFEST} is not JSON ({error}): truncated? copy the bundle again") from None
    if format_ not in FORMATS:
        raise BundleError(
            f"{path} has format {format_!r}, this version reads {', '.join(FORMATS)}: upgrade, or re-publish"
        )
    try:
        manifest = msgspec.json.decode(raw, type=Manifest)
    except UNDECODABLE as error:
        raise BundleError(f"{path / MANIFEST} is not a manifest: {error}") from None
    for name, expected in manifest.files.items():
        if not is_file_name(name):
            raise BundleError(f"{path} names a file outside itself: {name!r}")
        actual = _sha256(path / name)
        if actual is None:
            raise BundleError(f"{path} is truncated: {name} is missing; copy the bundle again")
        if actual != expected:
            raise BundleError(f"{path / name} was changed: sha256 {actual[:12]}…, the manifest says {expected[:12]}…")
    if not manifest.files:
        raise BundleError(f"{path} lists no files: nothing vouches for its weights")
    if manifest.id != content_id(manifest):
        raise BundleError(
            f"{path} calls itself {manifest.id}, its content is {content_id(manifest)}: it was edited by hand"
        )
    if unlisted := [name for name in ADDED if name not in manifest.files and (path / name).exists()]:
        raise BundleError(
            f"{path} holds {', '.join(unlisted)}, which {MANIFEST} does not list: nobody vouches for it; "
            "take it out, or put it in with models.encoders.bundle.add_file"
        )
    return Bundle(path, manifest)


def write_bundle(path: str | Path, manifest: Manifest, files: dict[str, bytes]) -> Manifest:
    """Write a bundle beside `path`, verify it, then put it in place; returns the manifest with id and hashes.

    A reader finds the old bundle or the new one. What the old one held and `files` does not is gone: thresholds and
    query vectors belong to the encoder they were measured on.
    """
    path = Path(path)
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}
    sizes = {name: len(content) for name, content in sorted(files.items())}
    manifest = msgspec.structs.replace(manifest, files=hashes, sizes=sizes)
    manifest = msgspec.structs.replace(manifest, id=content_id(manifest))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        for name, content in files.items():
            (temporary / name).write_bytes(content)
        (temporary / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
        temporary.chmod(0o755)
        read_bundle(temporary)
        if path.exists():
            old = Path(mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
            os.rename(path, old / "bundle")
            os.rename(temporary, path)
            shutil.rmtree(old)
        else:
            os.rename(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return manifest


def add_file(path: str | Path, name: str, content: bytes) -> Manifest:
    """Put one of the ADDED files into the bundle at `path`, or replace it there; its id stays. Raises BundleError."""
    bundle = read_bundle(path)
    if name not in ADDED:
        raise BundleError(f"{name} cannot be added to {path}: only {', '.join(ADDED)} leave an encoder what it is")
    return write_bundle(path, bundle.manifest, {**contents(bundle), name: content})


def contents(bundle: Bundle) -> dict[str, bytes]:
    """Every file the manifest lists."""
    return {name: (bundle.path / name).read_bytes() for name in bundle.manifest.files}


def is_file_name(name: str) -> bool:
    """May a manifest call a file so? Nothing that leads elsewhere, and nothing an operating system refuses."""
    return Path(name).name == name and name.isprintable() and 0 < len(name) <= 128


def _sha256(path: Path) -> str | None:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
