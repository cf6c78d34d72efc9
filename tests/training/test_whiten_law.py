"""What whitening promises: the laws of the map, and of the encoder that wears it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.encoders.whitening import WhitenedEncoder, Whitening, fit_whitening
from models.errors import ConfigError, EncoderError, SampleTooSmall, VersionMismatch
from models.text import Cleaning


def sample(n: int, d: int, seed: int) -> np.ndarray:
    """Vectors in a narrow cone, as a raw masked LM gives them."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 8 * rng.normal(size=d)).astype(np.float32)


@settings(max_examples=30)
@given(st.integers(2, 24), st.integers(0, 10_000), st.data())
def test_the_covariance_of_the_mapped_fit_sample_is_the_identity(d, seed, data):
    dim = data.draw(st.integers(1, d))
    vectors = sample(40 * d, d, seed)
    mapped = fit_whitening(vectors, dim).apply(vectors).astype(np.float64)
    k = mapped.shape[1]
    np.testing.assert_allclose(mapped.mean(0), np.zeros(k), atol=0.02)
    np.testing.assert_allclose(np.cov(mapped.T, bias=True).reshape(k, k), np.eye(k), atol=0.02)


def test_it_is_the_papers_formula():
    vectors = sample(500, 6, 1).astype(np.float64)
    mu = vectors.mean(0)  # equation 2
    sigma = (vectors - mu).T @ (vectors - mu) / len(vectors)  # equation 3
    u, lam, _ = np.linalg.svd(sigma)  # equation 7
    w = u @ np.diag(lam**-0.5)  # equation 10
    ours = fit_whitening(vectors.astype(np.float32), 4)
    expected = (vectors - mu) @ w[:, :4]  # equation 1, top-k
    got = ours.apply(vectors.astype(np.float32))
    np.testing.assert_allclose(np.abs(got), np.abs(expected), atol=1e-3)  # axes have no sign


def test_the_two_dimensional_case_by_hand():
    # Four points: ±3 along the first axis, ±1 along the second, around (10, 20): variances 4.5 and .5.
    vectors = np.array([[13, 20], [7, 20], [10, 21], [10, 19]], np.float32)
    whitening = fit_whitening(vectors, 2)
    np.testing.assert_allclose(whitening.mean, [10, 20])
    np.testing.assert_allclose(
        whitening.apply(vectors), [[2**0.5, 0], [-(2**0.5), 0], [0, 2**0.5], [0, -(2**0.5)]], atol=1e-6
    )
    np.testing.assert_allclose(fit_whitening(vectors, 1).axes, [[4.5**-0.5], [0]], atol=1e-6)


def test_axes_that_hold_only_rounding_errors_are_dropped():
    flat = sample(400, 5, 2)
    flat[:, 4] = flat[:, 0]  # one direction is empty
    whitening = fit_whitening(flat, 5)
    assert whitening.axes.shape == (5, 4)
    assert np.abs(whitening.axes).max() < 1e3


def test_a_short_sample_or_a_wrong_dim_is_refused():
    with pytest.raises(SampleTooSmall, match="5 vectors of dim 5"):
        fit_whitening(sample(5, 5, 0), 3)
    with pytest.raises(SampleTooSmall, match="the same"):
        fit_whitening(np.ones((9, 3), np.float32), 2)
    with pytest.raises(ConfigError, match="between 1 and 3"):
        fit_whitening(sample(9, 3, 0), 4)


def test_the_map_survives_its_file_and_a_damaged_file_is_refused():
    whitening = fit_whitening(sample(60, 6, 3), 4)
    again = Whitening.from_bytes(whitening.to_bytes())
    np.testing.assert_array_equal(again.axes, whitening.axes)
    np.testing.assert_array_equal(again.mean, whitening.mean)
    with pytest.raises(EncoderError, match="not a whitening"):
        Whitening.from_bytes(whitening.to_bytes()[:-9])
    with pytest.raises(VersionMismatch, match="dim 5.*dim 6"):
        whitening.apply(sample(2, 5, 0))


class Toy:
    """Unit vectors from the letters of a text."""

    version, dim, cleaning = "toy", 6, Cleaning()

    def encode(self, texts):
        out = np.array([[t.count(c) + 1 for c in "aeiost"] for t in texts], np.float32)
        return out / np.linalg.norm(out, axis=1, keepdims=True)


def test_a_whitened_encoder_is_an_encoder():
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("aeiostn "), 30)) for _ in range(200)]
    whitening = fit_whitening(Toy().encode(texts), 3)
    encoder = WhitenedEncoder(Toy(), whitening)
    vectors = encoder.encode(texts)
    assert vectors.shape == (200, 3) and vectors.dtype == np.float32 and encoder.dim == 3
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(encoder.encode([texts[7]])[0], vectors[7], atol=1e-6)
    assert encoder.version.startswith("toy-w") and encoder.cleaning is Toy.cleaning
    assert encoder.version != WhitenedEncoder(Toy(), fit_whitening(Toy().encode(texts), 2)).version


def test_a_text_on_the_mean_gets_a_unit_vector():
    whitening = Whitening(Toy().encode([""])[0], np.eye(6, 2, dtype=np.float32))
    np.testing.assert_allclose(np.linalg.norm(WhitenedEncoder(Toy(), whitening).encode([""]), axis=1), 1)


def test_an_encoder_of_another_dimension_is_refused():
    with pytest.raises(VersionMismatch, match="toy has dim 6, the whitening 5"):
        WhitenedEncoder(Toy(), Whitening(np.zeros(5, np.float32), np.eye(5, dtype=np.float32)))
