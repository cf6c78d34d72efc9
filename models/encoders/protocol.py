"""What an encoder is. Kept alone, so that whoever needs only the type loads no back-end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from models.text import Cleaning

__all__ = ["Encoder"]


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
