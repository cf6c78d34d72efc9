"""The scenario scale.2: the CPU that a post costs with one, two and four workers on eight partitions.

Where more workers cost no more a post, cores that are added are posts that are added; the one clusterer aside, which
reads one partition, whoever has it.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from tests.flow.scene import ALL, Deployment, Services, cost, measured

WORKERS = (1, 2, 4)
PARTITIONS = 8
FRAME_POSTS = 100


def scenario(
    at: Services, lines: Sequence[bytes], words: Sequence[str] = (), profile: object = None
) -> dict[str, float]:
    """For each number of workers; words: the numbers wanted. The first fifth of the posts warms up."""
    found: dict[str, float] = {}
    for workers in WORKERS:
        if words and str(workers) not in words:
            continue
        deployment = Deployment(at, partitions=PARTITIONS)
        with deployment.workers(workers * [ALL]) as children:
            deployment.write(lines, FRAME_POSTS)
            warm = len(lines) // 5
            marks = measured(deployment, children, deployment.through, warm, len(lines), deployment.begun)
            used = cost(marks, len(lines) - warm)
        click.echo(
            f"  {workers} workers: {1e6 / used['wall']:,.0f} posts/s "
            + ", ".join(f"{k} {v:.0f}" for k, v in used.items()),
            err=True,
        )
        found |= {f"workers{workers}.{name}": value for name, value in used.items()}
        if "workers1.worker" in found:
            found[f"workers{workers}.to_one"] = used["worker"] / found["workers1.worker"]
    return found
