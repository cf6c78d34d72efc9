"""A source says once a second that it lives: who only sees its posts cannot tell a quiet hour from a source that died.

Without Redis it goes on all the same: nothing waits for this.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator

from anyio.from_thread import start_blocking_portal
from redis.exceptions import RedisError

from models.errors import CrisisError
from streams.broker.backoff import stop_if_cancelled
from streams.config import Settings
from streams.view.connect import connect
from streams.view.live import LiveView

__all__ = ["present", "present_beside"]

log = logging.getLogger(__name__)

EVERY_S = 1.0
TOLD_S = 2.0  # how long Redis may take
AWAY = (RedisError, OSError, TimeoutError)


@contextlib.asynccontextmanager
async def present(settings: Settings, name: str, trouble: Callable[[], str] = str) -> AsyncIterator[None]:
    """While inside, this event loop says so; who leaves without an exception takes leave, and is not missed.

    name: may come from a file's, which need not be text. trouble: what the source cannot do at this moment, or nothing.
    """
    name = os.fsencode(name).decode(errors="replace")
    try:
        client = connect(settings.redis)
    except CrisisError as error:  # its password may be for others to read
        log.warning("Redis cannot be told (%s): the page cannot know of %s", error, name)
        yield
        return
    async with client as redis:
        view, heard = LiveView(redis, settings), asyncio.Event()
        speaking = asyncio.create_task(_speak(view, name, trouble, heard), name=f"presence of {name}")
        try:
            yield
        except BaseException:
            await _ended(speaking)
            raise
        await _ended(speaking)
        if heard.is_set():
            with contextlib.suppress(*AWAY):
                await asyncio.wait_for(view.drop_source(name), TOLD_S)


@contextlib.contextmanager
def present_beside(settings: Settings, name: str) -> Iterator[None]:
    """The same for a source that blocks, from a thread beside it."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(present(settings, name)):
        yield


async def _speak(view: LiveView, name: str, trouble: Callable[[], str], heard: asyncio.Event) -> None:
    while True:
        try:
            await asyncio.wait_for(view.put_source(name, trouble()), TOLD_S)
            heard.set()
        except AWAY as error:
            log.info("Redis does not answer (%s): the page cannot know of %s", error or f"{TOLD_S:g} s", name)
        except asyncio.CancelledError:
            heard.set()  # Redis may have the word all the same: a source that took leave would be missed
            raise
        stop_if_cancelled()
        await asyncio.sleep(EVERY_S)


async def _ended(task: asyncio.Task) -> None:
    """A word that could not be said ends no source: its posts are on the broker all the same."""
    task.cancel()
    (why,) = await asyncio.gather(task, return_exceptions=True)
    if not isinstance(why, asyncio.CancelledError):
        log.error("the page was not told what lives: %s ended with %r", task.get_name(), why)
