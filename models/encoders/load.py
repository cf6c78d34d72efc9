"""How to get an encoder.

encoder = load_encoder()                                # the bundled one, a transformer that reads in context
encoder = load_encoder("flood")                         # the bundled static one: a hundred times as fast, reads words
encoder = load_encoder("path/to/bundle")                # a published version
encoder = load_encoder("crisistransformers/CT-XLMR-SE") # any sentence-transformers model; needs the extra [torch]
"""

from __future__ import annotations

import difflib
import importlib
import re
from pathlib import Path

import msgspec

from models.encoders.bundle import MANIFEST, WORDS, Bundle, read_bundle, without_words
from models.encoders.protocol import Encoder
from models.errors import BundleError, EncoderError

__all__ = ["FLOOD", "folder_of", "load_encoder"]

_DATA = Path(__file__).parents[1] / "data"
BUNDLED = {"reader": _DATA / "encoder", "flood": _DATA / "flood"}  # shipped with the package; the first is the default
FLOOD = BUNDLED["flood"]
# `backend` of a manifest → what makes an encoder of its bundle. Imported on use: none loads another's libraries.
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")  # owner/name
BACK_ENDS = {"static": "models.encoders.static:StaticEncoder", "onnx": "models.encoders.onnx:OnnxEncoder"}


def folder_of(ref: str | Path | None) -> Path:
    """The directory that a reference means: a bundled encoder's by its name, the default's for None."""
    return BUNDLED["reader"] if ref is None else BUNDLED.get(str(ref)) or Path(ref)


def load_encoder(ref: str | Path | Bundle | None = None) -> Encoder:
    """The bundled encoder (None or "reader"), the static one ("flood"), a bundle, verified or by its directory, a
    character-aware student of training.robust, or a transformers directory or hub id (both need [torch]).

    Raises BundleError if a bundle is refused, EncoderError if there is nothing usable at `ref`.
    """
    path = ref.path if isinstance(ref, Bundle) else folder_of(ref)
    if isinstance(ref, Bundle) or ref is None or str(ref) in BUNDLED or (path / MANIFEST).exists():
        bundle = ref if isinstance(ref, Bundle) else read_bundle(path)
        return _worded(bundle) if WORDS in bundle.manifest.files else _plain(bundle)
    if not path.exists():
        _refuse_a_typing_error(str(ref))
    by_letters = (path / "character_encoder.json").exists()
    if path.is_dir() and not (by_letters or any((path / name).exists() for name in ("config.json", "modules.json"))):
        raise EncoderError(f"{path} holds neither {MANIFEST} (a bundle) nor config.json (a transformers model)")
    try:
        from models.encoders.characters import CharacterAwareEncoder
        from models.encoders.transformer import TransformerEncoder
    except ImportError as error:
        no_folder = "" if path.exists() else "no folder here, and as a hub id "
        raise EncoderError(f"{str(ref)!r} is {no_folder}run by torch: pip install '.[torch]' ({error})") from error
    return CharacterAwareEncoder(path) if by_letters else TransformerEncoder(ref)


def _refuse_a_typing_error(ref: str) -> None:
    """Raises EncoderError for what is neither here nor the form of a hub id."""
    if not HUB_ID.fullmatch(ref) or ref.startswith((".", "~")):
        meant = difflib.get_close_matches(ref, BUNDLED, 1)
        told = f" (did you mean {meant[0]!r}?)" if meant else ""
        raise EncoderError(
            f"no such bundle, folder or hub id: {ref!r}{told}; bundled are {' and '.join(BUNDLED)}, a hub id reads "
            "owner/name"
        )


def _plain(bundle: Bundle) -> Encoder:
    return _made(bundle) if bundle.manifest.whitening is None else _whitened(bundle)


def _worded(bundle: Bundle) -> Encoder:
    """An encoder with the word axes its bundle holds: `dim` is what comes out. Within is the encoder that the bundle
    would be without them, so that vectors kept of it stay good when the words are learnt anew."""
    from models.encoders.words import WordedEncoder, WordScores

    words = WordScores.from_bytes((bundle.path / WORDS).read_bytes())
    plain = msgspec.structs.replace(bundle, manifest=without_words(bundle.manifest, words.axes))
    return WordedEncoder(_plain(plain), words, bundle.id)


def _made(bundle: Bundle) -> Encoder:
    name = bundle.manifest.backend
    if name not in BACK_ENDS:
        raise EncoderError(f"{bundle.path} needs the back-end {name!r}, which this version does not have")
    module, made = BACK_ENDS[name].split(":")
    try:
        encoder: Encoder = getattr(importlib.import_module(module), made)(bundle)
    except ImportError as error:
        raise EncoderError(f"{bundle.path} needs the back-end {name!r}, which is not installed: {error}") from error
    return encoder


def _whitened(bundle: Bundle) -> Encoder:
    """An encoder with the whitening its manifest names: `dim` is what comes out."""
    from models.encoders.whitening import WhitenedEncoder, Whitening

    manifest = bundle.manifest
    if manifest.whitening not in manifest.files:
        raise BundleError(f"{bundle.path} names the whitening {manifest.whitening!r} and does not hold it")
    whitening = Whitening.from_bytes((bundle.path / manifest.whitening).read_bytes())
    if whitening.axes.shape[1] != manifest.dim:
        raise BundleError(f"{bundle.path} has dim {manifest.dim}, its whitening gives {whitening.axes.shape[1]}")
    inner = msgspec.structs.replace(manifest, dim=len(whitening.mean))
    return WhitenedEncoder(_made(msgspec.structs.replace(bundle, manifest=inner)), whitening, bundle.id)
