"""The static encoder: a table of vectors; a post is the unit vector of the sum of its features' rows.

Features are the pieces of a multilingual tokenizer and, where the bundle says so, groups of consonants that every
script shares (`models.skeleton`). The weight of a feature is the length of its row, so rare words speak louder than
"the" without a second table. No attention, no torch; most of the time is the tokenizer's. Rows are int8, one scale each.
Compare model2vec (https://github.com/MinishLab/model2vec) and SIF (Arora, Liang, Ma 2017); ours is trained across
languages by `training.distill`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from models.bundle import Bundle
from models.errors import BundleError
from models.skeleton import GRAMS, skeleton_grams
from models.text import Cleaning, clean

BATCH = 1024  # posts split at a time: enough to keep the tokenizer's threads busy


def features(
    tokenizer: Tokenizer, texts: Sequence[str], cleaning: Cleaning, max_length: int, with_skeleton: bool
) -> list[np.ndarray]:
    """The rows each text reads: its first `max_length` pieces, then its skeleton groups, int32.

    Training and serving call this same function.
    """
    cleaned = [clean(text, cleaning) for text in texts]
    encodings = tokenizer.encode_batch_fast(cleaned, add_special_tokens=False)
    pieces = [np.array(encoding.ids[:max_length], np.int32) for encoding in encodings]
    if not with_skeleton:
        return pieces
    first = tokenizer.get_vocab_size()
    return [
        np.concatenate([ids, skeleton_grams(text)[: 2 * max_length] + first])
        for ids, text in zip(pieces, cleaned, strict=True)
    ]


class StaticEncoder:
    """`Encoder` over a bundle whose back-end is "static"."""

    def __init__(self, bundle: Bundle) -> None:
        tensors = load_file(bundle.path / "model.safetensors")
        manifest = bundle.manifest
        try:
            rows, scales, self._empty = tensors["rows"], tensors["scales"], tensors["empty"]
        except KeyError as error:
            raise BundleError(f"{bundle.path}: model.safetensors has no tensor {error}") from None
        self.version: str = manifest.id
        self.dim: int = manifest.dim
        self.cleaning: Cleaning = manifest.cleaning
        self._max_length = manifest.max_length
        self._skeleton = bool(manifest.settings.get("skeleton", False))
        self._tokenizer = Tokenizer.from_file(str(bundle.path / "tokenizer.json"))
        expected = self._tokenizer.get_vocab_size() + (GRAMS if self._skeleton else 0)
        if rows.shape != (expected, self.dim) or self._empty.shape != (self.dim,):
            raise BundleError(f"{bundle.path}: table {rows.shape}, but {expected} features of dim {self.dim}")
        self._table = rows.astype(np.float32) * scales[:, None].astype(np.float32)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(n, dim) float32, C-contiguous, unit rows, row i for texts[i], whatever else is in the list."""
        out = np.empty((len(texts), self.dim), np.float32)
        for start in range(0, len(texts), BATCH):
            self._encode_into(out[start : start + BATCH], texts[start : start + BATCH])
        return out

    def _encode_into(self, out: np.ndarray, texts: Sequence[str]) -> None:
        found = features(self._tokenizer, texts, self.cleaning, self._max_length, self._skeleton)
        # One sum a post: numpy's reduceat over the whole batch took 13 times as long.
        for row, ids in zip(out, found, strict=True):
            self._table.take(ids, axis=0).sum(axis=0, out=row)
        norms = np.linalg.norm(out, axis=1, keepdims=True)
        # No feature, or features that cancel: the direction stored for "nothing said", so that no row is ever NaN.
        nothing = norms[:, 0] < 1e-6
        out[nothing], norms[nothing] = self._empty, 1.0
        out /= norms
