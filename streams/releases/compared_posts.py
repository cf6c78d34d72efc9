"""The posts that two encoder versions are compared on: of a file, or of the stream."""

from __future__ import annotations

from pathlib import Path

from models.errors import Rejected
from models.pseudonyms import OFFLINE
from models.records import Frame, Origin, Post
from streams.broker.reading import read_records
from streams.config import Settings
from streams.ingest.lines import open_lines, read_frames
from streams.pipeline import stages
from streams.pipeline.frames import decode_frames
from streams.pipeline.memory import MemoryFolder
from streams.releases.diff import at_the_end

__all__ = ["posts_of_file", "posts_of_stream"]


async def posts_of_file(path: Path) -> list[Post]:
    """The posts of a JSONL file as they stand at its end: repeats folded, edits applied, deletions gone."""
    folder, frames = MemoryFolder(), []
    with open_lines(path) as lines:
        for number, raw in enumerate(read_frames(iter(lines))):
            parsed = stages.parse(raw, Origin(0, number), path.stat().st_mtime, OFFLINE)
            frames.append(stages.fold(parsed, await folder.claim(parsed.claims)))
    return at_the_end(frames)


def posts_of_stream(settings: Settings, since_at: float) -> list[Post]:
    """The posts of posts.clean that were written since this time (epoch seconds), as they stand now."""
    found: list[tuple[float, Frame]] = []
    for record in read_records(settings, "posts.clean", since_at):
        written_at = record.timestamp / 1000
        if written_at < since_at:  # brokers find a batch, not a record
            continue
        try:
            found += [(written_at, f) for f in decode_frames(record.value or b"", Frame)]
        except Rejected:  # the workers refuse and count it; nothing to compare here
            continue
    return at_the_end([frame for _, frame in sorted(found, key=lambda f: (f[0], f[1].origin))])
