"""`crisis status`: the sentence the page shows, for people and scripts."""

from __future__ import annotations

import asyncio
import contextlib
import sys

import click
from msgspec import structs
from redis.exceptions import RedisError

from models.errors import CrisisError
from streams.broker.lag import lag
from streams.broker.topics import inputs_of
from streams.config import Settings
from streams.outputs.printable import printable
from streams.pipeline.outcomes import put_by
from streams.view.connect import connect
from streams.view.health import Health, Known, judge
from streams.view.live import LiveView

__all__ = ["COLOURS", "ask", "status"]

ANSWER_S = 5.0
COLOURS = {"live": "green", "late": "yellow", "down": "red"}


async def ask(settings: Settings) -> Health:
    """How the whole is, as the page would say it now; for a terminal, which obeys what names of files may hold."""
    health = await _judged(settings)
    return structs.replace(health, sentence=printable(health.sentence))


async def _judged(settings: Settings) -> Health:
    agents, redis = inputs_of(settings), connect(settings.redis)
    try:
        async with asyncio.timeout(ANSWER_S):
            view = LiveView(redis, settings)
            known = Known(
                await view.now(), await view.workers(), await view.sources(), None, put_by(await view.counts())
            )
    except (RedisError, OSError):
        return judge(None, agents)
    finally:
        with contextlib.suppress(RedisError, OSError):
            await redis.aclose()
    try:
        async with asyncio.timeout(ANSWER_S):
            waiting = await lag(settings)
    except (CrisisError, OSError):
        waiting = None
    return judge(structs.replace(known, lag=waiting), agents)


@click.command()
@click.pass_obj
def status(settings: Settings) -> None:
    """Say in one sentence whether alerts come as they should: the one the page shows.

    Ends with 0 where all is live, 1 where alerts come late, 2 where nothing new can come.
    """
    health = asyncio.run(ask(settings))
    click.secho(health.sentence, fg=COLOURS[health.level])
    sys.exit(("live", "late", "down").index(health.level))
