"""The scenario rate.1: the most posts a second that may come on and on without a stage that falls further behind.

Two workers and a clusterer, on the cores that the broker and Redis have too. A backlog says less: it ends with the
stage that was furthest behind, while the others have nothing left to do.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Thread

import click

from tests.flow.scene import APART, Deployment, Services, measured, renamed

RATES = (1_000, 1_500, 2_000, 2_500, 3_000, 3_500, 4_000, 4_500, 5_000, 5_500, 6_000, 7_000)  # posts a second
RUN_S = 15.0
FURTHER_S = 0.4  # more behind at the end than after a third: a rate by .04 above what is done falls by this behind
LATE_S = 0.5  # that the writer may need more than its time
QUERIES = {"frames": 40, "queries1000": 1_000}
FRAME_POSTS = 100


def scenario(
    at: Services, lines: Sequence[bytes], words: Sequence[str] = (), profile: object = None
) -> dict[str, float]:
    """For the bundled queries and for a thousand, µs a post at the highest rate that is kept up with, and how many
    milliseconds the last of all stages is behind there. words: one of the two, and the rates wanted.

    Raises AssertionError where none is kept up with, and where the writer itself is late.
    """
    found: dict[str, float] = {}
    rates = [rate for rate in RATES if str(rate) in words] or RATES
    for shape, queries in QUERIES.items():
        if any(word not in (shape, *map(str, RATES)) for word in words):
            continue
        deployment = Deployment(at, queries)
        with deployment.workers(APART) as children:
            deployment.write(lines, FRAME_POSTS)
            measured(deployment, children, deployment.through, 1, len(lines))
            first = len(lines)
            for rate in rates:
                mine = renamed(lines, first, int(rate * RUN_S))
                early_s, late_s = behind_s(deployment, mine, rate, first)
                first += len(mine)
                kept = late_s - early_s <= FURTHER_S
                click.echo(
                    f"  {shape}, {rate:,} posts/s: {early_s:.2f} s behind after a third, {late_s:.2f} s in the end"
                    + ("" if kept else ": not kept up with"),
                    err=True,
                )
                if not kept:
                    break
                found |= {f"{shape}.sustained": 1e6 / rate, f"{shape}.behind": 1e3 * late_s}
        assert f"{shape}.sustained" in found, f"{shape}: not even {rates[0]:,} posts a second are kept up with"
    return found


def behind_s(deployment: Deployment, lines: Sequence[bytes], rate: float, before: int) -> tuple[float, float]:
    """How long ago the first post was written that is not through all stages: after a third, and at the end."""
    began, planned_s = time.monotonic(), len(lines) / rate
    writing = Thread(target=deployment.write, args=(lines, FRAME_POSTS, rate))
    writing.start()
    time.sleep(planned_s / 3)
    early_s = time.monotonic() - began - (deployment.through() - before) / rate
    writing.join()
    took_s = time.monotonic() - began
    assert took_s < planned_s + LATE_S, f"{rate:,} posts a second were to be written for {planned_s} s: {took_s:.1f}"
    late_s = (before + len(lines) - deployment.through()) / rate
    measured(deployment, [], deployment.through, 1, before + len(lines))
    return early_s, late_s
