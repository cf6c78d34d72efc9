"""The scenario rate.1: the most posts a second that may come on and on without a stage that falls further behind.

Two workers and a clusterer, on the cores that the broker and Redis have too. A backlog says less: it ends with the
stage that was furthest behind, while the others have nothing left to do.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from tests.flow.scene import APART, Deployment, Services, renamed
from tests.waiting import wait_until

RATES = (3_000, 3_500, 4_000, 4_500, 4_750, 5_000, 5_250, 5_500, 6_000, 7_000)  # posts a second
RUN_S = 15.0
FURTHER_S = 0.4  # more behind at the end than after a third: a rate by .04 above what is done falls by this behind
QUERIES = {"frames": 40, "queries1000": 1_000}
FRAME_POSTS = 100


def scenario(
    at: Services, lines: Sequence[bytes], words: Sequence[str] = (), profile: object = None
) -> dict[str, float]:
    """For the bundled queries and for a thousand, µs a post at the highest rate that is kept up with, and how many
    milliseconds the last of all stages is behind there. words: one of the two."""
    found: dict[str, float] = {}
    for shape, queries in QUERIES.items():
        if words and shape not in words:
            continue
        deployment = Deployment(at, queries)
        with deployment.workers(APART) as children:
            deployment.write(lines, FRAME_POSTS)
            wait_until(
                lambda: deployment.through() >= len(lines) or any(child.ended() for child in children),  # noqa: B023
                deployment.counts,
            )
            first = len(lines)
            for rate in RATES:
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
                found |= {f"{shape}.sustained": 1e6 / rate, f"{shape}.behind_p50": 1e3 * late_s}
    return found


def behind_s(deployment: Deployment, lines: Sequence[bytes], rate: float, before: int) -> tuple[float, float]:
    """How long ago the first post was written that is not through all stages: after a third, and at the end."""
    found = []
    for part in (lines[: len(lines) // 3], lines[len(lines) // 3 :]):
        deployment.write(part, FRAME_POSTS, rate)
        before += len(part)
        found.append((before - deployment.through()) / rate)
    wait_until(lambda: deployment.through() >= before, deployment.counts)
    return found[0], found[1]
