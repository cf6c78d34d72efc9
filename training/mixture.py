"""Teachers named by a knob: any encoder, or several as one, each text read once and kept.

flood                       the bundled static encoder; also "reader", a bundle's folder, a model directory or hub id
flood+1.4*DIR               both beside each other, the second weighted: cosine = (cos₁ + 1.96 cos₂) / 2.96
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from models.encoders.load import load_encoder
from models.encoders.protocol import Encoder
from models.errors import ConfigError
from models.text import Cleaning
from training.jobs import cache_dir, model_named
from training.keeping import keeping

__all__ = ["find_teacher"]

_WEIGHT = re.compile(r"(?P<weight>\d*\.?\d+)\*(?P<ref>.+)")


class Mixture:
    """Several encoders as one `Encoder`: their unit vectors end to end, each times its weight, as one unit vector.

    The cosine of two texts is the mean of the parts' cosines, weighted by the squares of the weights.
    """

    cleaning = Cleaning()  # what a caller may look at; every part cleans by its own

    def __init__(self, parts: Sequence[tuple[float, Encoder]]) -> None:
        self._parts = [(weight / np.sqrt(sum(w * w for w, _ in parts)), encoder) for weight, encoder in parts]
        self.version = "+".join(f"{weight:g}*{encoder.version}" for weight, encoder in parts)
        self.dim: int = sum(encoder.dim for _, encoder in parts)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(n, dim) float32 unit rows."""
        return np.concatenate([np.float32(weight) * encoder.encode(texts) for weight, encoder in self._parts], axis=1)


def find_teacher(named: str) -> Encoder:
    """The encoder or mixture that a knob `teacher=` names; vectors of each part are kept in CRISIS_CACHE/vectors.

    Raises ConfigError where a part is weighted 0 or is a folder that is not there, EncoderError if it cannot be loaded.
    """
    parts = []
    for part in named.split("+"):
        weighted = _WEIGHT.fullmatch(part)
        weight, ref = (float(weighted["weight"]), weighted["ref"]) if weighted else (1.0, part)
        if not weight or not ref:
            raise ConfigError(f"teacher={named}: {part!r} is no encoder; write REF or REF+1.4*REF")
        encoder = load_encoder(model_named(ref, "teacher"))
        parts.append((weight, keeping(encoder, cache_dir() / "vectors")))
    return Mixture(parts) if len(parts) > 1 else parts[0][1]
