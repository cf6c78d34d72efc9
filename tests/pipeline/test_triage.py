"""The laws of what is read first (streams/pipeline/triage.py)."""

from collections import Counter
from math import sqrt

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.pipeline.triage import EACH, LEAST, MOST_CLAIM, SHARES, TOLD, Skimmed, Triage, Turns, share_at

GROUPS = [("tr", "bluesky"), ("en", "bluesky"), ("ht", "mastodon"), ("und", "sms")]
shares = st.floats(LEAST, 1.0)
posts = st.lists(
    st.builds(
        Skimmed,
        st.sampled_from(GROUPS),
        st.sampled_from([0.0, 0.2, 0.2, 0.7]),
        st.floats(0, 100),
        st.sampled_from([None, "ada", "bo", "cy"]),
    ),
    max_size=40,
)


def apart(n: int) -> np.ndarray:
    """No two alike."""
    return np.eye(max(n, 1), 64, dtype=np.float32)[:n]


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.floats(0.1, 600))
def test_all_is_read_within_the_limit_and_never_more_at_more_lag_nor_less_than_the_least(lag, more, within):
    assert share_at(min(lag, within), within) == 1.0
    assert share_at(lag, within) >= share_at(lag + more, within) >= LEAST


def test_each_further_limit_halves_what_is_read():
    assert [share_at(5.0 * n, 5.0) for n in (1, 2, 3, 4, 1000)] == [1.0, 0.5, 0.25, 0.125, LEAST]


@given(st.lists(posts, max_size=8), shares)
def test_every_post_is_read_or_put_by_and_as_many_are_read_as_the_share_says(frames, share):
    triage, read, seen = Triage(), 0, 0
    for frame in frames:
        places = triage.divide(frame, apart(len(frame)), share)
        assert len(places) == len(frame)
        assert all(0 <= place.turn <= len(SHARES) for place in places)
        read, seen = read + sum(place.turn == 0 for place in places), seen + len(frame)
        assert read <= share * seen + MOST_CLAIM + 1e-6
        assert read >= share * seen - 1 - 1e-6


@given(posts, shares)
def test_within_a_group_and_of_an_author_order_follows_the_score_and_then_the_newest(frame, share):
    places = Triage().divide(frame, apart(len(frame)), share)
    for a, place in zip(frame, places, strict=True):
        for b, other in zip(frame, places, strict=True):
            if (a.group, a.author) == (b.group, b.author) and (a.score, a.at) > (b.score, b.at):
                assert place.turn <= other.turn


of_one_group = st.lists(
    st.builds(
        Skimmed, st.just(GROUPS[0]), st.sampled_from([0.0, 0.7]), st.just(0.0), st.sampled_from([None, *"aaaaabcd"])
    ),
    max_size=20,
)


@given(of_one_group, shares)
def test_no_author_has_more_than_a_few_read_while_others_of_the_group_wait_with_their_first(frame, share):
    read, waiting = Counter(), Counter()
    for post, place in zip(frame, Triage().divide(frame, apart(len(frame)), share), strict=True):
        (waiting if place.turn else read)[post.author] += 1
    most = max((n for author, n in read.items() if author is not None), default=0)
    if most > EACH:
        assert not waiting[None], "who is not named has no posts but the first"
        assert all(read[author] >= EACH for author in waiting)


def test_an_account_of_many_different_cries_is_read_a_few_times_and_then_after_everybody_else():
    triage, read = Triage(), Counter()
    for n in range(20):
        cries = [Skimmed(GROUPS[0], 0.9, n + i / 100, "one account") for i in range(60)]
        calls = [Skimmed(GROUPS[0], 0.2, n + i / 100, f"author {n}/{i}") for i in range(20)]
        vectors = np.random.default_rng(n).standard_normal((80, 64)).astype(np.float32) / 8  # none like another
        places = triage.divide([*cries, *calls], vectors, 0.125)
        assert all(place.reason == "order" for place in places)
        read += Counter(
            p.author == "one account" for p, at in zip([*cries, *calls], places, strict=True) if not at.turn
        )
    assert 199 <= sum(read.values()) <= 204 and read[True] == EACH, "by scores alone all would have been its own"


