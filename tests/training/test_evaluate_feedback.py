"""The measure of what labels teach: its arithmetic, on tasks made up."""

import dataclasses

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
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    right = vectors[:, 0] > 0.25
    texts = [f"word{i} other{i} third{i}" for i in range(n)]
    shipped = vectors[:, 1].astype(np.float64) - 1
    return feedback.Task("flood", "requests", vectors, texts, ["en"] * n, shipped, right, int(0.6 * n))


def test_labels_raise_average_precision_and_no_judging_post_is_labelled():
    curve = feedback.run(CONFIG, task(), Space(np.zeros(12, np.float32)), 0.0)
    assert curve[40].precision > curve[0].precision + 0.2
    nothing = feedback.ask(np.zeros(5), ["the very same words"] * 5, set(), Copies())
    assert len(nothing) == 1  # near-copies are not asked about


def test_alerts_at_the_bar_are_counted_on_judging_posts_alone():
    right = np.array([True, True, True, False, True, False])
    made = dataclasses.replace(task(n=6), right=right, shipped=np.array([9, 1, 1, 1, -1, -1.0]), cut=1)
    found = feedback.measured(made, np.array([-9, -1, 1, 1, 1, -1.0]))
    assert (found.alerts, found.right, found.wanted, found.shipped, found.silenced) == (3, 2, 3, 2, 1)


def test_a_summary_tells_the_gain_who_got_worse_and_the_alerts():
    start = feedback.Measured(0.5, alerts=4, right=2, wanted=5, shipped=2, silenced=0)
    better = feedback.Measured(0.7, alerts=6, right=5, wanted=5, shipped=2, silenced=0)
    worse = feedback.Measured(0.4, alerts=2, right=1, wanted=5, shipped=2, silenced=1)
    found = feedback.summary(CONFIG, [{0: start, 20: better}, {0: start, 20: worse}], 20)
    assert (found["gain"], found["worse"], found["worst"]) == pytest.approx((0.05, 0.5, -0.1))
    assert found["interval"][0] <= found["gain"] <= found["interval"][1]
    assert (found["alerts"], found["right"], found["found"], found["silenced"]) == (8, 0.75, 0.6, 0.25)


def test_the_preset_may_be_left_out():
    assert read_job("feedback", ["wrong=0.2"]).wrong == 0.2
    assert read_job("feedback", ["smoke"]) == feedback.PRESETS["smoke"]
