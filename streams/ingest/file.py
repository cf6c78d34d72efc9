"""`crisis ingest file`: JSONL, NDJSON, CSV or TSV, as fast as the broker takes it, at a rate, or as it happened."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from models.errors import ConfigError, Rejected
from models.moments import epoch_s
from streams.config import Settings
from streams.ingest.cursor import Cursor
from streams.ingest.lines import SEE_REJECTED, Head, head_of, key_of, open_lines
from streams.ingest.presence import present_beside
from streams.ingest.stopping import Stop
from streams.ingest.writer import open_writer

__all__ = ["ReplayConfig", "file", "ingest_file"]

Progress = Callable[[int, float], None]  # (posts read, share of the file read)
CURSOR_EVERY = 100  # lines between two cursor positions


@dataclass(frozen=True)
class ReplayConfig:
    """How a file is played. Without rate and speed: as fast as the broker takes it."""

    rate: float | None = None  # posts per second
    speed: float | None = None  # 1 = as it happened by created_at, 60 = an hour in a minute
    loop: bool = False  # start again at the end, for ever; the pipeline folds the repeats
    cursor: str | None = None  # file that keeps the position, so that a second run goes on there


class Pace:
    """Says how long to wait before the next post. Pure: time is an argument."""

    def __init__(self, config: ReplayConfig) -> None:
        self._config = config
        self._start: float | None = None
        self._posts = 0
        self.begin_round()

    def begin_round(self) -> None:
        """The times of the file begin again; the rate goes on."""
        self._round: tuple[float, float] | None = None  # when its first post with a time came, and that time

    def wait_s(self, head: Head, now: float) -> float:
        """Seconds to wait (≤ 0: none). now: monotonic seconds. A post without a readable time goes at once."""
        if self._start is None:
            self._start = now
        due = self._start
        if self._config.rate:
            due += self._posts / self._config.rate
        if self._config.speed and (at := _moment(head.created_at)) is not None:
            if self._round is None:
                self._round = now, at
            start, first_at = self._round
            due = max(due, start + (at - first_at) / self._config.speed)
        self._posts += 1
        return due - now


def _moment(created_at: str | int | float | None) -> float | None:
    """Epoch seconds, read as the pipeline will read them; None where it could not."""
    try:
        at = math.nan if created_at is None else epoch_s(created_at)
    except Rejected:
        return None
    return at if math.isfinite(at) else None


def ingest_file(
    settings: Settings,
    path: Path,
    config: ReplayConfig = ReplayConfig(),
    *,
    on_progress: Progress | None = None,
    on_note: Callable[[str], None] = lambda told: None,
    stop: threading.Event | None = None,
) -> int:
    """Send a file's posts; returns how many lines the broker acknowledged. Blocking.

    on_note: is told how a table is read. Set `stop` to end it between two posts. Raises ConfigError if the file cannot
    be read, ServiceError if the broker does not take it; the cursor then stands at what it took.
    """
    path, stop, pace = Path(path), stop or threading.Event(), Pace(config)
    cursor = Cursor(config.cursor)
    skip = _skip(cursor)
    with open_writer(settings) as writer, present_beside(settings, f"file {path.name}"):
        try:
            for number, first, line, share in _numbered(path, config.loop, writer.config.line_bytes, on_note):
                if number <= skip:
                    continue
                if first:
                    pace.begin_round()
                head = head_of(line)
                if (wait_s := pace.wait_s(head, time.monotonic())) > 0.001:
                    stop.wait(wait_s)
                if stop.is_set():
                    break
                then = cursor.advance(str(number)) if number % CURSOR_EVERY == 0 else None
                writer.write(line, key=key_of(head), then=then)
                if on_progress is not None:
                    on_progress(writer.counts.read, share)
                skip = number
            writer.write(b"", then=cursor.advance(str(skip)))
            writer.flush()
        finally:
            cursor.save()
        return writer.counts.sent


def _skip(cursor: Cursor) -> int:
    try:
        return int(cursor.value or 0)
    except ValueError:
        raise ConfigError(f"the cursor {cursor.value!r} is not a line number: delete its file to start anew") from None


def _numbered(
    path: Path, loop: bool, longest: int, on_note: Callable[[str], None]
) -> Iterator[tuple[int, bool, bytes, float]]:
    """(line number from 1 on, whether a round begins with it, line, share of the file read so far)."""
    number = 0
    for _ in itertools.count() if loop else range(1):
        before = number
        with open_lines(path, longest, on_note if not number else lambda told: None) as lines:
            for line in lines:
                if line.strip():
                    number += 1
                    yield number, number == before + 1, line, lines.share
        if number == before:  # an empty file would loop without end
            return


@click.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="Posts per second at the most.")
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    help="Replay by created_at: 1 as it happened, 60 an hour in a minute.",
)
@click.option("--loop", is_flag=True, help="Start again at the end, for ever.")
@click.option("--cursor", type=click.Path(dir_okay=False), help="Keep the position in this file and go on from it.")
@click.pass_obj
def file(
    settings: Settings, path: Path, rate: float | None, speed: float | None, loop: bool, cursor: str | None
) -> None:
    """Posts of PATH: JSONL or NDJSON (one JSON post per line), CSV or TSV with a header; .gz too."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    stop = Stop()
    posts = TextColumn("{task.fields[posts]:,} posts")
    columns = (TextColumn("{task.description}"), BarColumn(), posts, TimeElapsedColumn())
    with stop.on_signals(), Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(path.name, total=1.0, posts=0)
        shown_at = 0.0

        def show(posts: int, share: float) -> None:
            nonlocal shown_at
            if (now := time.monotonic()) - shown_at > 0.1:
                shown_at = now
                bar.update(task, completed=share, posts=posts)

        def note(told: str) -> None:
            bar.console.print(told, highlight=False, markup=False, soft_wrap=True)

        config = ReplayConfig(rate, speed, loop, cursor)
        sent = ingest_file(settings, path, config, on_progress=show, on_note=note, stop=stop.asked)
        bar.update(task, completed=1.0 if not stop.asked.is_set() else None, posts=sent)
    told = " (stopped)" if stop.asked.is_set() else ""
    click.echo(f"{sent:,} posts acknowledged by the broker{told}; {SEE_REJECTED}", err=True)
