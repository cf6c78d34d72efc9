"""`crisis topics`: create what is missing on the broker."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from models.queries import load_queries
from streams.broker.queries import publish_queries, read_queries
from streams.broker.topics import kept_otherwise, make_topics, mend_topics, widen_topics
from streams.config import Settings
from streams.view.connect import connect, reaching_redis
from streams.view.live import LiveView

__all__ = ["prepare", "topics"]


def prepare(settings: Settings, packs: Path | None = None) -> tuple[list[str], int]:
    """Make missing topics and fill an empty queries topic; returns (topics made, queries loaded)."""
    made = make_topics(settings)
    if read_queries(settings):
        return made, 0
    queries = load_queries(packs)
    publish_queries(settings, {q.id: q for q in queries})
    return made, len(queries)


async def _forget(settings: Settings) -> int:
    redis = connect(settings.redis)
    try:
        with reaching_redis(settings.redis):
            return await LiveView(redis, settings).clear()
    finally:
        await redis.aclose()


@click.command()
@click.option(
    "--packs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of query packs (*.yaml) to load instead of the bundled ones.",
)
@click.option("--reset-view", is_flag=True, help="Also forget the live view in Redis (after deleting topics).")
@click.pass_obj
def topics(settings: Settings, packs: Path | None, reset_view: bool) -> None:
    """Make the Kafka topics that are missing, and load the query packs if there are no queries yet.

    Safe to run again: no topic loses a record. One that somebody else made gets the cleanup policy and the kind of
    timestamps it needs, and those between the stages as many partitions as posts.raw; other partitions stay as they are
    (`crisis doctor` tells where they are not enough), but for --reset-view: who starts over gets all. How long a topic
    that is there keeps its records stays too; where the settings say something else, that is told.
    """
    mended = mend_topics(settings)
    widened = widen_topics(settings, starting_over=reset_view)
    made, loaded = prepare(settings, packs)
    for name in widened:
        click.echo(f"gave {name} the partitions it lacked")
    for name in made:
        click.echo(f"made {name}")
    for name in mended:
        click.echo(f"mended the settings of {name}")
    click.echo(f"{len(made)} topics made, {loaded} queries loaded")
    if kept := kept_otherwise(settings):
        click.echo(kept)
    if reset_view:
        click.echo(f"{asyncio.run(_forget(settings))} keys of the live view forgotten")
