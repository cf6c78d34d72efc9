"""`crisis status`: the sentence the page shows, for people and scripts."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time

import click
from redis.exceptions import RedisError

from models.errors import CrisisError
from streams.broker.lag import lag
from streams.broker.topics import AGENTS
from streams.config import Settings
from streams.pipeline.outcomes import put_by
from streams.view.connect import connect
from streams.view.health import Health, judge
from streams.view.live import LiveView

__all__ = ["COLOURS", "ask", "status"]

ANSWER_S = 5.0
COLOURS = {"live": "green", "late": "yellow", "down": "red"}


async def ask(settings: Settings) -> Health:
    """How the whole is, as the page would say it now."""
    redis = connect(settings.redis)
    try:
        async with asyncio.timeout(ANSWER_S):
            view = LiveView(redis, settings)
            workers, counts = await view.workers(), await view.counts()
    except (RedisError, OSError):
        return judge(ANSWER_S, {}, None, AGENTS, time.time())
    finally:
        with contextlib.suppress(RedisError, OSError):
            await redis.aclose()
    try:
        async with asyncio.timeout(ANSWER_S):
            waiting = await lag(settings)
    except (CrisisError, OSError):
        waiting = None
    return judge(0.0, workers, waiting, AGENTS, time.time(), put_by(counts))


@click.command()
@click.pass_obj
def status(settings: Settings) -> None:
    """Say in one sentence whether alerts come as they should: the one the page shows.

    Ends with 0 where all is live, 1 where alerts come late, 2 where nothing new can come.
    """
    health = asyncio.run(ask(settings))
    click.secho(health.sentence, fg=COLOURS[health.level])
    sys.exit(("live", "late", "down").index(health.level))
