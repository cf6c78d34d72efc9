"""The scenario e2e.1: posts a second through all four agents of one worker, beside the same stages in other loops."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from tests.flow.profile import Profile
from tests.flow.scene import Deployment, Services, cost, measured

PEERS = {"bare": "confluent_kafka", "bytewax": "bytewax", "quix": "quixstreams"}  # → what must be installed


def subjects() -> list[str]:
    """The worker, and the peers that are installed."""
    return ["worker", *(name for name, module in PEERS.items() if importlib.util.find_spec(module))]


def one_run(
    at: Services,
    subject: str,
    lines: Sequence[bytes],
    warm: int,
    queries: int,
    frame_posts: int,
    profile: Path | None = None,
) -> dict[str, float]:
    """One subject over posts that wait on topics of its own; µs a post after the first `warm`."""
    deployment = Deployment(at, queries)
    deployment.write(lines, frame_posts)
    number, progress = len(lines), at.folder / f"{deployment.prefix}progress"
    progress.touch()
    args = (
        ("streams.cli", "worker") if subject == "worker" else ("tests.flow.peers", subject, str(number), str(progress))
    )
    through: Callable[[], int] = deployment.through if subject == "worker" else lambda: _last(progress)
    with deployment.running(*args) as child, Profile(profile, child, lambda: through() >= warm):
        return cost(measured(deployment, [child], through, warm, number), number - warm)


def _last(progress: Path) -> int:
    told = progress.read_text().rpartition("\n")[0].rpartition("\n")[2]
    return int(told or 0)


SHAPES = {"frames": (100, 40), "queries1000": (100, 1_000), "single": (1, 40)}  # → posts to a record, queries


def scenario(
    at: Services, lines: Sequence[bytes], words: Sequence[str] = (), profile: Path | None = None
) -> dict[str, float]:
    """Every subject over every shape of input; of the worker also the clock's time to that of each peer."""
    found: dict[str, float] = {}
    for shape, (frame_posts, queries) in SHAPES.items():
        for subject in subjects():
            if all(word in (shape, subject) for word in words):
                click.echo(f"  {shape}, {subject}", err=True, nl=False)
                spy = profile if subject == "worker" else None
                used = one_run(at, subject, lines, len(lines) // 5, queries, frame_posts, spy)
                click.echo(
                    f": {1e6 / used['wall']:,.0f} posts/s {', '.join(f'{k} {v:.0f}' for k, v in used.items())}",
                    err=True,
                )
                found |= {f"{shape}.{subject}.{name}": value for name, value in used.items()}
        for peer in PEERS:
            if {f"{shape}.worker.wall", f"{shape}.{peer}.wall"} <= found.keys():
                for name, part in (("to", "wall"), ("cpu_to", "worker")):
                    found[f"{shape}.worker.{name}_{peer}"] = (
                        found[f"{shape}.worker.{part}"] / found[f"{shape}.{peer}.{part}"]
                    )
    return found
