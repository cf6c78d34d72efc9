"""Probe vectors: a few texts whose vectors are stored with a version, so that a worker can tell that it computes the
same.

They also warm an encoder up. A wrong tokenizer library, a broken accelerator or a quantised kernel that rounds
otherwise on this processor shows here, before the version serves a post.
"""

from __future__ import annotations

import base64

import numpy as np

from models.encoders.protocol import Encoder
from models.encoders.shouting import quieter
from models.errors import EncoderError

__all__ = ["PROBES", "check_probes", "probe_vectors"]

PROBES = (
    "We are trapped on the roof and the water is rising, please send help",
    "Necesitamos agua y comida para los niños de la escuela",
    "نحتاج إلى خيام وأدوية",
    "मेरे भाई को ढूंढने में मदद करें",
    "需要饮用水和药品",
    "NEED WATER NOW 🙏🙏 https://example.org/x @somebody",
    "",
)
LEAST_COSINE = 0.999  # bf16 against float32 stays above it, another tokenizer or table does not


def probe_vectors(encoder: Encoder) -> str:
    """The probes' vectors as base64 of little-endian float16, for the manifest."""
    return base64.b64encode(encoder.encode(list(PROBES)).astype("<f2").tobytes()).decode()


def check_probes(encoder: Encoder, stored: str | None = None) -> None:
    """Encode the probes and hold them to what an encoder promises, and to the stored vectors where there are any.

    Raises EncoderError naming what is wrong.
    """
    vectors = encoder.encode(list(PROBES))
    shape = (len(PROBES), encoder.dim)
    if vectors.shape != shape:
        raise EncoderError(f"encoder {encoder.version} gave {vectors.shape} for {shape[0]} texts of {shape[1]} dims")
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
    if not np.allclose(norms, 1.0, atol=1e-3):  # false for NaN too
        raise EncoderError(
            f"encoder {encoder.version} gives vectors that are not unit rows: lengths {norms.round(3).tolist()}"
        )
    alone = encoder.encode([PROBES[0]])[0]
    if float(alone @ vectors[0]) < LEAST_COSINE:
        raise EncoderError(f"encoder {encoder.version}: a text's vector depends on the texts beside it")
    if stored is None:
        return
    raw = np.frombuffer(base64.b64decode(stored), "<f2")
    if raw.size != vectors.size:
        raise EncoderError(
            f"encoder {encoder.version} was published with {raw.size} probe values, gives {vectors.size}"
        )
    cosines = (raw.reshape(shape).astype(np.float32) * vectors).sum(1)
    # Capitals may have been read as they are where it was published: models/encoders/shouting.py came later.
    cosines[[quieter(text) != text for text in PROBES]] = 1.0
    if (worst := float(cosines.min())) < LEAST_COSINE:
        raise EncoderError(
            f"encoder {encoder.version} does not compute here what it did where it was published: cosine "
            f"{worst:.4f} on "
            f"{PROBES[int(cosines.argmin())]!r}; compare the versions of tokenizers and the back-end"
        )
