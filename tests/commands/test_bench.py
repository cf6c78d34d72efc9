"""`crisis bench`: what it keeps, what it compares, and that it runs."""

from __future__ import annotations

import itertools
import json

import msgspec
import pytest
from click.testing import CliRunner

from streams.cli import crisis
from streams.commands.bench import Metric, Run, grown
from streams.commands.bench_scenarios import SCENARIOS, invented_texts
from streams.worker.threads import VARIABLES


@pytest.fixture
def environment(monkeypatch):
    for name in (*VARIABLES, "TOKENIZERS_PARALLELISM"):  # what the command sets goes again with the test
        monkeypatch.setenv(name, "1" if name in VARIABLES else "false")
    monkeypatch.delenv("CRISIS_DATA", raising=False)


def run_of(**metrics: tuple[str, float, float]) -> Run:
    made = {name.replace("_", "."): Metric(unit, v, v, v, tolerance) for name, (unit, v, tolerance) in metrics.items()}
    return Run("", "", "", {}, "", "", 1, made)


def test_microseconds_are_compared_at_the_pace_of_the_machine_and_ratios_as_they_are():
    before = run_of(yardstick_work=("µs", 100.0, 10.0), a_us=("µs/post", 50.0, 1.4), a_ratio=("ratio", 1.0, 1.2))
    slower = run_of(yardstick_work=("µs", 200.0, 10.0), a_us=("µs/post", 130.0, 1.4), a_ratio=("ratio", 1.1, 1.2))
    assert grown(before, slower) == []
    worse = run_of(yardstick_work=("µs", 200.0, 10.0), a_us=("µs/post", 141.0, 1.4), a_ratio=("ratio", 1.3, 1.2))
    assert [line.split(":")[0] for line in grown(before, worse)] == ["a.ratio", "a.us"]


def test_a_figure_that_was_nothing_may_be_a_tick_of_the_clock():
    before = run_of(yardstick_work=("µs", 100.0, 10.0), a_us=("µs/post", 0.0, 1.5))
    assert grown(before, run_of(yardstick_work=("µs", 100.0, 10.0), a_us=("µs/post", 0.5, 1.5))) == []
    assert len(grown(before, run_of(yardstick_work=("µs", 100.0, 10.0), a_us=("µs/post", 2.0, 1.5)))) == 1


def test_invented_posts_are_the_same_every_time():
    first, second = (list(itertools.islice(invented_texts(), 300)) for _ in range(2))
    assert first == second and len(set(first)) > 290


def test_a_run_is_kept_with_all_it_needs_to_be_repeated_and_a_worse_one_does_not_replace_it(tmp_path, environment):
    out = tmp_path / "bench.json"
    command = ["bench", "--only", "encode.1", "--rounds", "1", "--posts", "200", "--out", str(out)]
    done = CliRunner().invoke(crisis, command)
    assert done.exit_code == 0, done.output
    kept = json.loads(out.read_text())
    assert kept["commit"] and kept["machine"] and kept["versions"]["numpy"] and kept["posts"] == "invented, 200"
    assert {"encode.1.warm", "encode.1.to_tokenizer", "yardstick.work"} == set(kept["metrics"])
    for metric in kept["metrics"].values():
        metric |= dict.fromkeys(("min", "median", "max"), metric["median"] / (1 if metric["unit"] == "µs" else 100))
    out.write_bytes(msgspec.json.encode(kept))
    again = CliRunner().invoke(crisis, command)
    assert again.exit_code == 1 and "encode.1.to_tokenizer" in again.output
    assert json.loads(out.read_text()) == kept


def test_every_part_of_a_scenario_has_a_unit_and_a_tolerance():
    for name, (_, parts) in SCENARIOS.items():
        assert name == "yardstick" or name.rsplit(".", 1)[1].isdigit()
        assert all(unit and tolerance > 1 for unit, tolerance in parts.values())
