"""The posts that `crisis query test --replay` tries a query on: of a file, or the last hours that the broker keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np

from models.encoders.ready import Ready
from models.errors import Rejected
from models.pseudonyms import OFFLINE
from models.records import EmbeddedFrame, MatchedFrame, Origin
from streams.broker.reading import read_values
from streams.config import Settings
from streams.ingest.lines import open_lines, read_frames
from streams.outputs.span import seconds
from streams.pipeline import stages
from streams.pipeline.frames import decode_frames
from streams.pipeline.memory import MemoryFolder
from streams.releases.serving import restate

__all__ = ["Arrivals", "posts_of"]

HOUR_S = 3600.0


class Arrivals:
    """When the posts of frames came, noted as they pass: how long they span.

    created_at says it badly: of the broker's last 6h one post of last year would make an hour cost nothing. Where a
    file has nothing but created_at, what lies far from the middle half of its posts (Tukey 1977: three times its width
    beyond it; at least three hours) does not count.
    """

    def __init__(self, from_file: bool) -> None:
        self.from_file, self.moments = from_file, list[float]()

    def noting(self, frames: Iterable[EmbeddedFrame]) -> Iterator[EmbeddedFrame]:
        for frame in frames:
            self.moments += [post.seen_at for post in frame.posts]
            yield frame

    @property
    def hours(self) -> float:
        """At least one."""
        if not self.moments:
            return 1.0
        at = np.array(self.moments)
        if self.from_file:
            low, high = np.quantile(at, (0.25, 0.75))
            reach = 3 * max(high - low, HOUR_S)
            at = at[(at >= low - reach) & (at <= high + reach)]
        return max(float(np.ptp(at)), HOUR_S) / HOUR_S


def posts_of(settings: Settings, where: str, ready: Ready) -> Iterator[EmbeddedFrame]:
    """The posts of a file, or of the last 6h that the broker keeps, embedded by this version. Repeats are folded."""
    if Path(where).is_file():
        yield from _of_file(settings, Path(where), ready)
        return
    for value in read_values(settings, "posts.matched", seconds(where)):
        with suppress(Rejected):  # somebody else wrote to our topic
            for frame in decode_frames(value, MatchedFrame):
                if frame.posts:
                    own = frame.encoder_version == ready.encoder.version
                    yield frame if own else restate(frame, ready.encoder)


def _of_file(settings: Settings, path: Path, ready: Ready) -> Iterator[EmbeddedFrame]:
    folder = MemoryFolder()
    with open_lines(path, settings.ingest.writer.line_bytes) as lines:
        for number, raw in enumerate(read_frames(iter(lines))):
            parsed = stages.parse(raw, Origin(0, number), path.stat().st_mtime, OFFLINE)
            frame = stages.fold(parsed, folder.claim_now(parsed.claims))
            # A budget an hour is judged by when posts were written: a file is read in a moment.
            posts = [msgspec.structs.replace(p, seen_at=p.created_at) for p in frame.posts]
            if posts:
                yield stages.embed(msgspec.structs.replace(frame, posts=posts), ready.encoder)
