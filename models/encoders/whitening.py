"""Whitening: a linear map after which an encoder's vectors have mean 0 and the identity as covariance.

It spreads the vectors of a raw masked LM, whose cosines are all near 1, and drops its narrowest axes. It harms encoders
that were trained to be compared; `training.whiten` measures which it is and refuses the second.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct
from safetensors import SafetensorError
from safetensors.numpy import load, save

from models.encoders.protocol import Encoder
from models.errors import ConfigError, EncoderError, SampleTooSmall, VersionMismatch
from models.text import Cleaning

__all__ = ["WhitenedEncoder", "Whitening", "fit_whitening"]

# An axis this much narrower than the widest holds rounding errors; whitening would blow them up to the size of meaning.
NARROWEST = 1e-6


class Whitening(Struct, frozen=True, eq=False):
    """The map x → (x − mean) @ axes."""

    mean: np.ndarray  # (d,) float32, μ
    axes: np.ndarray  # (d, k) float32, W: column j is the j-th widest axis divided by its standard deviation

    def apply(self, vectors: np.ndarray) -> np.ndarray:
        """(n, d) → (n, k) float32, not of unit length. Raises VersionMismatch if d is another."""
        if vectors.shape[-1] != len(self.mean):
            raise VersionMismatch(
                f"vectors have dim {vectors.shape[-1]}, this whitening was fitted on dim {len(self.mean)}: fit it again"
                " on the encoder it is used with"
            )
        mapped: np.ndarray = (vectors.astype(np.float32) - self.mean) @ self.axes
        return mapped

    def to_bytes(self) -> bytes:
        """A safetensors file with `mean` and `axes`."""
        return save({"mean": self.mean, "axes": self.axes})

    @classmethod
    def from_bytes(cls, content: bytes) -> Whitening:
        """The inverse of `to_bytes`. Raises EncoderError if it is not a whitening."""
        try:
            tensors = load(content)
            whitening = cls(tensors["mean"], tensors["axes"])
        except (SafetensorError, KeyError) as error:
            raise EncoderError(f"not a whitening file: {error}") from None
        if whitening.axes.ndim != 2 or whitening.mean.shape != whitening.axes.shape[:1]:
            raise EncoderError(f"a whitening of shapes {whitening.mean.shape} and {whitening.axes.shape} is none")
        return whitening


def fit_whitening(vectors: np.ndarray, dim: int) -> Whitening:
    """Fit the map that makes the sample's covariance the identity, keeping the `dim` widest axes.

    vectors: (n, d) float32, n > d. Source: Su et al. 2021, https://arxiv.org/abs/2103.15316; Li et al. 2024 (USTCCTSU),
    equations 1 to 10: μ is the mean, W = U Λ^(-1/2) of the covariance U Λ Uᵀ, cut to k columns.
    We differ: axes with less than 1e-6 of the widest one's variance are dropped, so a short sample cannot blow up
    noise; the map then has fewer than `dim` columns.
    Raises SampleTooSmall if n <= d, ConfigError if dim is not in 1..d.
    """
    n, d = vectors.shape
    if not 1 <= dim <= d:
        raise ConfigError(f"cannot keep {dim} of {d} axes: choose dim between 1 and {d}")
    if n <= d:
        raise SampleTooSmall(f"{n} vectors of dim {d}: whitening needs more vectors than dimensions")
    sample = vectors.astype(np.float64)
    mean = sample.mean(0)
    centred = sample - mean
    variances, axes = np.linalg.eigh(centred.T @ centred / n)  # ascending
    variances, axes = variances[::-1][:dim], axes[:, ::-1][:, :dim]
    kept = variances > NARROWEST * variances[0]
    if not kept.any():
        raise SampleTooSmall(f"all {n} vectors are the same: there is nothing to whiten")
    axes = axes[:, kept] / np.sqrt(variances[kept])
    # An axis has no direction of its own; without this, two libraries would give mirrored vectors.
    axes *= np.sign(axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])])
    return Whitening(mean.astype(np.float32), np.ascontiguousarray(axes, dtype=np.float32))


@dataclass
class WhitenedEncoder:
    """`Encoder`: another encoder's vectors, whitened, at unit length. Its version names both where none is given."""

    encoder: Encoder
    whitening: Whitening
    version: str = ""

    def __post_init__(self) -> None:
        if self.encoder.dim != len(self.whitening.mean):
            raise VersionMismatch(
                f"encoder {self.encoder.version} has dim {self.encoder.dim}, the whitening {len(self.whitening.mean)}"
            )
        digest = hashlib.sha256(self.whitening.to_bytes()).hexdigest()[:8]
        self.version = self.version or f"{self.encoder.version}-w{digest}"
        self.dim: int = self.whitening.axes.shape[1]
        self.cleaning: Cleaning = self.encoder.cleaning

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(n, dim) float32, unit rows. A vector that falls on the mean gets the narrowest axis, never NaN."""
        vectors = self.whitening.apply(self.encoder.encode(texts))
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        at_mean = norms[:, 0] < 1e-6
        vectors[at_mean], norms[at_mean] = np.eye(self.dim, dtype=np.float32)[-1], 1.0
        unit: np.ndarray = vectors / norms
        return unit
