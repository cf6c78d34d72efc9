"""When a canary is ended: never a good one, soon a bad one, and the reason has the figures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.releases.bands import Arm, Bands, judge, judge_all, read_arm, too_far

GOOD = {
    "posts": 1000,
    "errors": 0,
    "encode_ms": 100.0,
    "lang_posts": {"en": 600, "es": 400},
    "lang_alerts": {"en": 60, "es": 40},
}


def arm(**changes) -> Arm:
    return Arm(**{**GOOD, **changes})


def test_an_equal_canary_stays():
    assert judge(arm(), arm(), Bands()) is None


def test_too_few_posts_judge_nothing():
    assert judge(arm(), arm(posts=50, lang_alerts={"en": 600}), Bands()) is None
    assert judge(arm(posts=50), arm(lang_alerts={"en": 600}), Bands()) is None


@pytest.mark.parametrize(
    ("staged", "reason"),
    [
        ({"errors": 40}, "errors on 4.0% of 1000 posts, the current version on 0.0%"),
        ({"encode_ms": 20_000.0}, "20.00 ms a post, the current version 0.10 ms"),
        ({"lang_alerts": {"en": 0, "es": 40}}, "alerts on 0.0% of 600 en posts, the current version on 10.0% of 600"),
        (
            {"lang_alerts": {"en": 60, "es": 240}},
            "alerts on 60.0% of 400 es posts, the current version on 10.0% of 400",
        ),
    ],
)
def test_a_canary_outside_its_band_goes_and_the_reason_has_the_figures(staged, reason):
    assert judge(arm(), arm(**staged), Bands()) == reason


def test_a_version_that_fails_on_nearly_everything_goes_at_once():
    assert judge(arm(posts=0), Arm(posts=25, errors=25), Bands()) == "errors on 25 of its first 25 posts"


@pytest.mark.parametrize(
    "staged",
    [
        {"errors": 9},  # below 1 % above
        {"encode_ms": 4000.0},  # 40 times slower, but 4 ms
        {"lang_alerts": {"en": 90, "es": 40}},  # half as many again
        {"lang_alerts": {"en": 60, "es": 40, "tl": 3}, "lang_posts": {"en": 600, "es": 400, "tl": 3}},  # three posts
    ],
)
def test_differences_too_small_to_matter_or_to_tell_are_left(staged):
    assert judge(arm(), arm(**staged), Bands()) is None


@pytest.mark.parametrize("share", [0.01, 0.03, 0.1])
def test_a_good_version_is_not_ended_by_chance_however_often_one_looks(share):
    """200 canaries of equal quality, 400 looks each, 5 languages: none goes."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        posts = rng.multinomial(25, [0.4, 0.3, 0.15, 0.1, 0.05], size=(2, 400)).cumsum(1)
        alerts = rng.binomial(np.diff(posts, axis=1, prepend=0), share).cumsum(1)
        for look in range(0, 400, 4):
            current, staged = (
                Arm(
                    posts=int(posts[a, look].sum()),
                    lang_posts=dict(enumerate_(posts[a, look])),
                    lang_alerts=dict(enumerate_(alerts[a, look])),
                )
                for a in (0, 1)
            )
            assert judge(current, staged, Bands()) is None


def enumerate_(values) -> list[tuple[str, int]]:
    return [(f"l{i}", int(v)) for i, v in enumerate(values)]


@given(st.integers(1, 500), st.integers(1, 500), st.data())
def test_the_order_of_two_shares_does_not_matter_and_equal_ones_are_never_too_far(of_a, of_b, data):
    a, b = data.draw(st.integers(0, of_a)), data.draw(st.integers(0, of_b))
    assert too_far(a, of_a, b, of_b, 5.0) == too_far(b, of_b, a, of_a, 5.0)
    assert not too_far(a, of_a, a, of_a, 5.0)


def test_too_far_is_the_textbook_test():
    # 45/200 against 20/200: pooled .1625, standard error .03689, z = 3.389
    assert too_far(45, 200, 20, 200, 3.38)
    assert not too_far(45, 200, 20, 200, 3.40)


def test_flat_counters_are_read_back_into_arms():
    counts = {
        "staged:posts": 3,
        "staged:errors": 1,
        "staged:encode_us": 1500,
        "staged:posts:en": 2,
        "staged:alerts:en": 1,
        "current:posts": 7,
    }
    assert read_arm(counts, "staged") == Arm(3, 1, 1.5, {"en": 2}, {"en": 1})
    assert judge_all(counts, Bands()) is None
