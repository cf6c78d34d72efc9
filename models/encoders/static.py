"""The static encoder: a table of vectors; a post is the unit vector of the sum of its features' rows.

Features are the pieces of a multilingual tokenizer and, where the bundle says so, groups of consonants that every
script shares (`models.encoders.consonants`) and groups of letters that survive slips (`models.encoders.letter_ngrams`);
"w4t3r" is read as "water" first (`models.encoders.leet`). The weight of a feature is the length of its row, so rare
words speak louder than "the" without a second table. No attention, no torch; most of the time is the tokenizer's. Rows
are int8, one scale each. Compare model2vec (https://github.com/MinishLab/model2vec) and SIF (Arora, Liang, Ma 2017);
ours is trained across languages by `training.distill`.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec
import numpy as np
from msgspec import Struct
from safetensors.numpy import load_file
from scipy.sparse import csr_array
from tokenizers import Tokenizer

from models.encoders.bundle import Bundle, Manifest
from models.encoders.consonants import GRAMS, skeleton_grams
from models.encoders.leet import Leet
from models.encoders.letter_ngrams import letter_groups
from models.encoders.word_cache import WordCache, words_are_independent
from models.errors import BundleError
from models.text import Cleaning, clean

__all__ = ["Reader", "Reading", "StaticEncoder", "reading_of"]

BATCH = 1024  # posts split at a time: enough to keep the tokenizer's threads busy
# The tokenizer needs no interpreter lock: meanwhile the other features are made.
_BESIDE = ThreadPoolExecutor(1, thread_name_prefix="tokenise")


class Reading(Struct, frozen=True):
    """What of a text a static encoder reads; kept in its bundle's settings."""

    max_length: int  # pieces; twice as many consonant groups and four times as many letter groups
    skeleton: bool = False
    letters: int = 0  # rows for letter groups; 0 = none are read
    leet: bool = False  # digits and signs inside words as letters (models.encoders.leet)

    def rows(self, pieces: int) -> int:
        """Rows of the table: one for each piece, then consonant groups, then letter groups."""
        return pieces + (GRAMS if self.skeleton else 0) + self.letters


class Reader:
    """From texts to the rows they read. Training and serving use this same one."""

    def __init__(self, tokenizer: Tokenizer, cleaning: Cleaning, reading: Reading) -> None:
        self.tokenizer, self.cleaning, self.reading = tokenizer, cleaning, reading
        self._pieces = tokenizer.get_vocab_size()
        self._leet = Leet(tokenizer) if reading.leet else None
        self._words = WordCache(tokenizer) if words_are_independent(tokenizer) else None

    def features(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The rows the texts read, one text after another, int32, and where each text begins and ends: text i has
        `found[starts[i] : starts[i + 1]]`.
        """
        reading, most = self.reading, self.reading.max_length
        cleaned = [clean(text, self.cleaning) for text in texts]
        if self._leet:
            cleaned = [self._leet.read(text) for text in cleaned]
        whole = None  # a tokenizer that reads whole texts does so meanwhile, in its own threads
        if self._words is None:
            whole = _BESIDE.submit(self.tokenizer.encode_batch_fast, cleaned, add_special_tokens=False)
        kinds = []
        first = self._pieces
        if reading.skeleton:
            grams, owner = skeleton_grams(cleaned)
            kinds.append(_first(grams + np.int32(first), owner, 2 * most))
        if reading.letters:
            first += reading.rows(0) - reading.letters
            groups, owner = letter_groups(cleaned, reading.letters)
            kinds.append(_first(groups + np.int32(first), owner, 4 * most))
        if self._words is not None:
            pieces = self._words.pieces(cleaned)
        elif whole is not None:
            pieces = [np.array(encoding.ids, np.int32) for encoding in whole.result()]
        owner = np.repeat(np.arange(len(texts)), list(map(len, pieces)))
        kinds.insert(0, _first(np.concatenate([np.zeros(0, np.int32), *pieces]), owner, most))
        rows, owner = (np.concatenate(columns) for columns in zip(*kinds, strict=True))
        order = np.argsort(owner.astype(np.min_scalar_type(len(texts))), kind="stable")  # 16 bits: sorted in two passes
        starts = np.cumsum([0, *np.bincount(owner, minlength=len(texts))])
        return rows[order], starts


def _first(rows: np.ndarray, owner: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The first `most` rows of each text. owner: the place of the text that each is of, rising."""
    if (np.bincount(owner) <= most).all():
        return rows, owner
    kept = np.arange(len(rows)) - np.searchsorted(owner, owner) < most
    return rows[kept], owner[kept]


def reading_of(manifest: Manifest) -> Reading:
    """What the encoder of that manifest reads."""
    return msgspec.convert({**manifest.settings, "max_length": manifest.max_length}, Reading)


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
        tokenizer = Tokenizer.from_file(str(bundle.path / "tokenizer.json"))
        self._reader = Reader(tokenizer, self.cleaning, reading_of(manifest))
        expected = self._reader.reading.rows(tokenizer.get_vocab_size())
        if rows.shape != (expected, self.dim) or self._empty.shape != (self.dim,):
            raise BundleError(f"{bundle.path}: table {rows.shape}, but {expected} features of dim {self.dim}")
        self._table = np.multiply(rows, scales[:, None].astype(np.float32), dtype=np.float32)  # in one pass

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(n, dim) float32, C-contiguous, unit rows, row i for texts[i], whatever else is in the list."""
        out = np.empty((len(texts), self.dim), np.float32)
        for start in range(0, len(texts), BATCH):
            self._encode_into(out[start : start + BATCH], texts[start : start + BATCH])
        return out

    def _encode_into(self, out: np.ndarray, texts: Sequence[str]) -> None:
        found, starts = self._reader.features(texts)
        # Sums of rows as a sparse product: a loop of numpy sums took 6 times as long, its reduceat 80 times.
        ones = np.ones(len(found), np.float32)
        out[:] = csr_array((ones, found, starts), shape=(len(texts), len(self._table))) @ self._table
        norms = np.linalg.norm(out, axis=1, keepdims=True)
        # No feature, or features that cancel: the direction stored for "nothing said", so that no row is ever NaN.
        nothing = norms[:, 0] < 1e-6
        out[nothing], norms[nothing] = self._empty, 1.0
        out /= norms
