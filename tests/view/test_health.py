"""The one sentence about the whole: never "live" when something is not."""

import pytest

from streams.view.health import SILENT_S, Health, judge
from streams.view.status import WorkerStatus

NOW = 1_795_000_000.0
AGENTS = ("normalise", "embed", "match", "cluster")


def worker(silent_s=0.5, agents=AGENTS, **more):
    return WorkerStatus(NOW - silent_s, list(agents), "v", **more)


def told(redis_s=0.2, workers=None, lag=None, broker=True, put_by=0):
    workers = {"a": worker()} if workers is None else workers
    return judge(redis_s, workers, (lag or {}) if broker else None, AGENTS, NOW, put_by)


def test_it_is_live_when_redis_the_broker_and_every_agent_answer():
    assert told() == Health("live", "live: 1 worker at work")
    split = {"a": worker(agents=AGENTS[:2]), "b": worker(agents=AGENTS[2:])}
    assert told(workers=split).sentence == "live: 2 workers at work"


@pytest.mark.parametrize(
    "found, level, says",
    [
        ({"redis_s": SILENT_S + 3}, "down", "Redis has not answered for 6 s"),
        ({"workers": {}}, "down", "no worker has ever spoken"),
        ({"workers": {"a": worker(12), "b": worker(90)}}, "down", "no worker has spoken for 12 s"),
        ({"workers": {"a": worker(agents=AGENTS[:3])}}, "down", "runs cluster"),
        ({"workers": {"a": worker(state="loading")}}, "down", "no worker that is ready"),
        ({"workers": {"a": worker(), "b": worker(9, AGENTS)}, "broker": False}, "late", "the broker does not answer"),
        ({"lag": {"posts.raw": 5_000}}, "late", "5,000 records wait in posts.raw"),
        (
            {"workers": {"a": worker(waits_since=NOW - 600), "b": worker(waits_since=NOW - 60)}, "put_by": 2_400},
            "late",
            "2,400 posts wait to be read in context, the oldest for 10 min",
        ),
        (
            {"workers": {"a": worker(waits_since=NOW - 20)}},
            "late",
            "posts wait to be read in context, the oldest for 20 s",
        ),
        (
            {"workers": {"a": worker(waits_since=NOW - 9000)}, "lag": {"posts.raw": 5_000}, "put_by": 7},
            "late",
            "wait in posts.raw; 7 posts wait to be read in context, the oldest for 2 h",
        ),
        ({"workers": {"a": worker(computes_s=4), "b": worker()}}, "late", "worker a has computed one batch for 4 s"),
        ({"workers": {"a": worker(message="cannot load 4841")}}, "late", "worker a: cannot load 4841"),
    ],
)
def test_what_is_wrong_is_said_in_words(found, level, says):
    health = told(**found)
    assert health.level == level and says in health.sentence


def test_what_is_put_by_for_moments_needs_no_word():
    assert told(workers={"a": worker(waits_since=NOW - 2)}, put_by=9).level == "live"


def test_dead_workers_are_called_so_within_five_seconds():
    assert told(workers={"a": worker(SILENT_S + 0.9)}).level == "down"


def test_a_call_that_hangs_is_told_before_its_lag_is_and_one_that_takes_a_moment_is_not():
    assert told(workers={"a": worker(computes_s=2.5)}).level == "live"
    assert told(workers={"a": worker(computes_s=SILENT_S + 0.1)}).level == "late"
