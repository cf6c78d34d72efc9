"""`crisis ingest stdin`: one JSON post per line, until the input ends."""

from __future__ import annotations

import sys
from typing import BinaryIO

import click

from streams.config import Settings
from streams.ingest.lines import SEE_REJECTED, head_of, key_of, read_lines
from streams.ingest.presence import present_beside
from streams.ingest.stopping import Stop
from streams.ingest.writer import FrameWriter, open_writer

__all__ = ["stdin"]


def ingest_stream(stream: BinaryIO, writer: FrameWriter, stop: Stop) -> int:
    """Send every line of `stream`; returns how many the broker acknowledged. Ends at its end or at a signal."""
    lines = read_lines(stream, writer.config.line_bytes)
    while not stop.asked.is_set():
        try:
            with stop.waiting_for_input():
                line = next(lines, None)
        except KeyboardInterrupt:
            break
        if line is None:
            break
        writer.write(line, key=key_of(head_of(line)))
    writer.flush()
    return writer.counts.sent


@click.command()
@click.pass_obj
def stdin(settings: Settings) -> None:
    """Posts from standard input, one JSON object per line."""
    stop = Stop()
    with stop.on_signals(), open_writer(settings) as writer, present_beside(settings, "stdin"):
        sent = ingest_stream(sys.stdin.buffer, writer, stop)
    click.echo(f"{sent:,} posts acknowledged by the broker; {SEE_REJECTED}", err=True)
