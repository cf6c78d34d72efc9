"""Registries of encoder versions: a local directory or any fsspec URL, such as s3://bucket/encoders.

    <registry>/<version>/model.safetensors, tokenizer.json, …   the bundle's files
    <registry>/<version>/manifest.json                          written last: without it the version is not there
    <registry>/current.json                                     the version people last chose, for the gates

`<version>` is the bundle's content id, followed by 12 hex digits over the files added to it (thresholds, query vectors,
card) where there are any. So every object but the manifest is fixed by its name: two publishers of one version write
the same bytes, publishers of different versions never touch the same object, and a publisher that dies half-way leaves
nothing that `list` or `fetch` would take. The same encoder with new thresholds is a new version whose vectors may be
compared with the old one's.

Object stores show an object once it is whole; elsewhere files are written under a temporary name and moved.
S3 (extra [s3]) reads the usual AWS_* variables, AWS_ENDPOINT_URL among them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import fsspec
import msgspec
from msgspec import Struct

from models.encoders.bundle import ADDED, FORMATS, MANIFEST, Bundle, Manifest, is_file_name, read_bundle
from models.errors import BundleError, ConfigError, CrisisError, EncoderError, ServiceError
from models.undecodable import UNDECODABLE

__all__ = ["OWN", "Registry", "version_cache", "version_of"]

OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "abfs", "az", "adl", "oss", "oci"}
OWN = "own"  # in place of a version: the encoder of the worker's own settings (bundled, or encoder.ref)
CURRENT = "current.json"
MANIFEST_BYTES = 16 << 20  # no manifest is longer
FILE_BYTES = 8 << 30  # of a file whose manifest tells no size
_VERSION = re.compile(r"[0-9a-f]{12}(?:-[0-9a-f]{12})?")


def version_of(bundle: Bundle) -> str:
    """The name a bundle is published under."""
    added = sorted((name, hash_) for name, hash_ in bundle.manifest.files.items() if name in ADDED)
    if not added:
        return bundle.id
    return f"{bundle.id}-{hashlib.sha256(msgspec.json.encode(added)).hexdigest()[:12]}"


def encoder_of(version: str) -> str:
    """The content id inside a version's name: what its vectors are marked with."""
    return version.partition("-")[0]


class Entry(Struct, frozen=True):
    """One published version. `problem` says why its manifest cannot be read, where that is so."""

    version: str
    published_at: float | None = None  # epoch seconds, by the store's clock
    manifest: Manifest | None = None
    problem: str = ""


