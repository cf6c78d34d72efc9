"""What the costliest inputs cost, in µs of CPU a byte: `python -m tests.hostile [SECONDS] [SEED]`.

For SECONDS (default 60) units are invented and repeated to a post of full length; the 20 costliest are printed beside
the named ones, worst first: as a multiple of ordinary posts, and what of it each agent's work is. Measured is all that
a worker does with a record (tests/hostile/cost.py): each text alone, in three posts that alert and make a cluster, and
at 300 characters.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from models.posts import MAX_TEXT_CHARS
from tests.hostile.cost import PARTS, Cost
from tests.hostile.inputs import LINES, TEXTS, Make, crowd, crying, invented, line

Row = tuple[float, str, dict[str, float]]


def ways(name: str, make: Make) -> Iterator[tuple[str, bytes]]:
    """The records a text is tried in."""
    long = make(MAX_TEXT_CHARS)
    yield name, line(long)
    yield f"{name}, crying", crowd(*[crying(long)] * 3)
    yield f"{name}, 300 characters", crowd(*[make(300)] * 20)


def main(seconds: float = 60.0, seed: int = 0) -> None:
    cost = Cost()
    base = cost.a_byte(cost.ordinary, 3)

    def measured(name: str, record: bytes) -> Row:
        spent = cost.a_byte(record)
        return spent["all"] / base["all"], name, spent

    rows = [(1.0, "ordinary posts", base)]
    rows += [measured(*way) for name, make in TEXTS.items() for way in ways(name, make)]
    rows += [measured(name, make(200_000)) for name, make in LINES.items()]
    tried: list[Row] = []
    begun, makers = time.monotonic(), invented(seed)
    while time.monotonic() - begun < seconds:
        make = next(makers)
        tried += [measured(*way) for way in ways(make.__name__, make)]
    rows += sorted(tried, key=lambda row: -row[0])[:20]
    parts = [*PARTS, "rest"]
    print(f"| input | × ordinary | µs a byte | {' | '.join(parts)} |\n|---|---:|---:|{'---:|' * len(parts)}")
    for times, name, spent in sorted(rows, key=lambda row: -row[0]):
        told = " | ".join(f"{spent[part]:.2f}" for part in parts)
        print(f"| {name.replace('|', chr(92) + '|')} | {times:.1f} | {spent['all']:.2f} | {told} |")


if __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((float, int), sys.argv[1:], strict=False)))
