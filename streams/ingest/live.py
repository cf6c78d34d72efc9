"""What the live sources share: they connect again for ever, with a growing pause, and say how they fare."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

import click

from streams.broker.backoff import Good, keep_up
from streams.config import Settings
from streams.config.secrets import in_brief, redacted
from streams.ingest.cursor import Cursor
from streams.ingest.presence import present
from streams.ingest.stopping import until_stopped
from streams.ingest.writer import FrameWriter, open_writer

__all__ = ["Disconnected", "ReconnectConfig", "keep_connected", "run_live"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReconnectConfig:
    """How a live source holds its connection."""

    stall_s: float = 45.0  # nothing received for so long: the connection is dead, whatever TCP says
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0


class Disconnected(Exception):
    """The connection ended or never came about; the next attempt may do better."""


async def keep_connected(
    session: Callable[[], Awaitable[None]], config: ReconnectConfig, troubled: Callable[[str], None]
) -> None:
    """Run sessions one after another, for ever.

    A session that received something new returns when its connection ends; another raises Disconnected, which doubles
    the pause before the next (with jitter). Other exceptions end it all.
    troubled: hears in brief why there is no connection; the session tells it "" once it has one.
    """

    def tell(error: BaseException, wait_s: float) -> None:
        log.warning("%s; connecting again in %.1f s", redacted(error), wait_s)
        troubled(in_brief(error))

    async def once(good: Good) -> None:
        await session()
        good()
        raise Disconnected("connection lost")

    await keep_up(once, (Disconnected,), tell, config.first_wait_s, config.longest_wait_s)


class LiveSource(Protocol):
    """What `run_live` runs."""

    skipped: Counter[str]
    trouble: str  # why it is not connected, or nothing

    async def run(self) -> None: ...


def run_live(
    settings: Settings, name: str, cursor_path: str | None, make: Callable[[FrameWriter, Cursor], LiveSource]
) -> None:
    """Run a live source until a signal or its failure; then everything read is acknowledged and the cursor saved.

    name: what the page calls it.
    """
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    cursor = Cursor(cursor_path)

    async def main() -> None:
        source = make(writer, cursor)
        reporter = asyncio.create_task(report(writer, source.skipped))
        try:
            async with present(settings, name, lambda: source.trouble):
                await until_stopped(asyncio.create_task(source.run()))
        finally:
            reporter.cancel()

    try:
        with open_writer(settings) as writer:
            asyncio.run(main())
    finally:
        cursor.save()
    click.echo(f"{writer.counts.sent:,} posts acknowledged by the broker", err=True)


async def report(writer: FrameWriter, skipped: Counter[str], every_s: float = 30.0) -> None:
    """Print a line of counts now and then, for ever."""
    before, at = 0, time.monotonic()
    while True:
        await asyncio.sleep(every_s)
        now, read = time.monotonic(), writer.counts.read
        rate = (read - before) / (now - at)
        click.echo(
            f"{time.strftime('%H:%M:%S')}  {read:,} read ({rate:,.1f}/s), {writer.counts.sent:,} acknowledged, "
            f"{skipped.total():,} left out",
            err=True,
        )
        before, at = read, now
