"""`crisis worker`: one Faust worker process. Scale by starting more."""

from __future__ import annotations

import click

from streams.broker.topics import AGENTS
from streams.config import Settings

__all__ = ["worker"]


def agent_names(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    """`a,b` → ("a", "b"), refusing what is no agent."""
    names = tuple(dict.fromkeys(n.strip() for n in value.split(",") if n.strip()))
    if unknown := [n for n in names if n not in AGENTS] or not names:
        raise click.BadParameter(f"{unknown or 'nothing'}: choose from {', '.join(AGENTS)}")
    return names


@click.command()
@click.option(
    "--agents", callback=agent_names, default=",".join(AGENTS), show_default=True, help="Which agents to run here."
)
@click.option("--web-port", type=int, help="Port of /metrics, /healthz and /readyz (0 = any free one).")
@click.pass_obj
def worker(settings: Settings, agents: tuple[str, ...], web_port: int | None) -> None:
    """Run Faust agents until stopped.

    All workers with the same topic prefix share the work: start as many as posts.* has partitions. One of them owns
    the clusters; if it dies another takes over from its last snapshot. SIGTERM or Ctrl-C stops cleanly; a worker that
    is killed loses nothing, its frames are read again.
    """
    if web_port is not None:
        settings = settings.model_copy(update={"worker": settings.worker.model_copy(update={"web_port": web_port})})
    from streams.worker.app import run_worker

    run_worker(settings, agents)
