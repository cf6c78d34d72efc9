"""The scenario rate.3: the most posts a second that may come on and on without a stage that falls further behind.

One that reads, one that matches and one that clusters, on the cores that the broker and Redis have too. A backlog says
less: it ends with the stage that was furthest behind, while the others have nothing left to do.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Thread
from typing import NamedTuple

import click

from tests.flow.scene import TRIO, Deployment, Services, measured, renamed
from tests.flow.warm import keep_clusters

RATES = (1_000, 1_500, 2_000, 2_500, 3_000, 3_500, 4_000, 4_500, 5_000, 5_500, 6_000, 7_000)  # posts a second
RUN_S = 15.0
FURTHER_S = 0.4  # more behind at the end than after a third: a rate by .04 above what is done falls by this behind
LATE_S = 0.5  # that the writer may need more than its time
SHAPES = {"frames": (40, 0), "queries1000": (1_000, 0), "clusters5000": (40, 5_000)}  # → queries, live clusters before
FRAME_POSTS = 100


def scenario(
    at: Services, lines: Sequence[bytes], words: Sequence[str] = (), profile: object = None
) -> dict[str, float]:
    """For the bundled queries, for a thousand, and from five thousand live clusters on: µs a post at the highest rate
    that outcomes keep up with (told), that clusters do too (sustained), and how many milliseconds those are behind
    there. words: one of the three, and rates.

    Raises AssertionError where none is kept up with, and where the writer itself is late.
    """
    found: dict[str, float] = {}
    lost: set[str] = set()
    rates = [rate for rate in RATES if str(rate) in words] or RATES
    for shape, (queries, clusters) in SHAPES.items():
        if any(word not in (shape, *map(str, RATES)) for word in words):
            continue
        deployment = Deployment(at, queries)
        if clusters:
            keep_clusters(deployment.settings, clusters)
        with deployment.workers(TRIO) as children:
            deployment.write(lines, FRAME_POSTS)
            measured(deployment, children, deployment.through, 1, len(lines))
            first = len(lines)
            for rate in rates:
                mine = renamed(lines, first, int(rate * RUN_S))
                told, all_stages = behind_s(deployment, mine, rate, first)
                first += len(mine)
                click.echo(f"  {shape}, {rate:,} posts/s: outcomes {told}, clusters {all_stages}", err=True)
                if f"{shape}.sustained" not in lost and all_stages.kept:
                    found |= {f"{shape}.sustained": 1e6 / rate, f"{shape}.behind": 1e3 * all_stages.late_s}
                else:
                    lost.add(f"{shape}.sustained")
                if not told.kept:
                    break
                found[f"{shape}.told"] = 1e6 / rate
        assert f"{shape}.sustained" in found, f"{shape}: not even {rates[0]:,} posts a second are kept up with"
    return found


class Behind(NamedTuple):
    """How long ago the first post was written that is not through: after a third of the time, and at its end."""

    early_s: float
    late_s: float

    @property
    def kept(self) -> bool:
        """Is it kept up with?"""
        return self.late_s - self.early_s <= FURTHER_S

    def __str__(self) -> str:
        return f"{self.early_s:.2f} and {self.late_s:.2f} s behind{'' if self.kept else ', not kept up with'}"


def behind_s(deployment: Deployment, lines: Sequence[bytes], rate: float, before: int) -> tuple[Behind, Behind]:
    """For outcomes, and for all stages. before: posts that were written earlier, all of them through."""
    began, planned_s = time.monotonic(), len(lines) / rate
    writing = Thread(target=deployment.write, args=(lines, FRAME_POSTS, rate))
    writing.start()
    time.sleep(planned_s / 3)
    early = [time.monotonic() - began - (done() - before) / rate for done in (deployment.told, deployment.through)]
    writing.join()
    took_s = time.monotonic() - began
    assert took_s < planned_s + LATE_S, f"{rate:,} posts a second were to be written for {planned_s} s: {took_s:.1f}"
    late = [(before + len(lines) - done()) / rate for done in (deployment.told, deployment.through)]
    measured(deployment, [], deployment.through, 1, before + len(lines))
    told, all_stages = map(Behind, early, late)
    return told, all_stages
