"""Runs that end when their minutes are over, and go on: a machine may be lent for ten at a time."""

from __future__ import annotations

import sys

import msgspec
import pytest
import torch

from models.errors import ConfigError
from training import adapt, distill, loop, robust, shorten
from training.jobs import read_config, run
from training.loop import BEST, CHECKPOINT, Pace, TimeIsUp, Trace, fit, load_weights, minutes_left, tensors_of
from training.run_key import run_key

PACE = Pace(steps=40, lr=0.05, warmup=5, seed=3, checkpoint_every=7, validate_every=5)
MINUTES = 0.5
JOBS = {"shorten": shorten, "adapt": adapt, "distill": distill, "robust": robust}


class Ticking:
    """A clock that is looked at once when a run begins and once after each step, `seconds` apart."""

    def __init__(self, seconds: float) -> None:
        self.now, self._seconds = 0.0, seconds

    def __call__(self) -> float:
        self.now += self._seconds
        return self.now


def line() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Dropout(0.3), torch.nn.Linear(3, 1))


def trained(model: torch.nn.Module, folder, pace: Pace = PACE, seconds: float = 0.0, **more) -> Trace:
    def losses(step: int):
        x = torch.randn(16, 3, generator=torch.Generator().manual_seed(step))
        yield (model(x) - x.sum(1, keepdim=True)).square().mean()

    def distance() -> float:
        return float((model[1].weight - 1).abs().sum())

    return fit(model, losses, pace, folder, more.pop("key", "k"), distance, clock=Ticking(seconds), **more)


def slices(folder, pace: Pace, seconds: float) -> tuple[torch.nn.Module, Trace, list[str]]:
    """Start the run until it is through, each time with a new model: its weights, its trace, what each slice told."""
    told: list[str] = []
    while len(told) < 50:
        model = line()
        try:
            return model, trained(model, folder, pace, seconds), told
        except TimeIsUp as up:
            told.append(str(up))
    raise AssertionError("never through")


