"""`python -m tests.flow`: the scenarios that need Apache Kafka (Java) and redis-server. Ids are permanent.

Beside the worker run those peers that are installed: confluent-kafka, bytewax, quixstreams (`pip install`, in an
environment of their own if one will).
"""

from __future__ import annotations

import itertools
import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from models.moments import rfc3339
from streams.commands.bench import Run, commit_now, over_rounds, report
from streams.commands.bench_scenarios import yardstick
from tests.flow import e2e, latency, rate, scale
from tests.flow.scene import posts, services

LIBRARIES = ("faust-streaming", "aiokafka", "redis", "msgspec", "numpy", "confluent-kafka", "bytewax", "quixstreams")
SCENARIOS = {"e2e.2": e2e.scenario, "latency.3": latency.scenario, "rate.3": rate.scenario, "scale.2": scale.scenario}
CLOCK = ("µs/post of the clock", 1.5)
UNITS = {"wall": CLOCK, "told": CLOCK, "sustained": CLOCK, "to_one": ("ratio", 1.2), "behind": ("ms", 2.0)} | {
    f"{name}_{peer}": ("ratio", 1.3) for name in ("to", "cpu_to") for peer in e2e.PEERS
}


def unit_of(part: str) -> tuple[str, float]:
    """Unit and tolerance of a figure, by the last word of its name."""
    if part in UNITS:
        return UNITS[part]
    if part == "ready":
        return "s", 1.5
    if "_p" in part:
        return "ms", 2.0
    return ("cores", 2.0) if "cores" in part else ("µs/post of CPU", 1.5)


def _versions() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


@click.command()
@click.option("--only", multiple=True, type=click.Choice(sorted(SCENARIOS)), help="These; may be repeated.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
@click.option(
    "--posts", "number", type=click.IntRange(1_000), default=12_000, show_default=True, help="A fifth warms up."
)
@click.option(
    "--part",
    multiple=True,
    help="Parts with this word (of e2e.2 frames, single, queries1000, clusters5000, worker, workers2, pair, trio, "
    "bare …; of rate.3 frames, queries1000, clusters5000, 5000 …; of scale.2 1, 2, 4).",
)
@click.option("--invented", is_flag=True, help="Invented posts, even where CRISIS_DATA holds real streams.")
@click.option(
    "--profile", type=click.Path(path_type=Path), help="Stacks of the worker (py-spy); a table lies beside it."
)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Keep the run; what was there is compared."
)
def main(
    only: tuple[str, ...],
    rounds: int,
    number: int,
    part: tuple[str, ...],
    invented: bool,
    profile: Path | None,
    out: Path | None,
) -> None:
    """Measure the whole pipeline end to end, beside the same stages in other loops."""
    lines, found = posts(number, invented), {}
    names = only or tuple(SCENARIOS)
    with services() as at:
        for turn, name in itertools.product(range(rounds), names):
            click.echo(f"round {turn + 1} of {rounds}: {name}", err=True)
            found.setdefault("yardstick.work", []).append(yardstick(None)["work"])
            for figure, value in SCENARIOS[name](at, lines, part, profile).items():
                found.setdefault(f"{name}.{figure}", []).append(value)
    told = {name: unit_of(name.rsplit(".", 1)[1]) for name in found}
    told["yardstick.work"] = ("µs", 10.0)
    run = Run(
        command=" ".join(
            ["python -m tests.flow", f"--rounds {rounds} --posts {number}", *(f"--only {n}" for n in only)]
        ),
        commit=commit_now(),
        machine=f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[1]:.0f}",
        versions={"python": platform.python_version()} | _versions(),
        finished_at=rfc3339(time.time(), "seconds"),
        posts=f"{'invented' if invented or 'CRISIS_DATA' not in os.environ else 'real'}, {number:,}",
        rounds=rounds,
        metrics=over_rounds(found, told),
    )
    report(run, out)


if __name__ == "__main__":
    main()
