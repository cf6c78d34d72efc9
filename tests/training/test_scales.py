"""Ways to a probability: each against what it must do on posts made so that the answer is known."""

import numpy as np
from sklearn.isotonic import IsotonicRegression

from models.reading import logistic
from training.evaluate import scales
from training.evaluate.scales import Rows, compared
from training.languages import fit_languages, shift, trust


def rows(n: int, offset: dict[str, float], seed: int = 3) -> Rows:
    """Posts whose true log-odds are the told ones and their language's offset."""
    drawn = np.random.default_rng(seed)
    odds, language = drawn.normal(0, 2, n), drawn.choice(sorted(offset), n)
    right = drawn.random(n) < logistic(odds + np.vectorize(offset.get)(language))
    return Rows(odds, right, np.ones(n), language, drawn.choice(["a", "b"], n), drawn.integers(0, 30, n))


def test_a_line_leaves_true_log_odds_as_they_are():
    known = rows(20_000, {"en": 0.0})
    assert np.abs(scales.one_line(known, known) - logistic(known.odds)).max() < 0.03


def test_a_shift_makes_the_mean_probability_the_share_that_is_right():
    known = rows(500, {"en": 1.5})
    moved = logistic(known.odds + shift(known.odds, known.right, known.weight))
    assert abs(moved.mean() - known.right.mean()) < 1e-4


def test_a_language_of_its_own_scale_is_told_by_the_shift_and_one_with_few_posts_hardly_moves():
    found = compared(rows(6_000, {"en": 0.0, "xx": 2.0}), folds=5, seed=1)
    line, by_language = found["one line"], found["a line shifted by language"]
    assert by_language["log loss"] < line["log loss"]
    assert by_language["calibration error, xx"] < line["calibration error, xx"] / 2
    assert trust(20) == 0.5 and trust(0) == 0.0


def test_isotonic_by_query_of_one_query_is_scikit_learns():
    known = rows(300, {"en": 0.0})
    alone = Rows(known.odds, known.right, known.weight, known.language, np.full(300, "a"), known.event)
    risen = IsotonicRegression(out_of_bounds="clip").fit(known.odds, known.right)
    assert np.allclose(scales.isotonic_by_query(alone, alone), risen.predict(known.odds))


def test_no_post_is_judged_by_its_own_event(monkeypatch):
    def seen(known: Rows, judged: Rows) -> np.ndarray:
        assert not set(known.event) & set(judged.event)
        return np.full(len(judged.odds), 0.5)

    monkeypatch.setattr(scales, "WAYS", {"even": seen})
    found = compared(rows(400, {"en": 0.0}), folds=4, seed=2)
    assert np.isclose(found["even"]["log loss"], np.log(2))


def test_a_language_whose_readings_were_all_right_or_all_wrong_is_left_as_it_is():
    odds, right = np.zeros(6), np.array([True, True, False, False, True, False])
    assert fit_languages(odds, right, np.ones(6), ["aa", "aa", "bb", "bb", "cc", "cc"]) == {"cc": 0.0}
