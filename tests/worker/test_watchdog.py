"""The watchdog: no progress with work waiting."""

from streams.view.health import STANDS_S
from streams.worker.watchdog import Watchdog


def looked(dog, until, positions, ends, **more):
    """Ask every second up to `until`; returns the last answer."""
    for now in range(int(dog._last_s or 0), until + 1):
        answer = dog.stalled(positions, ends, now, **more)
    return answer


A, B = ("posts.raw", 0), ("posts.raw", 1)


def test_a_partition_that_stands_still_with_lag_is_reported_after_the_limit():
    dog = Watchdog(stall_s=60)
    assert looked(dog, 59, {A: 5}, {A: 9}) == []
    assert looked(dog, 60, {A: 5}, {A: 9}) == [A]


def test_progress_starts_the_clock_again():
    dog = Watchdog(stall_s=60)
    looked(dog, 49, {A: 5}, {A: 9})
    assert looked(dog, 100, {A: 6}, {A: 9}) == []
    assert looked(dog, 110, {A: 6}, {A: 9}) == [A]


def test_an_idle_partition_without_lag_is_no_stall():
    dog = Watchdog(stall_s=60)
    assert looked(dog, 500, {A: 9}, {A: 9}) == []
    assert dog.stalled({A: 9}, {A: 10}, 501) == []


def test_a_partition_that_was_taken_away_is_forgotten():
    dog = Watchdog(stall_s=60)
    looked(dog, 29, {A: 5, B: 5}, {A: 9, B: 9})
    looked(dog, 30, {B: 5}, {B: 9})
    assert looked(dog, 61, {A: 5, B: 5}, {A: 9, B: 9}) == [B]


def test_a_batch_whose_calls_return_is_no_stall_however_long_it_takes():
    dog = Watchdog(stall_s=60)
    for call in range(20):
        assert looked(dog, 30 * (call + 1), {A: 5}, {A: 9}, returned={A: call}) == []
    assert looked(dog, 30 * 20 + 60, {A: 5}, {A: 9}, returned={A: 19}) == [A]


def test_a_process_that_was_paused_has_not_stood_still_meanwhile():
    dog = Watchdog(stall_s=60)
    assert all(dog.stalled({A: 5}, {A: 9}, now) == [] for now in (0, 1, 600, 601, 1200))
    assert looked(dog, 1260, {A: 5}, {A: 9}) == [A]


def test_while_redis_is_away_no_worker_is_ended_and_afterwards_the_clock_starts_anew():
    dog = Watchdog(stall_s=60)
    assert looked(dog, 3600, {A: 5}, {A: 9}, excused=True) == []
    assert looked(dog, 3659, {A: 5}, {A: 9}) == []
    assert looked(dog, 3661, {A: 5}, {A: 9}) == [A]


def test_a_partition_that_waits_while_its_agent_works_off_another_is_no_stall_but_not_for_ever():
    dog = Watchdog(stall_s=60)
    for turn in range(1, 6):
        assert looked(dog, 55 * turn, {A: 5, B: 5 + turn}, {A: 9, B: 99}, turns={"posts.raw": turn}) == []
    assert looked(dog, 5 * 60, {A: 5, B: 11}, {A: 9, B: 99}, turns={"posts.raw": 6}) == [A], "five times the limit"


def test_a_call_that_does_not_return_is_a_stall_of_all_that_wait_for_it():
    dog = Watchdog(stall_s=60)
    assert looked(dog, 61, {A: 5, B: 5}, {A: 9, B: 9}, turns={"posts.raw": 3}) == [A, B]


def test_it_says_how_long_one_has_stood_still_with_work_waiting_and_forgets_it_when_it_moves():
    dog = Watchdog(stall_s=60)
    looked(dog, 10, {A: 5, B: 9}, {A: 5, B: 9})
    assert dog.standing_s == 0.0, "nothing waits"
    looked(dog, 13, {A: 5, B: 9}, {A: 6, B: 9})
    assert dog.standing_s == 3.0
    dog.stalled({A: 5, B: 9}, {A: 6, B: 9}, 14, returned={A: 1})
    assert dog.standing_s == 0.0, "a call returned"
    looked(dog, 20, {A: 5, B: 9}, {A: 6, B: 9}, returned={A: 1})
    assert dog.standing_s == 6.0
    looked(dog, 21, {A: 6, B: 9}, {A: 6, B: 9})
    assert dog.standing_s == 0.0


def test_an_agent_or_a_consumer_that_hangs_is_told_within_five_seconds():
    """A look and a word each second, and a page that asks each second: the last of five says it."""
    for part_of_a_second in (0.0, 0.5, 0.99):
        dog, hangs_from = Watchdog(stall_s=60), 10 + part_of_a_second
        for now in range(20):
            dog.stalled({A: min(now, 10)}, {A: 99}, now)
            if dog.standing_s > STANDS_S:
                break
        assert hangs_from + 1 < now <= hangs_from + 4, "one second is left to the page"


def test_a_clusterer_that_acknowledges_with_its_next_save_has_not_stood_still_meanwhile():
    """A record at 2 s, saved at 7 s, committed half a second later; another each 5 s."""
    dog = Watchdog(stall_s=60)
    for now in range(100):
        end, saved = (now + 3) // 5, max(0, (now - 3) // 5)
        assert dog.stalled({A: saved}, {A: end}, now, applied={A: (now + 2) // 5}) == []
        assert dog.standing_s <= 1.0


def test_a_clusterer_that_hangs_is_told_by_what_it_applied_last_whatever_is_acknowledged_meanwhile():
    dog = Watchdog(stall_s=60)
    for now in range(10, 20):
        dog.stalled({A: 0 if now < 13 else 5}, {A: 9}, now, applied={A: 5})
        assert dog.standing_s == now - 10


def test_one_that_applies_and_never_acknowledges_is_ended_at_the_limit():
    dog = Watchdog(stall_s=60)
    for now in range(60):
        assert dog.stalled({A: 5}, {A: now + 6}, now, applied={A: now + 6}) == [] and dog.standing_s == 0.0
    assert dog.stalled({A: 5}, {A: 99}, 60, applied={A: 99}) == [A]
