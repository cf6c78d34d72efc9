"""Teachers named by a knob: any encoder, or several as one, each text read once and kept.

flood                       the bundled static encoder; also "reader", a bundle's folder, a model directory or hub id
flood+1.4*DIR               both beside each other, the second weighted: cosine = (cos₁ + 1.96 cos₂) / 2.96
"""

from __future__ import annotations

import re

from models.encoders.load import load_encoder
from models.encoders.mixture import Mixture
from models.encoders.protocol import Encoder
from models.errors import ConfigError
from training.jobs import cache_dir, model_named
from training.keeping import keeping

__all__ = ["find_teacher"]

_WEIGHT = re.compile(r"(?P<weight>\d*\.?\d+)\*(?P<ref>.+)")


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
