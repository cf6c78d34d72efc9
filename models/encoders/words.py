"""Word axes: what a post's very words say of its class, as a few short axes beside its vector.

A transformer knows the sense and blurs the word: in a language it has seen little of it tells *that* something is
asked for and not *what*. Words know what, where they were seen. So `training.words` weighs words, pairs of words and
beginnings of words for each class of post, and what they say stands beside the vector,

    [v, s · (log p(class | words) − mean)] / length          s, the share, is small

where a head reads it (models/reading.py). Cosines hardly change, and whatever takes vectors need not know.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from msgspec import Struct
from safetensors import SafetensorError
from safetensors.numpy import load, save

from models.encoders.protocol import Encoder
from models.errors import EncoderError
from models.text import Cleaning, clean

__all__ = ["LEAST", "WordScores", "WordedEncoder", "units"]

LEAST = -12.0  # log-probability below which a class is just unlikely
BEGINNING = 4  # letters: what most inflections leave of a word

# `\w` alone splits a word of Tamil or Hindi at its vowel signs. What is written without spaces is read by the letter.
_MARKS = "".join(c for c in map(chr, range(0x300, 0x10000)) if unicodedata.category(c) in ("Mn", "Mc"))
_ALONE = "\u0e01-\u0e46\u0e81-\u0ec6\u1000-\u109f\u1780-\u17dd\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff"
_UNIT = re.compile(rf"[{_ALONE}][{_MARKS}]*|[^\W{_ALONE}]+(?:[{_MARKS}]+[^\W{_ALONE}]*)*")


def units(text: str) -> list[str]:
    """The words of a cleaned text in lower case, its pairs of neighbours, and the beginnings of its longer words."""
    words = _UNIT.findall(text.lower())
    pairs = [f"{one} {next_}" for one, next_ in zip(words, words[1:], strict=False)]
    return [*words, *pairs, *(f"{word[:BEGINNING]}*" for word in words if len(word) > BEGINNING)]


class WordScores(Struct, frozen=True, eq=False):
    """A multinomial logistic regression over `units`, weights in 8 bits."""

    classes: list[str]
    place: dict[str, int]  # unit → row
    rarity: np.ndarray  # (n,) float32, inverse document frequency
    weights: np.ndarray  # (n, classes) int8
    steps: np.ndarray  # (classes,) float32: what 1 of a class's weights stands for
    bias: np.ndarray  # (classes,) float32
    share: float  # s: length of an axis for each unit of log-probability

    @property
    def axes(self) -> int:
        return len(self.bias)

    def axes_of(self, cleaned: Sequence[str]) -> np.ndarray:
        """(n, axes) float32: s · (log p − its mean over the classes) of each text."""
        return self.scaled(self.log_probabilities(cleaned))

    def scaled(self, log_probabilities: np.ndarray) -> np.ndarray:
        """(n, axes) float32: log-probabilities as axes."""
        found = np.maximum(log_probabilities, LEAST)
        axes: np.ndarray = self.share * (found - found.mean(axis=1, keepdims=True))
        return axes.astype(np.float32)

    def log_probabilities(self, cleaned: Sequence[str]) -> np.ndarray:
        """(n, axes) float32: log p of each class by the words alone; of a text of unknown words, by the bias."""
        logits = np.empty((len(cleaned), self.axes), np.float32)
        for row, text in zip(logits, cleaned, strict=True):
            known = [at for unit in set(units(text)) if (at := self.place.get(unit)) is not None]
            known.sort()  # a set has no order, a sum in floats does
            weighed = self.rarity[known] / max(float(np.linalg.norm(self.rarity[known])), 1e-9)
            row[:] = (weighed @ self.weights[known]) * self.steps + self.bias
        found: np.ndarray = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        return found

    def to_bytes(self) -> bytes:
        """A safetensors file."""
        tensors = {"rarity": self.rarity, "weights": self.weights, "steps": self.steps, "bias": self.bias}
        tensors["share"] = np.array([self.share], np.float32)
        tensors |= {"classes": _packed(self.classes), "units": _packed(list(self.place))}
        return save(tensors)

    @classmethod
    def from_bytes(cls, content: bytes) -> WordScores:
        """The inverse of `to_bytes`. Raises EncoderError if it is none."""
        try:
            found = load(content)
            place = {unit: i for i, unit in enumerate(_unpacked(found["units"]))}
            classes = _unpacked(found["classes"])
            rarity, weights, steps, bias = (found[name] for name in ("rarity", "weights", "steps", "bias"))
            share = float(found["share"][0])
        except (SafetensorError, KeyError, IndexError, msgspec.MsgspecError) as error:
            raise EncoderError(f"not a file of word scores: {error}") from None
        n, k = len(place), len(classes)
        if (rarity.shape, weights.shape, steps.shape, bias.shape) != ((n,), (n, k), (k,), (k,)):
            raise EncoderError(
                f"word scores of {n} units and {k} classes, weights of shape {weights.shape}: not one model"
            )
        return cls(classes, place, rarity, weights, steps, bias, share)


@dataclass
class WordedEncoder:
    """`Encoder`: another encoder's vectors with word axes beside them, at unit length."""

    encoder: Encoder
    words: WordScores
    version: str

    def __post_init__(self) -> None:
        self.dim: int = self.encoder.dim + self.words.axes
        self.cleaning: Cleaning = self.encoder.cleaning

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(n, dim) float32, unit rows in input order."""
        return beside(self.encoder.encode(texts), self.words.axes_of([clean(t, self.cleaning) for t in texts]))


def _packed(names: list[str]) -> np.ndarray:
    """As JSON in a tensor of bytes: safetensors does not keep the order of metadata."""
    return np.frombuffer(msgspec.json.encode(names), np.uint8)


def _unpacked(tensor: np.ndarray) -> list[str]:
    return msgspec.json.decode(tensor.tobytes(), type=list[str])


def beside(vectors: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """(n, d) unit rows and (n, k) → (n, d + k) float32 unit rows."""
    both = np.hstack([vectors, axes])
    unit: np.ndarray = both / np.linalg.norm(both, axis=1, keepdims=True)
    return unit
