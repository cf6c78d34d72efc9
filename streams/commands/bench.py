"""`crisis bench`: what a post costs, stage by stage, against a peer measured in the same run (bench_scenarios.py).

CPU time of one process, every native pool held to one thread; absolute microseconds belong to a machine, so they are
compared by way of a fixed piece of work (`yardstick`), and ratios as they are.
"""

from __future__ import annotations

import gc
import itertools
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import click
import msgspec
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from models.moments import rfc3339
from streams.commands.bench_growth import LONG
from streams.commands.bench_scenarios import FRAME, SCENARIOS, Lab
from streams.config import Settings
from streams.worker.garbage import keep_what_is_loaded
from streams.worker.threads import limit_native_threads

__all__ = ["Metric", "Run", "bench", "commit_now", "over_rounds", "report"]

LEAST_US = 1.0  # of a figure: what a clock of 10 ms says of 20,000 posts is half a microsecond or nothing
LIBRARIES = ("numpy", "scipy", "tokenizers", "msgspec", "faust-streaming")
note = Console(stderr=True)


class Metric(Struct, frozen=True):
    """One figure over all rounds; lower is better."""

    unit: str
    min: float
    median: float
    max: float
    tolerance: float  # by what factor it may grow before a comparison says so


class Run(Struct, frozen=True):
    """One run, as it is kept."""

    command: str
    commit: str
    machine: str
    versions: dict[str, str]
    finished_at: str
    posts: str  # "real" or "invented", and how many
    rounds: int
    metrics: dict[str, Metric]  # "scenario.part" → figure


def grown(before: Run, now: Run) -> list[str]:
    """What costs more than its tolerance allows, in words. Ratios compare as they are, times at the machine's pace."""
    pace = now.metrics["yardstick.work"].median / before.metrics["yardstick.work"].median
    told = []
    for name in sorted(now.metrics.keys() & before.metrics.keys()):
        old, new = before.metrics[name], now.metrics[name]
        expected = old.median * (pace if new.unit.startswith(("µs", "ms")) else 1.0)
        most = max(expected * new.tolerance, LEAST_US if new.unit.startswith("µs") else 0.0)
        if name != "yardstick.work" and new.min > most:  # its best round is worse than allowed
            told.append(
                f"{name}: {new.median:.4g} {new.unit}, expected {expected:.4g}, at most {new.tolerance:g} times that"
            )
    return told


def measure(lab: Lab, rounds: int, only: tuple[str, ...]) -> dict[str, Metric]:
    """Every scenario but the long ones, or those that are named, `rounds` times over; the yardstick always."""
    chosen = [name for name in SCENARIOS if name == "yardstick" or name in (only or SCENARIOS.keys() - set(LONG))]
    found: dict[str, list[float]] = {}
    for turn, name in itertools.product(range(rounds), chosen):
        note.print(f"round {turn + 1} of {rounds}: {name}", highlight=False)
        gc.unfreeze()
        keep_what_is_loaded()  # as workers do: else each scenario pays for looking through what all before it left
        for part, value in SCENARIOS[name][0](lab).items():
            found.setdefault(f"{name}.{part}", []).append(value)
    told = {name: SCENARIOS[scenario][1][part] for name in found for scenario, part in [name.rsplit(".", 1)]}
    return over_rounds(found, told)


def over_rounds(found: Mapping[str, Sequence[float]], told: Mapping[str, tuple[str, float]]) -> dict[str, Metric]:
    """found: a value of each round, by figure; told: its unit, and by what factor it may grow."""
    metrics = {}
    for name, values in found.items():
        unit, tolerance = told[name]
        three = (min(values), statistics.median(values), max(values))
        metrics[name] = Metric(unit, *(round(value, 3) for value in three), tolerance)
    return metrics


def report(run: Run, out: Path | None) -> None:
    """Show a run, compare it with the one kept at `out`, and keep it there. Raises ClickException if it is worse."""
    table = Table("figure", "min", "median", "max", "unit")
    for name, metric in run.metrics.items():
        table.add_row(name, *(f"{v:,.4g}" for v in (metric.min, metric.median, metric.max)), metric.unit)
    Console().print(table)
    if out is None:
        return
    told = grown(msgspec.json.decode(out.read_bytes(), type=Run), run) if out.exists() else []
    if told:
        raise click.ClickException(f"worse than the run kept at {out}, which stays:\n" + "\n".join(told))
    out.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")


def commit_now() -> str:
    """The commit this code is of, or its version where there is none."""
    ask = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return version("crisis-streams")


@click.command()
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep the run here as JSON; what was there is compared.",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(sorted(SCENARIOS)),
    help="These scenarios; may be repeated. The long ones run only so.",
)
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--posts", type=click.IntRange(FRAME), default=4_000, show_default=True, help="Rounded down to hundreds.")
@click.option("--invented", is_flag=True, help="Invented posts, even where CRISIS_DATA holds real streams.")
@click.pass_obj
def bench(settings: Settings, out: Path | None, only: tuple[str, ...], rounds: int, posts: int, invented: bool) -> None:
    """Measure what a post costs, stage by stage: some two minutes, no broker needed.

    Real posts where CRISIS_DATA holds streams, invented ones else. Prints minimum, median and maximum over the rounds,
    and fails if anything costs more than its tolerance over the run kept at --out.
    """
    limit_native_threads(1)
    lab = Lab(settings, posts // FRAME * FRAME, invented)
    metrics = measure(lab, rounds, only)
    run = Run(
        command=" ".join(["crisis bench", f"--rounds {rounds} --posts {posts}", *(f"--only {name}" for name in only)]),
        commit=commit_now(),
        machine=f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        versions={name: version(name) for name in LIBRARIES},
        finished_at=rfc3339(time.time(), "seconds"),
        posts=f"{'real' if lab.real else 'invented'}, {lab.number:,}",
        rounds=rounds,
        metrics=metrics,
    )
    report(run, out)
