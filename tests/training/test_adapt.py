"""Adapting an encoder: the space its head reads."""

import numpy as np

from training.evening import draw_together, even_out


def test_evening_out_half_way_takes_the_root_of_every_variance():
    rng = np.random.default_rng(1)
    sample = rng.normal(size=(4000, 3)) * [2.0, 1.0, 0.5] + [1.0, 2.0, 3.0]
    mean, turn = even_out(sample, 0.5)
    turned = (sample - mean) @ turn
    variance = np.linalg.eigvalsh(np.cov((sample - mean).T))
    np.testing.assert_allclose(np.linalg.eigvalsh(np.cov(turned.T)), np.sqrt(variance), rtol=1e-3)


def test_what_sets_a_sentence_apart_from_its_translation_is_made_narrow():
    rng = np.random.default_rng(1)
    meaning = rng.normal(size=(4000, 4))
    language = np.array([3.0, 1.0, 0.0, 0.0])  # how far two languages are apart along each axis
    first, second = (meaning + language / 2 * rng.normal(size=(4000, 4)) for _ in range(2))
    turn = draw_together(first, second, floor=0.5)
    variance = language**2 / 4
    stretch = (variance + 0.5 * variance.mean()) ** -0.5
    np.testing.assert_allclose(turn, np.diag(stretch / stretch.mean()), atol=0.05)


def test_languages_that_are_as_far_apart_in_every_direction_stay_as_they_are():
    apart = np.concatenate([np.eye(5), -np.eye(5)])
    np.testing.assert_allclose(draw_together(apart, np.zeros_like(apart)), np.eye(5), atol=1e-6)
