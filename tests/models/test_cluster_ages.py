"""What arrays say of all clusters is what each cluster says."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from models.clusters.ages import SLACK, Ages
from models.clusters.cluster import Cluster, Rates
from models.clusters.config import ClusterConfig

CONFIG = ClusterConfig()
CLOCK = 1_000_000.0
COUNTS = st.floats(0.0, 60.0)


@st.composite
def clusters(draw):
    """One that lives or has ended in each slot."""
    made = []
    for slot in range(draw(st.integers(1, 30))):
        rates = Rates(CLOCK - draw(st.floats(0.0, 5_000.0)), 0.0, draw(COUNTS), draw(COUNTS))
        one = Cluster(f"c{slot}", rates, 0.0, 0.0, touched_post=draw(st.integers(0, 5)), touched_s=0.0)
        one.posts, one.version, one.burst_level = draw(st.tuples(*[st.integers(0, 3)] * 3))
        one.event_s = CLOCK - draw(st.floats(0.0, 300.0))
        made.append(one)
    return made, np.array(draw(st.lists(st.booleans(), min_size=len(made), max_size=len(made))))


def ages_of(made):
    ages = Ages()
    ages.note(range(len(made)), made)
    return ages


@given(clusters(), st.integers(1, 40), st.randoms())
def test_the_stalest_are_the_first_when_all_are_sorted(drawn, most, random):
    made, live = drawn
    born = np.array(random.sample(range(len(made)), len(made)))
    order = sorted(
        np.flatnonzero(live).tolist(),
        key=lambda s: (made[s].version > 0, made[s].posts > 1, made[s].touched_post, born[s]),
    )
    assert ages_of(made).stalest(live, born, most) == order[:most]


@given(clusters(), st.integers(0, 6), st.sampled_from([0.0, 5.0, 50.0]), st.sampled_from([0.0, 20.0, 60.0]))
def test_those_end_that_are_quiet_by_posts_and_time_or_for_very_long(drawn, posts, least_s, most_s):
    made, live = drawn
    for slot, one in enumerate(made):
        one.touched_s = CLOCK - 10.0 * slot
    ends = []
    for slot in np.flatnonzero(live).tolist():
        one = made[slot]
        least, seconds = (2, least_s) if one.posts > 1 else (1, least_s / 2)
        silent_s = CLOCK - one.touched_s
        if (posts - one.touched_post > least and silent_s >= seconds) or silent_s > most_s:
            ends.append(slot)
    assert ages_of(made).quiet(live, posts, CLOCK, (2, least_s), (1, least_s / 2), most_s) == ends


@given(clusters())
def test_every_burst_that_ended_is_found_and_none_that_goes_on(drawn):
    made, live = drawn
    found = set(ages_of(made).calming(live, CLOCK, CONFIG))
    for slot, one in enumerate(made):
        one.rates.forward(CLOCK, CONFIG.half_life_s, CONFIG.burst_fast_s, CONFIG.burst_slow_s)
        burst = one.rates.burst(CONFIG.burst_fast_s, CONFIG.burst_slow_s)
        asked = live[slot] and one.burst_level and CLOCK - one.event_s >= CONFIG.quiet_s
        bar = CONFIG.burst_levels[one.burst_level - 1] if one.burst_level else 0.0
        assert slot not in found or (asked and burst < bar + 2 * SLACK)
        assert slot in found or not (asked and burst < bar)
