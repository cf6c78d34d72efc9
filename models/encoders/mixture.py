"""Several encoders as one: what a student is taught by (training/mixture.py), and what clusters compare posts by.

Two encoders err on different posts, so the mean of their cosines tells better than either what belongs together: of 26
crises the reader alone clusters .61 (B³ F1), with the static encoder beside it .74 (training/results/clusters-*.json).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.encoders.protocol import Encoder
from models.text import Cleaning

__all__ = ["Mixture"]


class Mixture:
    """Several encoders as one `Encoder`: their unit vectors end to end, each times its weight, as one unit vector.

    The cosine of two texts is the mean of the parts' cosines, weighted by the squares of the weights.
    """

    cleaning = Cleaning()  # what a caller may look at; every part cleans by its own

    def __init__(self, parts: Sequence[tuple[float, Encoder]]) -> None:
        self._parts = [(weight / np.sqrt(sum(w * w for w, _ in parts)), encoder) for weight, encoder in parts]
        self.version = "+".join(f"{weight:g}*{encoder.version}" for weight, encoder in parts)
        self.dim: int = sum(encoder.dim for _, encoder in parts)

    @property
    def first(self) -> Encoder:
        return self._parts[0][1]

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(n, dim) float32 unit rows."""
        return self.joined(self.first.encode(texts), texts)

    def joined(self, found: np.ndarray, texts: Sequence[str]) -> np.ndarray:
        """`encode`, where the first part has read the texts already. found: (n, d), its unit rows."""
        read = [found, *(encoder.encode(texts) for _, encoder in self._parts[1:])]
        weights = [np.float32(weight) for weight, _ in self._parts]
        return np.concatenate([weight * rows for weight, rows in zip(weights, read, strict=True)], axis=1)
