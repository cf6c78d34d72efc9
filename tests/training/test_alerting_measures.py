"""Each measure of the alert benchmark by hand, by brute force or by scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

from training.metrics import alerting
from training.metrics.alerting import Told

TOLD = [
    Told("need.water", alert="need.water", first="need.water", weight=2.0),
    Told("need.food", second="offer.food", alert="offer.food", first="need.food"),  # its second reading is right
    Told("need.search_rescue", urgent=True, alert="offer.shelter", also=("need.search_rescue",), first="offer.shelter"),
    Told("need.search_rescue", urgent=True, first="need.shelter"),
    Told("offer.shelter", alert="need.shelter", first="offer.shelter", weight=3.0),
    Told("none", alert="need.water", first="need.water"),
    Told("none", urgent=True, first="need.water"),  # a warning: urgent and nothing to alert for
]


def shares(told: list[Told]) -> dict[str, float]:
    weights = np.array([post.weight for post in told])
    return {name: alerting.share(*masks, weights) for name, masks in alerting.alert_counts(told).items()}


def test_alerts_are_counted_by_hand():
    assert shares(TOLD) == pytest.approx(
        {
            "own_query": 3 / 8,
            "own_query_any_reading": 4 / 8,
            "any_query": 7 / 8,
            "rescue": 0.0,
            "rescue_any_reading": 1 / 2,
            "urgent": 0.0,
            "urgent_any_query": 1 / 2,
            "others_alerted": 1 / 2,
            "alerts_right": 3 / 8,
            "alerts_right_in_kind": 3 / 8,
            "alerts_need_or_offer": 7 / 8,
            "offer_alerts_that_are_needs": 1 / 2,
            "need_alerts_that_are_offers": 3 / 6,
            "right_query_first": 6 / 8,
            "need_or_offer_right": 7 / 8,
        }
    )


def test_nothing_alerted_gives_no_share_of_alerts():
    found = shares([Told("need.water"), Told("none")])
    assert found["own_query"] == 0 and math.isnan(found["alerts_right"]) and math.isnan(found["rescue"])


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.integers(1, 5)), min_size=1, max_size=30))
def test_ranked_precision_is_scikit_learns_with_ties_and_weights_and_in_any_order(rows):
    scores, right, weights = (np.array(column, float) for column in zip(*rows, strict=True))
    found = alerting.ranked_precision(scores, right.astype(bool), weights)
    if not right.any():
        assert math.isnan(found)
        return
    assert found == pytest.approx(average_precision_score(right, scores, sample_weight=weights))
    assert alerting.ranked_precision(scores[::-1], right[::-1].astype(bool), weights[::-1]) == pytest.approx(found)
    repeated = [np.repeat(column, weights.astype(int)) for column in (scores, right.astype(bool))]
    assert alerting.ranked_precision(*repeated) == pytest.approx(found)  # a weight of 2 is a post that is there twice


def test_probabilities_that_hold_have_no_calibration_error_and_wrong_ones_their_distance():
    p = np.repeat([0.1, 0.5, 0.9], 10)
    right = np.concatenate([np.arange(10) < k for k in (1, 5, 9)])
    assert alerting.calibration_error(alerting.reliability(p, right)) == pytest.approx(0)
    assert alerting.calibration_error(alerting.reliability(p, np.zeros(30, bool))) == pytest.approx(0.5)
    weights = np.where(p == 0.9, 8.0, 1.0)  # 10 + 10 + 80 posts
    assert alerting.calibration_error(alerting.reliability(p, right & (p < 0.9), weights)) == pytest.approx(0.8 * 0.9)
    assert math.isnan(alerting.calibration_error([]))


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), min_size=1, max_size=80), st.randoms())
def test_bins_hold_every_post_once_rise_and_do_not_depend_on_order(rows, random):
    table = alerting.reliability(*_columns(rows))
    assert sum(row.posts for row in table) == len(rows) and len(table) <= 15
    assert all(a.promised < b.promised for a, b in zip(table, table[1:], strict=False))
    random.shuffle(rows)
    again = alerting.reliability(*_columns(rows))
    assert [row.posts for row in again] == [row.posts for row in table]
    assert alerting.calibration_error(again) == pytest.approx(alerting.calibration_error(table))


def _columns(rows):
    return np.array([p / 50 for p, _ in rows]), np.array([right for _, right in rows])


def test_bins_are_of_equal_mass_where_no_probabilities_are_equal():
    rows = alerting.reliability(np.linspace(0, 1, 150), np.zeros(150, bool))
    assert [row.posts for row in rows] == [10] * 15


def test_a_chosen_precision_is_the_lowest_threshold_whose_mean_keeps_it():
    p = np.array([0.2, 0.95, 0.7, 0.6, 0.9])
    assert alerting.aimed_at(p, 0.8) == 0.7  # (.95 + .9 + .7) / 3 = .85, with .6 it is .7875
    assert alerting.aimed_at(p, 0.78) == 0.6
    assert math.isnan(alerting.aimed_at(p, 0.99))
    standing = np.array([5.0, 4.0, 3.0, 2.0, 1.0])  # laid by something else, the bar is one of it
    assert alerting.aimed_at(p, 0.6, standing=standing) == 1.0
    assert alerting.aimed_at(p, 0.65, standing=standing) == 1.0  # .67 at the last; .61 one before counts no more
    assert math.isnan(alerting.aimed_at(p, 0.7, standing=standing))


@pytest.mark.parametrize("depth", [3, 100])
def test_ndcg_is_scikit_learns(depth):
    rng = np.random.default_rng(1)
    scores, gains = rng.random(40), rng.integers(0, 4, 40).astype(float)
    assert alerting.ndcg(scores, gains, depth) == pytest.approx(ndcg_score([gains], [scores], k=depth))


def test_alerting_worth_by_hand():
    high = np.array([True, False, False, True, False, True, False])
    alerts = np.array([True, True, True, True, True, False, False])
    overlap = np.array([1.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.25])
    worth = alerting.alerting_worth(alerts, high, overlap)
    needed, needless = [1.0, 0.3 + 0.7 * 0.5, -1.0], [0.0, -math.log10(1.5), 0.0, 0.25]  # δ: 0, 1, again 0
    np.testing.assert_allclose(worth[high], needed)
    np.testing.assert_allclose(worth[~high], needless)
    found = alerting.mean_worth(worth, high)
    assert (found.high, found.low) == (pytest.approx(np.mean(needed)), pytest.approx(np.mean(needless)))
    assert found.all == pytest.approx((found.high + found.low) / 2)


def test_a_silent_system_is_worth_minus_one_half_and_a_noisy_one_never_less_than_minus_one():
    high = np.zeros(50, bool)
    high[-1] = True
    silent = alerting.mean_worth(alerting.alerting_worth(np.zeros(50, bool), high, np.zeros(50)), high)
    assert (silent.high, silent.low, silent.all) == (-1.0, 0.0, -0.5)
    noisy = alerting.mean_worth(alerting.alerting_worth(np.ones(50, bool), high, np.zeros(50)), high)
    assert -1 < noisy.low < -0.8 and noisy.high == pytest.approx(0.3)
    assert math.isnan(alerting.mean_worth(np.zeros(50), np.zeros(50, bool)).high)


def test_types_found_weigh_by_whether_one_can_act_on_them_and_types_in_excess_cost():
    act = {"SearchAndRescue", "MovePeople"}
    assert alerting.type_overlap({"SearchAndRescue"}, {"SearchAndRescue", "MovePeople", "News"}, act) == 0.75 / 2
    assert alerting.type_overlap({"SearchAndRescue", "News"}, {"SearchAndRescue", "News"}, act) == 1.0
    assert alerting.type_overlap({"SearchAndRescue", "MovePeople"}, {"SearchAndRescue"}, act) == 0.75 / 2
    assert alerting.type_overlap({"News", "MovePeople"}, {"News"}, act) == 1.0  # nothing to act on was to be found
    assert alerting.type_overlap({"News", "Official"}, {"News"}, act) == 0.5
    assert alerting.type_overlap({"News"}, set(), act) == alerting.type_overlap(set(), {"News"}, act) == 0


def test_a_budget_shows_the_first_alerts_of_each_hour_of_the_clock():
    at_s = np.array([0.0, 10, 20, 30, 3600, 7300])
    alerts = np.array([True, True, True, False, True, False])
    gain = np.array([0.0, 1, 1, 1, 0, 1])
    assert alerting.push(at_s, alerts, gain, 2) == alerting.Pushed(1.0, 2, 3)
    assert alerting.push(at_s, alerts, gain, 60) == alerting.Pushed(2.0, 2, 3)
    assert alerting.gain_minus_pain(alerting.Pushed(2.0, 1, 3), 0.66) == pytest.approx((0.66 * 2 - 0.34) / 3)
