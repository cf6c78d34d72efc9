"""`python deploy/growth.py`: draw growth.svg from endurance.json, and print its table.

The figures come from `python -m tests.endurance 1000000 deploy/endurance.json`: what each stage costs a post, and the
memory that one process with all of them holds, over a million posts in one window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import msgspec
from matplotlib.figure import Figure

HERE = Path(__file__).parent
AIM_MB = 1_500  # for a million posts in the window
STAGES = ("parse", "triage", "embed", "match", "alerts", "cluster", "save")  # in a post's order

Part = Mapping[str, float]  # "posts" that had come, "memory_mb", and by stage CPU µs a post since the part before


def table(parts: Sequence[Part]) -> str:
    """Markdown, a row for each part."""
    rows = [
        f"| {part['posts']:,.0f} | {' | '.join(f'{part[stage]:.0f}' for stage in STAGES)} | "
        f"{sum(part[stage] for stage in STAGES):,.0f} | {part['memory_mb']:,.0f} |"
        for part in parts
    ]
    head = f"| posts that have come | {' | '.join(STAGES)} | all, µs a post | MB |"
    return "\n".join([head, "|---" * (len(STAGES) + 3) + "|", *rows])


def draw(parts: Sequence[Part], out: Path) -> None:
    """What each stage costs, one on the other, and memory with what is aimed at, over the number of posts."""
    with matplotlib.rc_context({"svg.hashsalt": "growth", "font.size": 9}):  # the same figures, the same bytes
        figure = Figure(figsize=(8, 3), layout="constrained")
        cost, memory = figure.subplots(1, 2)
        posts = [part["posts"] / 1000 for part in parts]
        cost.stackplot(posts, *([part[stage] for part in parts] for stage in STAGES), labels=STAGES)
        cost.set(title="CPU µs a post", xlabel="thousand posts that have come", ylim=(0, None))
        cost.legend(ncols=2, loc="lower left")
        memory.plot(posts, [part["memory_mb"] for part in parts])
        memory.axhline(AIM_MB, linestyle="--", color="grey", label="aimed at, at most")
        memory.set(title="memory, MB", xlabel="thousand posts that have come", ylim=(0, None))
        memory.legend()
        figure.savefig(out, metadata={"Date": None})


def main() -> None:
    """Read, print, draw."""
    parts = msgspec.json.decode((HERE / "endurance.json").read_bytes())["parts"]
    print(table(parts))
    draw(parts, HERE / "growth.svg")


if __name__ == "__main__":
    main()
