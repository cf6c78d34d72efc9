"""Adapting an encoder: the space its head reads."""

import numpy as np

from training.tower import even_out


def test_evening_out_half_way_takes_the_root_of_every_variance():
    rng = np.random.default_rng(1)
    sample = rng.normal(size=(4000, 3)) * [2.0, 1.0, 0.5] + [1.0, 2.0, 3.0]
    mean, turn = even_out(sample, 0.5)
    turned = (sample - mean) @ turn
    variance = np.linalg.eigvalsh(np.cov((sample - mean).T))
    np.testing.assert_allclose(np.linalg.eigvalsh(np.cov(turned.T)), np.sqrt(variance), rtol=1e-3)
