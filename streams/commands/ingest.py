"""`crisis ingest SOURCE`."""

from __future__ import annotations

import click

from streams.commands import LazyGroup
from streams.ingest import SOURCES

__all__ = ["ingest"]


@click.command(cls=LazyGroup, table=SOURCES, title="Sources")
def ingest() -> None:
    """Read posts from a source into posts.raw.

    Every source keeps what it has not yet seen acknowledged: stopped and started again it goes on where the broker's
    last answer was (`--cursor`), so nothing is lost and at the most the last moments are sent twice.
    """
