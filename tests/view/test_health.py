"""The one sentence about the whole: never "live" when something is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.view.health import SILENT_S, Health, Known, judge
from streams.view.status import SOURCE_KEPT_S, SourceStatus, WorkerStatus

NOW = 1_795_000_000.0
AGENTS = {
    "normalise": ("posts.raw", 4),
    "embed": ("posts.clean", 4),
    "match": ("posts.embedded", 4),
    "cluster": ("posts.matched", 1),
}
NAMES = tuple(AGENTS)


def worker(silent_s=0.5, agents=NAMES, **more):
    return WorkerStatus(NOW - silent_s, list(agents), "v", **more)


def told(redis=True, workers=None, lag=None, broker=True, put_by=0, sources=None):
    workers = {"a": worker()} if workers is None else workers
    known = Known(NOW, workers, sources or {}, (lag or {}) if broker else None, put_by)
    return judge(known if redis else None, AGENTS)


def test_it_is_live_when_redis_the_broker_and_every_agent_answer():
    assert told() == Health("live", "live: 1 worker at work")
    split = {"a": worker(agents=NAMES[:2]), "b": worker(agents=NAMES[2:])}
    assert told(workers=split).sentence == "live: 2 workers at work"


@pytest.mark.parametrize(
    "found, level, says",
    [
        ({"redis": False, "broker": False, "workers": {}}, "down", "Redis does not answer"),
        ({"broker": False, "workers": {}}, "down", "the broker does not answer"),
        ({"workers": {}}, "down", "no worker has ever spoken"),
        ({"workers": {"a": worker(12), "b": worker(90)}}, "down", "no worker has spoken for 12 s"),
        ({"workers": {"a": worker(agents=NAMES[:3])}}, "down", "runs cluster"),
        ({"workers": {"a": worker(state="loading")}}, "down", "no worker that is ready"),
        (
            {"workers": {"a": worker(state="failed", message="the vault does not answer")}},
            "down",
            "cluster (worker a: the vault does not answer): posts wait",
        ),
        ({"workers": {"a": worker(), "b": worker(9)}, "broker": False}, "down", "the broker does not answer"),
        ({"lag": {"posts.raw": 5_000}}, "late", "5,000 records wait in posts.raw"),
        (
            {"workers": {"a": worker(waits_s=600), "b": worker(waits_s=60)}, "put_by": 2_400},
            "late",
            "2,400 posts wait to be read in context, the oldest for 10 min",
        ),
        (
            {"workers": {"a": worker(waits_s=20)}},
            "late",
            "posts wait to be read in context, the oldest for 20 s",
        ),
        (
            {"workers": {"a": worker(waits_s=8000)}, "lag": {"posts.raw": 5_000}, "put_by": 7},
            "late",
            "wait in posts.raw; 7 posts wait to be read in context, the oldest for 2 h",
        ),
        ({"workers": {"a": worker(computes_s=4), "b": worker()}}, "late", "worker a has computed one batch for 4 s"),
        ({"workers": {"a": worker(message="cannot load 4841")}}, "late", "worker a: cannot load 4841"),
        ({"workers": {"a": worker(stands_s=4), "b": worker()}}, "late", "worker a has stood still for 4 s"),
        (
            {"workers": {"a": worker(holds={"posts.raw": [0, 1]}), "b": worker(holds={})}, "lag": {"posts.raw": 1}},
            "late",
            "nobody reads 2 of 4 partitions of posts.raw",
        ),
        (
            {"sources": {"http": SourceStatus(NOW - 9), "b": SourceStatus(NOW)}},
            "late",
            "source http has not spoken for 9 s",
        ),
        ({"sources": {"bluesky": SourceStatus(NOW, "is silent")}}, "late", "source bluesky: is silent"),
    ],
)
def test_what_is_wrong_is_said_in_words(found, level, says):
    health = told(**found)
    assert health.level == level and says in health.sentence


def test_what_alerts_an_hour_hold_back_is_told_round_of_all_workers_together_and_not_to_whoever_asks():
    """Round: a page reads the sentence out whenever it changes."""
    held = {"need.water": 30, "need.food": 8}, {"need.water": 8, "need.a": 1, "need.b": 1, "need.c": 1}
    workers = {name: worker(held=one) for name, one in zip("ab", held, strict=True)}
    health = told(workers=workers)
    says = "held back in the last hour by alerts an hour: need.water 30+, need.food 8, need.a 1 and 2 more queries"
    assert (health.level, health.sentence) == ("live", f"live: 2 workers at work; {says}")
    assert health.for_anybody() == "live: 2 workers at work"
    late = told(workers=workers, lag={"posts.raw": 5_000})
    assert late.level == "late" and late.sentence.endswith(says) and "need" not in late.for_anybody()
    assert "need.water 2,000+" in told(workers={"a": worker(held={"need.water": 2_999})}).sentence


def test_what_is_put_by_for_moments_needs_no_word():
    assert told(workers={"a": worker(waits_s=2)}, put_by=9).level == "live"


def test_what_waits_waits_on_while_its_worker_is_silent_whatever_the_clock_of_that_says():
    for silent_s, says in ((0.0, "for 30 s"), (2.0, "for 32 s")):
        assert says in told(workers={"a": worker(silent_s, waits_s=30)}, put_by=9).sentence


def test_dead_workers_are_called_so_within_five_seconds():
    assert told(workers={"a": worker(SILENT_S + 0.9)}).level == "down"


def test_a_call_that_hangs_is_told_before_its_lag_is_and_one_that_takes_a_moment_is_not():
    assert told(workers={"a": worker(computes_s=2.5)}).level == "live"
    assert told(workers={"a": worker(computes_s=SILENT_S + 0.1)}).level == "late"


def test_partitions_that_nobody_reads_need_no_word_while_nothing_waits_in_them_or_a_worker_does_not_say():
    held = {"a": worker(holds={"posts.raw": [0, 1]})}
    assert told(workers=held).level == "live"
    assert told(workers=held | {"old": worker()}, lag={"posts.raw": 1}).level == "live"
    both = held | {"b": worker(holds={"posts.raw": [2, 3]})}
    assert told(workers=both, lag={"posts.raw": 1}).level == "live"


@pytest.mark.parametrize(
    "worse",
    [
        {"lag": {"posts.raw": 5_000}},
        {"workers": {"a": worker(holds={"posts.raw": [0]})}, "lag": {"posts.raw": 1}},
        {"workers": {"a": worker(computes_s=9)}},
        {"workers": {"a": worker(stands_s=9)}},
        {"workers": {"a": worker(waits_s=600)}, "put_by": 9},
        {"workers": {"a": worker(message="cannot load 4841")}},
    ],
)
def test_a_source_that_is_silent_or_in_trouble_hides_nothing_that_holds_up_the_posts_of_all(worse):
    for source in (SourceStatus(NOW - 9), SourceStatus(NOW, "is silent")):
        assert told(**worse, sources={"http": source}) == told(**worse) != told()


def test_a_source_that_died_is_missed_for_a_day_though_others_speak_and_then_not_for_ever():
    speaks = {"http": SourceStatus(NOW)}
    for message in ("", "is silent"):
        died = SourceStatus(NOW - SOURCE_KEPT_S, message)
        assert told(sources=speaks | {"bluesky": died}).level == "late"
        died = SourceStatus(NOW - SOURCE_KEPT_S - 1, message)
        assert told(sources=speaks | {"bluesky": died}).level == "live"


def test_whoever_asks_hears_which_source_is_in_trouble_and_not_what_a_server_said_of_it():
    health = told(sources={"mastodon m.example": SourceStatus(NOW, "refused: see https://m.example/?token=hunter2")})
    assert "refused" in health.sentence and health.level == "late"
    assert "source mastodon m.example" in health.for_anybody()
    assert not [word for word in ("refused", "hunter2", "://") if word in health.for_anybody()]
    for other in (told(), told(broker=False), told(sources={"http": SourceStatus(NOW - 9)})):
        assert other.for_anybody() == other.sentence


def test_a_source_that_speaks_or_took_leave_needs_no_word():
    assert told(sources={"http": SourceStatus(NOW - 2)}) == told(sources={}) == Health("live", "live: 1 worker at work")


@given(
    redis=st.booleans(),
    broker=st.booleans(),
    silent=st.lists(st.sampled_from([0.5, 4.0])),
    stands=st.sampled_from([0.0, 9.0]),
    source=st.sampled_from([None, 0.5, 4.0]),
)
def test_it_is_live_if_and_only_if_nothing_is_wrong(redis, broker, silent, stands, source):
    workers = {str(n): worker(s, stands_s=stands) for n, s in enumerate(silent)}
    sources = {} if source is None else {"http": SourceStatus(NOW - source)}
    right = redis and broker and 0.5 in silent and not stands and source != 4.0
    assert (told(redis, workers, None, broker, 0, sources).level == "live") == right
