"""What every encoder keeps, whatever computes it (models/encoders/protocol.py)."""

from __future__ import annotations

import random

import numpy as np

from models.encoders.protocol import Encoder
from models.text import Cleaning

TEXTS = [
    "we need water",
    "",
    "Su lazım, 5 kişi enkaz altında 🙏",
    "我们被困在屋顶上",
    " \n\t ",
    "w4t3r pls!!!",
    "محتاجين ماء",
    "a" * 3_000,
    "\x00\u200b\ud800 odd",
    "we need water",
    "необходима вода " * 40,
]


def check_encoder(encoder: Encoder, atol: float = 1e-5) -> None:
    """Unit rows in the order of the texts, each of its own text alone; never NaN; asked twice, the same.

    atol: how far a row may move with its company (0 for tables; a few roundings for what batches).
    """
    assert isinstance(encoder.version, str) and encoder.version and isinstance(encoder.cleaning, Cleaning)
    none = encoder.encode([])
    assert none.shape == (0, encoder.dim) and none.dtype == np.float32

    vectors = encoder.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), encoder.dim)
    assert vectors.dtype == np.float32 and vectors.flags.c_contiguous
    unit = np.isclose(np.linalg.norm(vectors, axis=1), 1, rtol=0, atol=1e-4)  # not so of NaN
    odd = [text[:40] for text, so in zip(TEXTS, unit, strict=True) if not so]
    assert not odd, f"no unit vector for {odd}: a text with nothing in it needs one fixed vector too"
    np.testing.assert_array_equal(encoder.encode(TEXTS), vectors)

    def near(found: np.ndarray, expected: np.ndarray, law: str) -> None:
        assert ((found * expected).sum(1) > 1 - max(atol, 1e-6)).all(), law

    for seed in range(3):
        order = list(range(len(TEXTS)))
        random.Random(seed).shuffle(order)
        near(encoder.encode([TEXTS[i] for i in order]), vectors[order], "row i is text i's, in any order")
    near(np.concatenate([encoder.encode([text]) for text in TEXTS]), vectors, "a text alone and among others is one")
    near(encoder.encode(["water", "su lazım"] * 650 + TEXTS)[-len(TEXTS) :], vectors, "more than one window of texts")
    near(vectors[[0]], vectors[[9]], "the same text twice")
    near(vectors[[1]], vectors[[4]], "nothing to read, twice")
    cleaned = encoder.encode(["need water https://a.example/1 @ann", "need water  https://b.example/2\n@bob"])
    near(cleaned[:1], cleaned[1:], "the encoder cleans by itself: clean(text, self.cleaning)")
