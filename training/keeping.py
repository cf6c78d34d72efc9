"""Each text encoded once: vectors kept on disk by encoder version and text, for jobs that measure one encoder often."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from hashlib import blake2b
from io import BytesIO
from pathlib import Path

import numpy as np
from rich.progress import track

from models.encoders.protocol import Encoder
from models.encoders.words import WordedEncoder
from models.text import Cleaning
from training.jobs import write_atomically

__all__ = ["KeepingEncoder", "keeping"]

BATCH = 2048  # texts of one file: what a killed run loses at most


def keeping(encoder: Encoder, folder: Path) -> Encoder:
    """The encoder, which reads a text once and for all. Word axes, which are quick, are made anew: what is kept is good
    for whatever words stand beside it."""
    if isinstance(encoder, WordedEncoder):
        return dataclasses.replace(encoder, encoder=KeepingEncoder(encoder.encoder, folder))
    return KeepingEncoder(encoder, folder)


class KeepingEncoder:
    """An `Encoder` that reads only texts it has no vectors of. `folder`/VERSION holds a file for each batch."""

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        self.version, self.dim = encoder.version, encoder.dim
        self._encoder, self._folder = encoder, folder / encoder.version.replace("/", "_")
        self._known: dict[bytes, np.ndarray] = {}
        for path in sorted(self._folder.glob("*.npz")):
            with np.load(path) as kept:
                if kept["vectors"].shape[1:] == (self.dim,):
                    self._known.update(zip((bytes(key) for key in kept["keys"]), kept["vectors"], strict=True))

    @property
    def cleaning(self) -> Cleaning:
        return self._encoder.cleaning

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(n, dim) float32 unit rows in input order."""
        keys = [_key(text) for text in texts]
        unread = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        todo = sorted(
            unread, key=lambda key: len(unread[key])
        )  # of like length together: less padding in a transformer
        starts = range(0, len(todo), BATCH)
        for start in track(starts, f"encode {len(todo):,} texts", disable=len(starts) < 2, transient=True):
            batch = todo[start : start + BATCH]
            vectors = self._encoder.encode([unread[key] for key in batch])
            self._known.update(zip(batch, vectors, strict=True))
            file = BytesIO()
            np.savez(file, keys=np.frombuffer(b"".join(batch), np.uint8).reshape(-1, 16), vectors=vectors)
            name = blake2b(b"".join(batch), digest_size=8).hexdigest()
            write_atomically(self._folder / f"{name}.npz", file.getvalue())
        return np.stack([self._known[key] for key in keys]) if keys else np.zeros((0, self.dim), np.float32)


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
