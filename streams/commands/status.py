"""`crisis status`: the sentence the page shows, for people and scripts."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time

import click
import msgspec
from msgspec import structs
from redis.exceptions import RedisError

from models.errors import CrisisError
from models.records import Alert
from streams.broker.lag import lag
from streams.broker.states import oldest_states
from streams.broker.topics import inputs_of
from streams.config import Settings
from streams.outputs.printable import printable
from streams.pipeline.outcomes import put_by
from streams.view.connect import connect
from streams.view.health import Health, Known, judge
from streams.view.live import LiveView
from streams.view.restoring import lacks

__all__ = ["COLOURS", "ask", "status"]

ANSWER_S = 5.0
COLOURS = {"live": "green", "late": "yellow", "down": "red"}
SENT_S = 60.0  # an alert is in the view a moment after it is on the broker
SURELY_KEPT = 0.95  # of the time that alerts are kept: who changes one within the minute prolongs nothing
LACKS = "the live view lacks alerts that Kafka holds, as if Redis had been emptied: `crisis restore` puts them back"

_alert = msgspec.json.Decoder(Alert).decode


async def ask(settings: Settings) -> Health:
    """How the whole is, as the page would say it now; for a terminal, which obeys what names of files may hold.

    Beyond what the page knows: does the view still hold what it should?
    """
    health = await _judged(settings)
    if health.level != "down" and await _was_emptied(settings):
        before = "" if health.level == "live" else f"{health.sentence}; "
        health = Health("late", before + LACKS)
    return structs.replace(health, sentence=printable(health.sentence))


async def _was_emptied(settings: Settings) -> bool:
    """By the oldest alerts that the broker holds: the view keeps those as long. False where it cannot be told."""
    now, kept_s = time.time(), settings.topics.retention_h * 3600
    span = now - SURELY_KEPT * kept_s, now - SENT_S
    with contextlib.suppress(CrisisError, RedisError, OSError, TimeoutError):
        oldest = await asyncio.to_thread(oldest_states, settings, "alerts", _alert, *span)
        async with asyncio.timeout(ANSWER_S), connect(settings.redis) as redis:
            return await lacks(LiveView(redis, settings), [alert.alert_id for alert in oldest])
    return False


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
    """Say in one sentence whether alerts come as they should: the one the page shows. Says too if Redis has lost
    alerts that Kafka still holds, which the page does not know.

    Ends with 0 where all is live, 1 where alerts come late, 2 where nothing new can come.
    """
    health = asyncio.run(ask(settings))
    click.secho(health.sentence, fg=COLOURS[health.level])
    sys.exit(("live", "late", "down").index(health.level))