class Registry:
    """Published encoder versions under one directory or URL. Blocking: call it in a worker thread."""

    def __init__(self, url: str | Path, **storage_options: object) -> None:
        """Raises ConfigError if the URL's protocol is unknown or its library is not installed."""
        self.url = str(url)
        protocol = fsspec.utils.get_protocol(self.url)
        if protocol in ("s3", "s3a"):  # a listing kept from before would hide what others published since
            storage_options = {"use_listings_cache": False, "skip_instance_cache": True, **storage_options}
        try:
            self._fs, self._root = fsspec.core.url_to_fs(self.url, **storage_options)
        except ImportError as error:
            raise ConfigError(f"registry {self.url} needs another library: {error}; try pip install '.[s3]'") from error
        except ValueError as error:
            raise ConfigError(f"registry {self.url}: {error}") from error
        self._atomic = protocol in OBJECT_STORES

    def list(self) -> list[Entry]:
        """Every published version, newest first. Raises ServiceError if the registry cannot be read."""
        found = []
        with self._telling("list"):
            names = self._fs.ls(self._root, detail=False) if self._fs.exists(self._root) else []
            for name in sorted(str(n).rstrip("/").rpartition("/")[2] for n in names):
                if _VERSION.fullmatch(name) and self._fs.exists(self._path(name, MANIFEST)):
                    found.append(self._entry(name))
        return sorted(found, key=lambda e: (-(e.published_at or 0.0), e.version))

    def resolve(self, prefix: str) -> str:
        """The one version whose name starts so. Raises EncoderError naming the choices otherwise."""
        known = [entry.version for entry in self.list()]
        fits = [version for version in known if version.startswith(prefix)]
        if prefix in known:
            return prefix
        if len(fits) != 1:
            among = ", ".join(fits or known) or "none"
            raise EncoderError(
                f"{'several versions start' if fits else 'no version starts'} with {prefix!r} in {self.url}: {among}"
            )
        return fits[0]

    def publish(self, bundle: str | Path | Bundle) -> str:
        """Verify a bundle and upload it; returns its version. A version already there whole is left as it is.

        Raises BundleError if the bundle is refused, ServiceError if the upload did not arrive whole.
        """
        read = bundle if isinstance(bundle, Bundle) else read_bundle(bundle)
        version = version_of(read)
        if self.is_whole(version):
            return version
        names = list(read.manifest.files)
        with self._telling(f"publish {version}"):
            self._fs.makedirs(self._path(version), exist_ok=True)
            for name in names:
                self._put(read.path / name, version, name)
            for name in names:
                size, arrived = (read.path / name).stat().st_size, self._fs.info(self._path(version, name))["size"]
                if size != arrived:
                    raise ServiceError(
                        f"{name} of {version} arrived with {arrived} of {size} bytes in {self.url}: publish again"
                    )
            self._put(read.path / MANIFEST, version, MANIFEST)
        return version

    def fetch(self, version: str, cache_dir: str | Path) -> Bundle:
        """A verified local copy in `<cache_dir>/<version>`, from the cache if it is whole there.

        Raises BundleError with the reason if what arrived is not this version, EncoderError if there is no such
        version, ServiceError if the registry cannot be read.
        """
        _check_name(version)
        target = Path(cache_dir) / version
        with contextlib.suppress(BundleError):
            return _verified(target, version)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(mkdtemp(prefix=f".{version}.", dir=target.parent))
        try:
            self._download(version, temporary)
            found = _verified(temporary, version)
            temporary.chmod(0o755)
            with contextlib.suppress(BundleError):  # another process of this machine was faster, and may be reading it
                return _verified(target, version)
            if target.exists():  # damaged
                shutil.move(target, temporary.with_name(f"{temporary.name}.old"))
                shutil.rmtree(temporary.with_name(f"{temporary.name}.old"))
            try:
                os.rename(temporary, target)
            except OSError:  # it was faster by a moment
                return _verified(target, version)
            return msgspec.structs.replace(found, path=target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def choose(self, version: str) -> None:
        """Note the version people made current: what the gates hold the next one against. Raises ServiceError."""
        with self._telling(f"note {version} as current"), TemporaryDirectory() as scratch:
            self._fs.makedirs(self._root, exist_ok=True)
            (Path(scratch) / CURRENT).write_bytes(msgspec.json.encode({"version": version}))
            self._put(Path(scratch) / CURRENT, CURRENT)

    def chosen(self) -> str | None:
        """What `choose` noted last; None if nothing was. Raises ServiceError."""
        with self._telling("read which version is current"):
            try:
                return msgspec.json.decode(self._fs.cat_file(self._path(CURRENT)), type=dict[str, str])["version"]
            except FileNotFoundError:
                return None

    def _entry(self, version: str) -> Entry:
        path = self._path(version, MANIFEST)
        published_at = self._fs.modified(path).timestamp()
        try:
            manifest = msgspec.json.decode(self._manifest(version), type=Manifest)
        except (*UNDECODABLE, BundleError) as error:  # one version that is none must not hide the others
            return Entry(version, published_at, problem=f"{MANIFEST}: {error}")
        if manifest.format not in FORMATS:
            return Entry(version, published_at, problem=f"format {manifest.format!r}: this version cannot read it")
        return Entry(version, published_at, manifest)

    def _manifest(self, version: str) -> bytes:
        """Raises FileNotFoundError, BundleError if it is too long to be one."""
        path = self._path(version, MANIFEST)
        if (size := self._fs.info(path)["size"]) > MANIFEST_BYTES:
            raise BundleError(f"{MANIFEST} of {version} has {size:,} bytes: that is none")
        found: bytes = self._fs.cat_file(path)
        return found

    def is_whole(self, version: str) -> bool:
        """Is it there with every file as its name and manifest say? Downloads it."""
        with TemporaryDirectory() as scratch, contextlib.suppress(EncoderError):
            self._download(version, Path(scratch))
            _verified(Path(scratch), version)
            return True
        return False

    def _download(self, version: str, into: Path) -> None:
        with self._telling(f"fetch {version}"):
            try:
                (into / MANIFEST).write_bytes(self._manifest(version))
            except FileNotFoundError:
                raise EncoderError(f"no version {version} in {self.url}: `crisis encoder list` shows what is") from None
            manifest = _manifest_of(into / MANIFEST, version)
            for name in manifest.files:
                with contextlib.suppress(FileNotFoundError):  # told by the verification, which names the file
                    size, expected = self._fs.info(self._path(version, name))["size"], manifest.sizes.get(name)
                    if size > FILE_BYTES or expected not in (None, size):
                        raise BundleError(
                            f"{name} of {version} was changed: it has {size:,} bytes in {self.url}, "
                            + (f"{expected:,} by the manifest" if expected is not None else f"{FILE_BYTES:,} are read")
                        )
                    self._fs.get_file(self._path(version, name), str(into / name))

    def _put(self, local: Path, *parts: str) -> None:
        *folders, name = parts
        final = self._path(*parts)
        if self._atomic:
            self._fs.put_file(str(local), final)
            return
        temporary = self._path(*folders, f".{name}.{uuid.uuid4().hex}")
        try:
            self._fs.put_file(str(local), temporary)
            self._fs.mv(temporary, final)
        finally:
            if self._fs.exists(temporary):
                self._fs.rm_file(temporary)

    def _path(self, *parts: str) -> str:
        return "/".join((self._root.rstrip("/"), *parts))

    @contextlib.contextmanager
    def _telling(self, doing: str) -> Iterator[None]:
        try:
            yield
        except CrisisError:
            raise
        except Exception as error:  # every fsspec back-end has its own; botocore's are not even OSError
            raise ServiceError(f"registry {self.url}: cannot {doing}: {type(error).__name__}: {error}") from error


def _check_name(version: str) -> None:
    if not _VERSION.fullmatch(version):
        raise EncoderError(f"{version!r} is no version: 12 hex digits, or two such joined by a hyphen")


def _manifest_of(path: Path, version: str) -> Manifest:
    """A manifest from outside; no name in it may lead out of its folder."""
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except UNDECODABLE as error:
        raise BundleError(f"{version}: {MANIFEST} is not one this version reads: {error}") from None
    if wrong := [name for name in manifest.files if not is_file_name(name) or name == MANIFEST]:
        raise BundleError(f"{version} names files it may not: {', '.join(map(repr, wrong))}")
    return manifest


def _verified(path: Path, version: str) -> Bundle:
    """The bundle at `path`, if it is exactly this version. Raises BundleError otherwise."""
    bundle = read_bundle(path)
    if (found := version_of(bundle)) != version:
        raise BundleError(f"{path} holds {found}, not {version}: its files were changed")
    return bundle


def version_cache() -> Path:
    """Where fetched versions are kept on this machine: CRISIS_CACHE, default ~/.cache/crisis-streams."""
    return Path(os.environ.get("CRISIS_CACHE", "~/.cache/crisis-streams")).expanduser() / "encoders"
