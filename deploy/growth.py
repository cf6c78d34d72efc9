"""`python deploy/growth.py`: draw growth.svg from bench_growth.json, and print its table.

The figures come from `crisis bench --only clusters.window.1 --rounds 1 --out deploy/bench_growth.json`: what the
clusterer costs a post, and the most memory the process held (so nothing else in it), when so many posts had come.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import matplotlib
import msgspec
from matplotlib.figure import Figure

from streams.commands.bench import Run

HERE = Path(__file__).parent
AIM_MB, AIM_GROWTH = 1_500, 1.5  # what is aimed at for a million posts: memory, and times the cost at ten thousand


def points(run: Run) -> dict[int, dict[str, float]]:
    """Posts that have come → µs a post ("at"), live clusters ("live") and peak memory ("mb"), as far as measured."""
    found: dict[int, dict[str, float]] = {}
    for name, metric in run.metrics.items():
        if part := re.fullmatch(r"clusters\.window\.1\.(at|live|mb)_(\d+)", name):
            found.setdefault(int(part[2]), {})[part[1]] = metric.median
    return dict(sorted(found.items()))


def table(of: Mapping[int, Mapping[str, float]]) -> str:
    """Markdown, a row for each number of posts."""
    rows = [f"| {n:,} | {v['live']:,.0f} | {v['at']:.0f} | {v['mb']:,.0f} |" for n, v in of.items()]
    return "\n".join(["| posts that have come | live clusters | µs a post | MB at most |", "|---|---|---|---|", *rows])


def draw(of: Mapping[int, Mapping[str, float]], out: Path) -> None:
    """Both curves over the number of posts, with what is aimed at."""
    with matplotlib.rc_context({"svg.hashsalt": "growth", "font.size": 9}):  # the same figures, the same bytes
        figure = Figure(figsize=(8, 3), layout="constrained")
        cost, memory = figure.subplots(1, 2)
        posts = list(of)
        for axes, part, title, aim in (
            (cost, "at", "clusterer, CPU µs a post", AIM_GROWTH * of[posts[0]]["at"]),
            (memory, "mb", "memory at most, MB", AIM_MB),
        ):
            axes.plot(posts, [of[n][part] for n in posts], marker="o")
            axes.axhline(aim, linestyle="--", color="grey", label="aimed at, at most")
            axes.set(xscale="log", xlabel="posts that have come", title=title, ylim=(0, None))
            axes.legend()
        figure.savefig(out, metadata={"Date": None})


def main() -> None:
    """Read, print, draw."""
    run = msgspec.json.decode((HERE / "bench_growth.json").read_bytes(), type=Run)
    print(table(points(run)))
    draw(points(run), HERE / "growth.svg")


if __name__ == "__main__":
    main()