@pytest.mark.parametrize("seconds", [1.0, 3.5, 6.0, 10.0, 1000.0])
def test_a_run_that_stops_at_its_time_limit_goes_on_to_the_weights_of_an_unbroken_one(tmp_path, seconds):
    whole = line()
    trace = trained(whole, tmp_path / "a")
    again, resumed, told = slices(tmp_path / "b", msgspec.structs.replace(PACE, minutes=MINUTES), seconds)
    assert resumed == trace
    # A slice ends after the first step that 30 s are over with, and has at least that one.
    steps = max(1, -int(-60 * MINUTES // seconds))
    assert len(told) == (PACE.steps - 1) // steps
    for name, tensor in tensors_of(whole).items():
        assert torch.equal(tensor, tensors_of(again)[name]), name
    load_weights(tmp_path / "a" / BEST, whole)
    load_weights(tmp_path / "b" / BEST, again)
    assert torch.equal(whole[1].weight, again[1].weight)


def test_it_tells_how_far_it_is_and_the_command_that_goes_on_and_ends_with_the_status_for_try_again(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "argv", ["shorten.py", "h200", "model=a model", "out=b"])
    with pytest.raises(TimeIsUp) as up:
        trained(line(), tmp_path, msgspec.structs.replace(PACE, minutes=MINUTES), 3.0, title="shortening")
    told = str(up.value)
    assert "shortening: the time is up at step 10 of 40 (25%)" in told and str(tmp_path / CHECKPOINT) in told
    assert told.endswith(" h200 'model=a model' out=b") and "python -m " in told
    assert told in capsys.readouterr().out
    assert up.value.code == 75  # a script that goes on after success does not go on


def test_a_job_whose_run_pauses_does_nothing_more_and_is_no_error(tmp_path):
    """It would write a result, or a model, of weights that are half learnt."""

    def main(config: shorten.Config) -> None:
        trained(line(), tmp_path, msgspec.structs.replace(PACE, minutes=config.minutes), 60.0)
        pytest.fail("went on")

    with pytest.raises(SystemExit) as ended:
        run(main, {"h200": shorten.Config(minutes=1)}, ["h200"])
    assert ended.value.code == 75


def test_a_run_that_is_through_or_has_stopped_early_is_never_out_of_time(tmp_path):
    pace = msgspec.structs.replace(PACE, steps=1, minutes=MINUTES)
    assert trained(line(), tmp_path / "a", pace, 100.0).step == 1
    early = msgspec.structs.replace(PACE, minutes=MINUTES, patience=1, threshold=1e9)
    trace = trained(line(), tmp_path / "b", early, 6.0)  # the limit is at step 5, where it also gives up
    assert trace.stopped and trace.step == 5


def test_another_limit_does_not_make_it_another_run_and_another_knob_does(tmp_path):
    def key(**knobs) -> str:
        return run_key(shorten.Config(model="m", **knobs), "data")

    with pytest.raises(TimeIsUp):
        trained(line(), tmp_path, msgspec.structs.replace(PACE, minutes=MINUTES), 10.0, key=key(minutes=9))
    with pytest.raises(ConfigError, match="another run"):
        trained(line(), tmp_path, key=key(minutes=9, seed=1))
    assert trained(line(), tmp_path, key=key()).step == PACE.steps
    before = key().replace('"minutes": 0.0, ', "")  # of a run that was begun before there was the knob
    assert before != key()
    assert trained(line(), tmp_path, key=before).step == PACE.steps


def test_what_came_before_the_loop_counts_and_leaves_it_at_least_a_step(monkeypatch):
    monkeypatch.setattr(loop.time, "monotonic", lambda: 1000.0)
    assert minutes_left(9, began=1000.0 - 120) == pytest.approx(7)
    assert 0 < minutes_left(9, began=0.0) < 0.001
    assert minutes_left(0, began=0.0) == 0


def test_the_file_of_a_run_that_is_through_holds_no_more_than_its_weights(tmp_path):
    """A third of what it takes to go on: from a lent machine no more than 64 MiB come back."""

    def names() -> set[str]:
        with loop.safe_open(tmp_path / CHECKPOINT, "pt") as file:
            return {name.partition(".")[0] for name in file.keys()}

    with pytest.raises(TimeIsUp):
        trained(line(), tmp_path, msgspec.structs.replace(PACE, minutes=MINUTES), 10.0)
    assert names() == {"module", "optimizer"}
    done = line()
    trained(done, tmp_path)
    assert names() == {"module"}
    again = line()
    trained(again, tmp_path)
    assert torch.equal(again[1].weight, done[1].weight)


@pytest.mark.parametrize("name", JOBS)
def test_the_preset_for_a_lent_gpu_parses_ends_within_ten_minutes_and_is_shown_by_the_help(name, capsys):
    job = JOBS[name]
    config = read_config(job.PRESETS, ["h200", "minutes=4.5", "seed=7"])
    assert config.minutes == 4.5 and 0 < job.PRESETS["h200"].minutes <= 9
    assert config.batch > job.PRESETS["laptop"].batch or name in ("distill", "robust")  # there the table's is larger
    with pytest.raises(SystemExit) as asked:
        run(job.main, job.PRESETS, ["--help"])
    told = capsys.readouterr().out
    assert asked.value.code == 0 and "  minutes=0.0  – " in told
    assert "h200" in told.partition("\npresets: ")[2].partition("\n")[0]


@pytest.mark.parametrize("job", [shorten, adapt], ids=["shorten", "adapt"])
def test_a_lent_machine_needs_no_data_set(job):
    assert job.PRESETS["h200"].data is False and "reaches nothing" in (shorten.__doc__ or "")


def test_what_distils_on_a_lent_machine_is_named(tmp_path):
    with pytest.raises(ConfigError, match="student=DIR.*teacher=DIR"):
        distill.main(read_config(distill.PRESETS, ["h200", f"out={tmp_path}"]))
