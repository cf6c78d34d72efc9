"""The watchdog: no progress with work waiting."""

from streams.watchdog import Watchdog

A, B = ("posts.raw", 0), ("posts.raw", 1)


def test_a_partition_that_stands_still_with_lag_is_reported_after_the_limit():
    dog = Watchdog(stall_s=60)
    assert dog.stalled({A: 5}, {A: 9}, now=0) == []
    assert dog.stalled({A: 5}, {A: 9}, now=59) == []
    assert dog.stalled({A: 5}, {A: 9}, now=60) == [A]


def test_progress_starts_the_clock_again():
    dog = Watchdog(stall_s=60)
    dog.stalled({A: 5}, {A: 9}, now=0)
    dog.stalled({A: 6}, {A: 9}, now=50)
    assert dog.stalled({A: 6}, {A: 9}, now=100) == []
    assert dog.stalled({A: 6}, {A: 9}, now=110) == [A]


def test_an_idle_partition_without_lag_is_no_stall():
    dog = Watchdog(stall_s=60)
    for now in range(0, 500, 50):
        assert dog.stalled({A: 9}, {A: 9}, now) == []
    assert dog.stalled({A: 9}, {A: 10}, 460) == []


def test_a_partition_that_was_taken_away_is_forgotten():
    dog = Watchdog(stall_s=60)
    dog.stalled({A: 5, B: 5}, {A: 9, B: 9}, now=0)
    dog.stalled({B: 5}, {B: 9}, now=30)
    assert dog.stalled({A: 5, B: 5}, {A: 9, B: 9}, now=61) == [B]
