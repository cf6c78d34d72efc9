"""Bars that follow the stream: budgets kept and never exceeded for want of anything likely, precision reached."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.bars import FEW, OTHERS, Bars, Recent, Seen, precision_bar
from models.matching import MatchConfig
from models.records import Match, Post
from tests.models.test_reading import FOOD, NEED, matcher

BUDGETED = msgspec.structs.replace(NEED, alerts_per_hour=10.0)


def stream(probabilities, per_hour: float, bars: Bars, made, start: float = 0.0, size: int = 10):
    """Feed readings at a steady rate, `size` a frame; returns (time, probability) of those that alerted."""
    given = []
    for first in range(0, len(probabilities), size):
        frame = {
            f"p{start}-{n}": (start + n * 3600 / per_hour, round(float(likely), 3))
            for n, likely in enumerate(probabilities[first : first + size], first)
        }
        posts = [Post(post_id, "x", 0.0, at) for post_id, (at, _) in frame.items()]
        found = [Match(i, "need.water", "1", "suggestion", likely, 0.5, likely) for i, (_, likely) in frame.items()]
        for settled in bars.apply(found, posts, made):
            if settled.level == "alert":
                given.append(frame[settled.post_id])
    return given


def test_a_steady_stream_gives_about_the_alerts_an_hour_that_were_asked_for_and_the_likeliest():
    dice, made = np.random.default_rng(1), matcher(BUDGETED, FOOD)
    bars = Bars(made.config)
    given = stream(dice.uniform(0.2, 0.9, 600 * 8), 600, bars, made)
    by_hour = np.histogram([at for at, _ in given], bins=8, range=(0, 8 * 3600))[0]
    assert 7 <= by_hour[1:].mean() <= 12 and by_hour.max() <= 20
    assert np.mean([p for _, p in given]) > 0.85  # of a uniform .2 to .9, ten in 600 lie above .888


def test_a_flood_does_not_spend_the_budget_many_times_over_and_the_clearest_call_still_comes_through():
    dice, made = np.random.default_rng(2), matcher(BUDGETED)
    bars = Bars(made.config)
    stream(dice.uniform(0.2, 0.9, 600), 600, bars, made)
    flood = stream(dice.uniform(0.2, 0.95, 6_000), 6_000, bars, made, start=3600.0)
    assert len(flood) <= 25
    assert stream([0.99], 600, bars, made, start=7200.0)


def test_two_halves_of_the_partitions_get_half_of_the_budget_each():
    dice, made = np.random.default_rng(3), matcher(BUDGETED)
    half = Bars(made.config, partitions=2)
    given = stream(dice.uniform(0.2, 0.9, 600 * 6), 600, half, made)
    assert 3 * 5 <= len(given) <= 6.5 * 6


def reading(post_id: str, likely: float, urgent: bool = False) -> Match:
    priority = "urgent" if urgent else "routine"
    return Match(post_id, "need.water", "1", "suggestion", likely, 0.5, likely, priority=priority)


def test_in_quiet_hours_a_budget_lets_nothing_alert_that_its_query_would_not():
    made = matcher(BUDGETED)
    likely = [0.2, 0.49, 0.5, 0.3]
    given = stream(likely, 1, Bars(made.config), made, size=1)
    assert [p for _, p in given] == [0.5]


def test_no_budget_holds_back_what_reads_as_urgent_and_what_it_gives_counts():
    made = matcher(msgspec.structs.replace(NEED, alerts_per_hour=1.0))
    bars, read = Bars(made.config), [reading(f"u{n}", 0.6, urgent=True) for n in range(5)]
    read += [reading("calm", 0.55), reading("unlikely", 0.4, urgent=True), reading("surer", 0.9)]
    posts = [Post(m.post_id, "x", 0.0, 10.0) for m in read]
    told = {m.post_id: m for m in bars.apply(read, posts, made)}
    assert {i for i, m in told.items() if m.level == "alert"} == {"u0", "u1", "u2", "u3", "u4", "surer"}
    assert all((m.score >= m.threshold) == (m.level == "alert") for m in told.values())
    assert bars.held == {"need.water": 1}


@given(
    st.lists(
        st.tuples(st.integers(0, 1200), st.sampled_from([0.3, 0.5, 0.6, 0.8, 0.95]), st.booleans(), st.booleans()),
        max_size=40,
    ),
    st.sampled_from([0.5, 1.0, 5.0]),
)
@settings(max_examples=60)
def test_what_a_budget_holds_back_is_a_suggestion_counted_once_for_an_hour(steps, per_hour):
    made = matcher(msgspec.structs.replace(NEED, alerts_per_hour=per_hour), FOOD)
    bars, at, held = Bars(made.config), 0.0, []
    for n, (later_s, likely, urgent, twice) in enumerate(steps):
        at += later_s
        frame = [reading(f"p{n}", likely, urgent)], [Post(f"p{n}", "x", 0.0, at)], made
        for _ in range(1 + twice):
            bars.apply(*frame, learn=False)
            (told,) = bars.apply(*frame)
        if told.level == "suggestion" and likely >= 0.5:
            held.append(at)
            assert not urgent
        assert bars.held.get("need.water", 0) == sum(seen_at > at - 3600 for seen_at in held)
    assert not bars.held_at(at + 3600), "where nothing comes in any more"
    bars.apply([], [Post("other", "x", 0.0, at + 3600)], made)
    assert bars.held == {}, "an hour later, whatever else came in"


def test_a_query_whose_budget_was_taken_away_has_neither_bar_nor_count():
    made = matcher(BUDGETED)
    bars = Bars(made.config)
    read = [reading(f"p{n}", 0.6) for n in range(9)]
    bars.apply(read, [Post(m.post_id, "x", 0.0, 10.0) for m in read], made)
    assert bars.now and bars.held
    bars.apply([], [], matcher(NEED))
    assert (bars.now, bars.held) == ({}, {})


def test_a_frame_that_comes_again_counts_once():
    made = matcher(BUDGETED)
    bars = Bars(made.config)
    post = Post("p", "x", 0.0, 10.0)
    found = [Match("p", "need.water", "1", "suggestion", 0.9, 0.5, 0.9)]
    first = bars.apply(found, [post], made)
    assert first == bars.apply(found, [post], made) and first[0].level == "alert"
    assert len(bars._recent["need.water"].readings) == 1
    for n in range(20):  # whatever came between
        bars.apply([reading(f"q{n}", 0.95 + n / 1000)], [Post(f"q{n}", "x", 0.0, 11.0 + n)], made)
    assert bars.apply(found, [post], made) == first


@given(st.lists(st.sampled_from(np.linspace(0.2, 1, 33).tolist()), min_size=FEW, max_size=90), st.floats(0.3, 0.95))
@settings(max_examples=30)
def test_what_lies_above_a_precision_bar_has_the_mean_asked_for_and_a_lower_bar_would_not(probabilities, target):
    recent = Recent()
    for n, likely in enumerate(probabilities):
        recent.add(f"p{n}", Seen(float(n), likely, likely))
    bar = precision_bar(recent, target)
    above = [p for p in probabilities if p >= bar]
    assert not above or np.mean(above) >= target - 1e-9 or bar == target
    below = [p for p in probabilities if p < bar]
    more = above + [p for p in below if p == max(below)]
    assert not below or np.mean(more) < target + 1e-9 or bar == target


def test_a_target_precision_holds_live_where_probabilities_do():
    dice = np.random.default_rng(4)
    made = matcher(NEED, FOOD, config=MatchConfig(target_precision=0.8))
    bars = Bars(made.config)
    likely = dice.beta(1, 2, 4000) * 0.8 + 0.2
    given = stream(likely, 600, bars, made, size=100)
    assert 0.78 <= np.mean([p for _, p in given]) <= 0.82  # how many are right, where a probability is one
    assert 0.5 < bars.now[OTHERS] < 0.8


def test_one_query_s_target_precision_holds_live_and_moves_no_other_bar():
    dice = np.random.default_rng(5)
    made = matcher(msgspec.structs.replace(NEED, target_precision=0.8), FOOD)
    bars = Bars(made.config)
    given = stream(dice.beta(1, 2, 4000) * 0.8 + 0.2, 600, bars, made, size=100)
    assert 0.78 <= np.mean([p for _, p in given]) <= 0.82
    assert bars.now.keys() == {"need.water"} and 0.5 < bars.now["need.water"] < 0.8
    other = [Match("q", "need.food", "1", "alert", 0.6, 0.5, 0.6)]
    assert bars.apply(other, [Post("q", "x", 0, 0)], made) == other


def test_a_query_with_a_target_and_few_readings_asks_the_target_itself_of_each():
    made = matcher(msgspec.structs.replace(NEED, target_precision=0.8), FOOD)
    found = [Match(f"p{n}", "need.water", "1", "alert", p, 0.5, p) for n, p in enumerate((0.79, 0.81))]
    posts = [Post(f"p{n}", "x", 0.0, 1.0) for n in range(2)]
    for learn in (True, False):
        told = Bars(made.config).apply(found, posts, made, learn=learn)
        assert [(m.post_id, m.level) for m in told] == [("p0", "suggestion"), ("p1", "alert")]


def test_a_query_with_a_bar_of_its_own_follows_neither_budget_nor_target():
    own = msgspec.structs.replace(NEED, probability=0.7)
    made = matcher(own, config=MatchConfig(target_precision=0.9))
    assert made.thresholds[0].alert == pytest.approx(0.7)
    found = [Match("p", "need.water", "1", "alert", 0.75, 0.7, 0.75)]
    assert Bars(made.config).apply(found, [Post("p", "x", 0, 0)], made) == found


def test_what_alerts_comes_before_what_does_not_though_less_likely():
    strict = msgspec.structs.replace(NEED, probability=0.99)
    vectors = np.array([[0.3, 0, 0.27, 0]], np.float32)
    made = matcher(strict, FOOD, config=MatchConfig(alert_probability=0.2, suggestion_probability=0.1))
    found = made.match(["p"], vectors, "axes")
    assert [(m.query_id, m.level) for m in found] == [("need.food", "alert"), ("need.water", "suggestion")]
    assert found[0].probability < found[1].probability


@pytest.mark.parametrize("bar, held", [({"alerts_per_hour": 1.0}, {"p3"}), ({"target_precision": 0.8}, set())])
def test_without_suggestions_there_are_alerts_and_what_a_budget_holds_back_and_nothing_else(bar, held):
    made = matcher(msgspec.structs.replace(NEED, **bar), config=MatchConfig(suggestions=False))
    found = [reading(f"p{n}", likely) for n, likely in enumerate((0.9, 0.3, 0.4, 0.7))]
    settled = Bars(made.config).apply(found, [Post(m.post_id, "x", 0.0, 1.0) for m in found], made)
    assert {m.post_id for m in settled if m.level == "suggestion"} == held
    assert "p0" in {m.post_id for m in settled if m.level == "alert"}
