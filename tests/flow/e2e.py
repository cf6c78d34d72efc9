"""The scenario e2e.2: posts a second through all four agents of one worker, two, or two or three that share the agents,
beside the same stages in other loops."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
from collections.abc import Sequence
from pathlib import Path

import click

from tests.flow.profile import Profile
from tests.flow.scene import ALL, PAIR, TRIO, Deployment, Services, cost, measured
from tests.flow.warm import keep_clusters

WORKERS = {"worker": [ALL], "workers2": [ALL, ALL], "pair": PAIR, "trio": TRIO}  # → the agents of each process
PEERS = {"bare": "confluent_kafka", "bytewax": "bytewax", "quix": "quixstreams"}  # → what must be installed


def subjects() -> list[str]:
    """The workers, and the peers that are installed."""
    return [*WORKERS, *(name for name, module in PEERS.items() if importlib.util.find_spec(module))]


def one_run(
    at: Services,
    subject: str,
    lines: Sequence[bytes],
    warm: int,
    queries: int,
    frame_posts: int,
    clusters: int = 0,
    profile: Path | None = None,
) -> dict[str, float]:
    """One subject over posts that wait on topics of its own; µs a post after the first `warm`. clusters: so many live
    before it begins.

    told: of the clock until all had their outcome; wall: until they were in clusters too, as peers are at once.
    """
    deployment = Deployment(at, queries)
    number, progress = len(lines), at.folder / f"{deployment.prefix}progress"
    progress.touch()
    if clusters:
        keep_clusters(deployment.settings, clusters)
    deployment.write(lines, frame_posts)  # before: records of one post cost who writes them a core
    with contextlib.ExitStack() as stack:
        if subject in WORKERS:
            begun, told, through = deployment.begun, deployment.told, deployment.through
            children = stack.enter_context(deployment.workers(WORKERS[subject]))
        else:
            begun = told = through = lambda: _last(progress)
            peer = deployment.running("tests.flow.peers", subject, str(number), str(progress))
            children = [stack.enter_context(peer)]
        stack.enter_context(Profile(profile, children[0], lambda: through() >= warm))
        first, then = measured(deployment, children, told, warm, number, begun)
        _, last = measured(deployment, children, through, number, number)
        return cost((first, last), number - warm) | {"told": (then.at - first.at) / (number - warm) * 1e6}


def _last(progress: Path) -> int:
    told = progress.read_text().rpartition("\n")[0].rpartition("\n")[2]
    return int(told or 0)


SHAPES = {  # → posts to a record, queries, clusters that live before
    "frames": (100, 40, 0),
    "queries1000": (100, 1_000, 0),
    "single": (1, 40, 0),
    "clusters5000": (100, 40, 5_000),
}


def scenario(
    at: Services, lines: Sequence[bytes], words: Sequence[str] = (), profile: Path | None = None
) -> dict[str, float]:
    """Every subject over every shape of input, or those that `words` name; nothing where one of them names neither.

    Of workers also the clock's time, and the CPU, to that of each peer.
    """
    found: dict[str, float] = {}
    if not set(words) <= {*SHAPES, *subjects()}:
        return found
    chosen = [subject for subject in subjects() if subject in words] or subjects()
    for shape, (frame_posts, queries, clusters) in SHAPES.items():
        for subject in chosen:
            if shape in words or not SHAPES.keys() & set(words):
                click.echo(f"  {shape}, {subject}", err=True, nl=False)
                spy = profile if subject in WORKERS else None
                used = one_run(at, subject, lines, len(lines) // 5, queries, frame_posts, clusters, spy)
                click.echo(
                    f": {1e6 / used['told']:,.0f} posts/s told, {1e6 / used['wall']:,.0f} in clusters, "
                    + ", ".join(f"{k} {v:.0f}" for k, v in used.items()),
                    err=True,
                )
                found |= {f"{shape}.{subject}.{name}": value for name, value in used.items()}
        for ours, peer in itertools.product(WORKERS, PEERS):
            if {f"{shape}.{ours}.wall", f"{shape}.{peer}.wall"} <= found.keys():
                for name, part in (("to", "wall"), ("cpu_to", "worker")):
                    found[f"{shape}.{ours}.{name}_{peer}"] = (
                        found[f"{shape}.{ours}.{part}"] / found[f"{shape}.{peer}.{part}"]
                    )
    return found
