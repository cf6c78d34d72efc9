"""The numbers on the page."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.dashboard import stats
from streams.dashboard.stats import Rate, biggest, percentiles, worker_statuses
from streams.pipeline.outcomes import OUTCOMES
from streams.view.status import WorkerStatus, decode_status


@given(st.floats(0.5, 500), st.integers(3, 40))
def test_the_rate_of_a_steady_stream_is_its_rate(per_s, ticks):
    rate = Rate()
    for tick in range(ticks):
        got = rate.add(float(tick), round(tick * per_s))
    assert got == pytest.approx(per_s, abs=1.0)


def test_the_rate_forgets_what_is_older_than_its_span():
    rate = Rate(span_s=5)
    for tick in range(10):
        rate.add(float(tick), tick * 100)
    for tick in range(10, 20):
        got = rate.add(float(tick), 900)
    assert got == 0.0


def test_the_first_look_and_a_reset_counter_are_no_rate():
    rate = Rate()
    assert rate.add(0.0, 5000) == 0.0
    assert rate.add(1.0, 10) == 0.0
    assert rate.add(2.0, 30) == 20.0


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=200))
def test_percentiles_are_those_of_the_standard_library(latencies):
    p50, p95 = percentiles(latencies)
    assert p50 == pytest.approx(statistics.median(latencies), abs=0.06)
    assert p95 == pytest.approx(statistics.quantiles(latencies, n=20, method="inclusive")[-1], abs=0.06, rel=1e-9)


def test_no_measurement_is_no_percentile():
    assert percentiles([]) == (None, None)


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.integers(0, 100), max_size=30), st.integers(1, 12))
def test_nothing_is_lost_when_only_the_biggest_are_listed(counts, most):
    listed = biggest(counts, most)
    assert sum(n for _, n in listed) == sum(counts.values())
    assert [n for name, n in listed if name] == sorted(counts.values(), reverse=True)[:most]


def test_a_silent_worker_is_gone_and_a_long_silent_one_forgotten():
    said = {"a": WorkerStatus(100.0, ["embed"]), "b": WorkerStatus(80.0), "c": WorkerStatus(-9000.0)}
    found = {w.name: w for w in worker_statuses(said, at=101.0)}
    assert (found["a"].state, found["b"].state) == ("ready", "gone") and "c" not in found
    assert found["b"].silent_s == 21.0


def test_a_worker_that_says_little_is_still_shown():
    (worker,) = worker_statuses({"x": decode_status(b'{"at": 5.0}')}, at=6.0)
    assert worker.state == "ready" and worker.agents == []


def test_the_page_shows_every_outcome_and_what_is_under_way():
    drawn = (Path(stats.__file__).parent / "static" / "figures.js").read_text("utf-8")
    (listed,) = re.findall(r"const OUTCOMES = (\[\[.*\]\]);", drawn)
    assert [name for name, _ in json.loads(listed)] == [*OUTCOMES, "waiting"]
