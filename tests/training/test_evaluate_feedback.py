"""The measure of what labels teach: its arithmetic, on tasks made up."""

import numpy as np
import pytest

from models.feedback.choice import Copies
from models.feedback.fit import Space
from training.evaluate import feedback
from training.evaluate.__main__ import read_job

CONFIG = feedback.Config(labels=(20, 40), positives=4)


def task(seed: int = 0, n: int = 200, d: int = 12) -> feedback.Task:
    """Right where the first axis is high, which the shipped query does not see."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, d)).astype(np.float32)
    right = vectors[:, 0] > 0.8
    texts = [f"word{i} other{i} third{i}" for i in range(n)]
    shipped = 0.3 * vectors[:, 1].astype(np.float64) - 1
    return feedback.Task("flood", "requests", vectors, texts, ["en"] * n, shipped, right, int(0.6 * n))


def test_labels_raise_average_precision_and_no_judging_post_is_labelled():
    space = Space(np.zeros(12, np.float32), float(np.sqrt(12)))
    curve = feedback.run(CONFIG, task(), space, 0.0)
    assert curve[40] > curve[0] + 0.2
    nothing = feedback.ask(np.zeros(5), ["the very same words"] * 5, set(), Copies())
    assert len(nothing) == 1  # near-copies are not asked about


def test_a_summary_tells_the_gain_and_who_got_worse():
    found = feedback.summary(CONFIG, [{0: 0.5, 20: 0.7}, {0: 0.5, 20: 0.4}], 20)
    assert (found["gain"], found["worse"], found["worst"]) == pytest.approx((0.05, 0.5, -0.1))
    assert found["interval"][0] <= found["gain"] <= found["interval"][1]


def test_the_preset_may_be_left_out():
    assert read_job("feedback", ["wrong=0.2"]).wrong == 0.2
    assert read_job("feedback", ["smoke"]) == feedback.PRESETS["smoke"]
