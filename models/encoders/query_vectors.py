"""Vectors of the standing texts (the bundled queries' sentences and the background), stored with a version.

A worker that takes a version over needs them all before it can serve. Reading them takes milliseconds whatever the
encoder; encoding them takes a transformer on two cores over a minute. Texts that are not stored, such as a query added
live, are encoded as ever, so the file may be old or absent and nothing but time is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from models.encoders.protocol import Encoder
from models.errors import BundleError, VersionMismatch
from models.queries import background_texts, load_queries

__all__ = ["CachedEncoder", "Known", "pack_vectors", "read_vectors", "standing_texts"]

Known = Mapping[str, np.ndarray]  # text → its (d,) float32 unit vector


class _About(Struct, frozen=True):
    """What lies beside the vectors. One string: safetensors does not keep the order of several, so bytes
    would differ.
    """

    encoder_version: str
    texts: list[str]


class CachedEncoder:
    """An `Encoder` that reads only the texts whose vectors are not known yet."""

    def __init__(self, encoder: Encoder, known: Known) -> None:
        self.version, self.dim, self.cleaning = encoder.version, encoder.dim, encoder.cleaning
        self._encoder, self._known = encoder, known

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(n, dim) float32 unit rows; each distinct unknown text is encoded once."""
        unread = list({text: None for text in texts if text not in self._known})
        fresh = dict(zip(unread, self._encoder.encode(unread), strict=True)) if unread else {}
        rows = [self._known[text] if text in self._known else fresh[text] for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.dim), np.float32)


def standing_texts() -> list[str]:
    """Each sentence of the bundled queries and each background text, once."""
    return list(dict.fromkeys([*(text for q in load_queries() for _, text in q.texts()), *background_texts()]))


def pack_vectors(encoder: Encoder, texts: Sequence[str]) -> bytes:
    """The texts and their vectors as safetensors, for QUERY_VECTORS."""
    about = msgspec.json.encode(_About(encoder.version, list(texts))).decode()
    return save({"vectors": encoder.encode(texts)}, metadata={"about": about})


def read_vectors(path: Path, encoder: Encoder) -> Known:
    """What `pack_vectors` wrote.

    Raises VersionMismatch if they are of another encoder or dimension, BundleError if they are not there or cannot be
    read.
    """
    try:
        with safe_open(path, "numpy") as file:
            about = msgspec.json.decode((file.metadata() or {}).get("about", ""), type=_About)
            vectors = file.get_tensor("vectors")
    except OSError as error:
        raise BundleError(f"{path} is not there: {error}") from None
    except (SafetensorError, msgspec.MsgspecError) as error:
        raise BundleError(f"{path}: {error}") from error
    if (about.encoder_version, vectors.shape) != (encoder.version, (len(about.texts), encoder.dim)):
        raise VersionMismatch(
            f"{path} holds {vectors.shape} vectors of {about.encoder_version} for {len(about.texts)} texts, "
            "the encoder "
            f"is {encoder.version} with {encoder.dim} dims: publish it again"
        )
    return dict(zip(about.texts, vectors, strict=True))
