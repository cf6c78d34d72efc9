"""What an encoder is, and how to get one.

    encoder = load_encoder()                                # the bundled multilingual one: numpy only, offline
    encoder = load_encoder("path/to/bundle")                # a published version; ONNX ones need the extra [onnx]
    encoder = load_encoder("crisistransformers/CT-XLMR-SE") # any sentence-transformers model; needs the extra [torch]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np

from models.bundle import MANIFEST, Bundle, read_bundle
from models.errors import BundleError, EncoderError
from models.static import StaticEncoder
from models.text import Cleaning

BUNDLED = Path(__file__).parent / "data" / "encoder"


class Encoder(Protocol):
    """Text in, unit vectors out. Vectors of two versions must never be compared."""

    version: str
    dim: int
    cleaning: Cleaning

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(n, dim) float32, C-contiguous, unit rows in input order; each row depends on its own text alone.

        Cleans the texts itself, by `cleaning`. A text with nothing in it gives a fixed unit vector, never NaN.
        Blocking: call it in a worker thread, never on the event loop.
        """
        ...


def load_encoder(ref: str | Path | None = None) -> Encoder:
    """The bundled encoder (None), a bundle directory (ONNX ones need the extra [onnx]), a character-aware
    student of training.robust, or a transformers directory or hub id (both need [torch]).

    Raises BundleError if a bundle is refused, EncoderError if there is nothing usable at `ref`.
    """
    path = BUNDLED if ref is None else Path(ref)
    if ref is None or (path / MANIFEST).exists():
        bundle = read_bundle(path)
        if bundle.manifest.backend == "static":
            return StaticEncoder(bundle) if bundle.manifest.whitening is None else _whitened(bundle)
        if bundle.manifest.backend == "onnx":
            return _onnx(bundle)
        raise EncoderError(f"{path} needs the back-end {bundle.manifest.backend!r}, which this version does not have")
    by_letters = (path / "character_encoder.json").exists()
    if path.is_dir() and not (by_letters or any((path / name).exists() for name in ("config.json", "modules.json"))):
        raise EncoderError(f"{path} holds neither {MANIFEST} (a bundle) nor config.json (a transformers model)")
    try:
        from models.characters import CharacterAwareEncoder
        from models.transformer import TransformerEncoder
    except ImportError as error:
        raise EncoderError(f"{str(ref)!r} is run by torch: install crisis-streams[torch] ({error})") from error
    return CharacterAwareEncoder(path) if by_letters else TransformerEncoder(ref)


def _onnx(bundle: Bundle) -> Encoder:
    if bundle.manifest.whitening is not None:
        raise EncoderError(f"{bundle.path} whitens an ONNX encoder, which this version does not: export it without")
    try:
        from models.onnx import OnnxEncoder
    except ImportError as error:
        raise EncoderError(f"{bundle.path} is run by ONNX Runtime: install crisis-streams[onnx] ({error})") from error
    return OnnxEncoder(bundle)


def _whitened(bundle: Bundle) -> Encoder:
    """A static encoder with the whitening its manifest names: `dim` is what comes out."""
    from models.whitening import WhitenedEncoder, Whitening

    manifest = bundle.manifest
    if manifest.whitening not in manifest.files:
        raise BundleError(f"{bundle.path} names the whitening {manifest.whitening!r} and does not hold it")
    whitening = Whitening.from_bytes((bundle.path / manifest.whitening).read_bytes())
    if whitening.axes.shape[1] != manifest.dim:
        raise BundleError(f"{bundle.path} has dim {manifest.dim}, its whitening gives {whitening.axes.shape[1]}")
    inner = msgspec.structs.replace(manifest, dim=len(whitening.mean))
    return WhitenedEncoder(StaticEncoder(msgspec.structs.replace(bundle, manifest=inner)), whitening, bundle.id)
