"""The posts that `crisis query test --replay` tries a query on: of a file, or the last hours that the broker keeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from models.encoders.ready import Ready
from models.errors import Rejected
from models.pseudonyms import OFFLINE
from models.records import EmbeddedFrame, MatchedFrame, Origin
from streams.broker.reading import read_values
from streams.commands.files import look_through
from streams.config import Settings
from streams.ingest.lines import open_lines, read_frames
from streams.outputs.span import seconds
from streams.pipeline import stages
from streams.pipeline.frames import decode_frames
from streams.pipeline.memory import MemoryFolder
from streams.releases.serving import restate

__all__ = ["posts_of"]


def posts_of(settings: Settings, where: str, ready: Ready) -> Iterator[EmbeddedFrame]:
    """The posts of a file, or of the last 6h that the broker keeps, embedded by this version. Repeats are folded."""
    if Path(where).is_file():
        yield from _of_file(settings, Path(where), ready)
        return
    for value in read_values(settings, "posts.matched", seconds(where)):
        with suppress(Rejected):  # somebody else wrote to our topic
            for frame in decode_frames(value, MatchedFrame):
                if frame.posts:
                    # The last 6h are of when posts came: by what one of last year says an hour would cost nothing.
                    frame = replace(frame, posts=[replace(p, created_at=p.seen_at) for p in frame.posts])
                    own = frame.encoder_version == ready.encoder.version
                    yield frame if own else restate(frame, ready.encoder)


def _of_file(settings: Settings, path: Path, ready: Ready) -> Iterator[EmbeddedFrame]:
    folder, clock_at = MemoryFolder(), look_through(path).clock_at
    with open_lines(path, settings.ingest.writer.line_bytes) as lines:
        for number, raw in enumerate(read_frames(iter(lines))):
            parsed = stages.parse(raw, Origin(0, number), clock_at, OFFLINE)
            frame = stages.fold(parsed, folder.claim_now(parsed.claims))
            # A budget an hour is judged by when posts were written: a file is read in a moment.
            posts = [replace(p, seen_at=p.created_at) for p in frame.posts]
            if posts:
                yield stages.embed(replace(frame, posts=posts), ready.encoder)