def test_an_account_alone_in_its_group_is_read_as_much_as_the_share_says():
    triage, frame = Triage(), [Skimmed(GROUPS[0], 0.9, float(n), "one account") for n in range(40)]
    places = triage.divide(frame, apart(40), 0.5)
    assert sum(place.turn == 0 for place in places) == 20


def test_authors_of_two_sources_are_two_though_they_have_one_name():
    """One source cannot push back authors of another by using their names."""
    others = [Skimmed(GROUPS[1], 0.9, 0.0, "ada")] * EACH
    frame = [*others, Skimmed(GROUPS[2], 0.5, 0.0, "ada"), *[Skimmed(GROUPS[2], 0.1, 0.0, "bo")] * (EACH - 1)]
    places = Triage().divide(frame, apart(len(frame)), 2 / len(frame))
    assert [place.turn == 0 for place in places] == [True, *[False] * (EACH - 1), True, *[False] * (EACH - 1)]


@settings(max_examples=30)
@given(st.lists(st.integers(0, 30), min_size=4, max_size=4), st.floats(LEAST, 0.5))
def test_over_many_frames_every_group_is_read_by_the_root_of_its_posts_or_whole(counts, share):
    """However many posts one source sends, the others keep their share."""
    triage, read, rounds = Triage(), Counter(), 30
    frame = [Skimmed(g, 0.0, 0.0) for g, n in zip(GROUPS, counts, strict=True) for _ in range(n)]
    for _ in range(rounds):
        places = triage.divide(frame, np.zeros((len(frame), 2), np.float32), share)
        read += Counter(p.group for p, place in zip(frame, places, strict=True) if place.turn == 0)
    total = sum(sqrt(n) for n in counts)
    for group, n in zip(GROUPS, counts, strict=True):
        if n:
            claim = min(share * sum(counts) * sqrt(n) / total, n)
            assert read[group] >= rounds * claim - MOST_CLAIM - len(GROUPS) - 1


def test_frames_of_one_post_add_up_so_no_group_of_single_posts_is_passed_over():
    triage, read = Triage(), Counter()
    for n in range(400):
        group = GROUPS[n % 10 == 0]  # nine of one, one of the other
        (place,) = triage.divide([Skimmed(group, 0.0, float(n))], apart(1) * 0, 0.25)
        read[group] += place.turn == 0
    assert 99 <= sum(read.values()) <= 104
    assert read[GROUPS[1]] >= 15, "a quarter of its 40 would be ten: the smaller group has the greater share"


def test_what_was_read_several_times_waits_last_and_its_group_keeps_its_share():
    triage, copy = Triage(), np.tile(apart(1), (8, 1))
    same = [Skimmed(GROUPS[0], 0.9, 0.0)] * 8
    triage.divide(same[:TOLD], copy[:TOLD], 1.0)
    fresh = Skimmed(GROUPS[0], 0.1, 0.0)
    places = triage.divide([*same, fresh], np.concatenate([copy, apart(2)[1:]]), 1 / 9)
    assert [place.turn for place in places] == [3] * 8 + [0]
    assert {place.reason for place in places[:8]} == {"told"}
    places = triage.divide(same, copy, 0.25)
    assert sum(place.turn == 0 for place in places) == 2


@given(st.lists(st.sets(st.sampled_from(list(SHARES)), min_size=1), min_size=1, max_size=200))
def test_a_turn_that_waits_is_one_of_those_and_none_waits_longer_than_all_shares_together(rounds):
    turns, waited = Turns(), Counter()
    for waiting in rounds:
        taken = turns.next_of(waiting)
        assert taken in waiting
        waited = Counter({t: waited[t] + 1 for t in waiting if t != taken})
        assert all(n <= 2 * sum(SHARES.values()) for n in waited.values())


def test_where_all_turns_wait_they_are_taken_in_proportion():
    turns = Turns()
    assert Counter(turns.next_of(SHARES) for _ in range(700)) == {t: 100 * n for t, n in SHARES.items()}
