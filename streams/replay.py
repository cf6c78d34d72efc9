"""The whole pipeline over a file, without a broker: the same stages, so the same results as the live path."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import msgspec

from models.alerts import make_alerts
from models.encoder import Encoder, load_encoder
from models.errors import ServiceError
from models.matching import Matcher
from models.queries import load_queries
from models.records import Alert, ClusterEvent, MatchedFrame, Origin, Reject
from streams import stages
from streams.clusterer import ClusterStage, place_alerts
from streams.config import Settings
from streams.folding import MemoryFolder
from streams.frames import decode_frame, encode_frame, split_frame
from streams.ingest.lines import is_table, read_table
from streams.runtime import build_matcher
from streams.state import MemoryAlerts

FRAME_LINES = 100
_json = msgspec.json.Encoder().encode


@contextlib.contextmanager
def open_lines(path: Path) -> Iterator[Iterable[bytes]]:
    """The lines of a JSONL file, or the rows of a CSV or TSV as `crisis ingest file` reads them; gzip by the suffix.

    Raises, when it is read, ServiceError for a .gz that is none or is cut off, ConfigError for a table without a text.
    """
    with contextlib.ExitStack() as stack:
        lines = stack.enter_context(gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb"))
        if is_table(path):
            lines = stack.enter_context(contextlib.closing(read_table(lines, path.name)))
        try:
            yield lines
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ServiceError(f"{path} is not a whole gzip file ({error}): copy or compress it again") from error


def read_frames(lines: Iterator[bytes], size: int = FRAME_LINES) -> Iterator[bytes]:
    """Raw records of `size` lines, as `crisis ingest file` would write them."""
    batch: list[bytes] = []
    for line in lines:
        if line.strip():
            batch.append(line.rstrip(b"\r\n"))
        if len(batch) == size:
            yield b"\n".join(batch)
            batch = []
    if batch:
        yield b"\n".join(batch)


@dataclass
class Totals:
    """read = folded + rejected + deleted + alert + suggestion + no_match, by post."""

    counts: Counter = field(default_factory=Counter)

    def check(self) -> bool:
        """Every post accounted for."""
        c = self.counts
        return c["read"] == sum(c[k] for k in ("folded", "rejected", "deleted", "alert", "suggestion", "no_match"))


class Replay:
    """One pass over a file. start_at: epoch seconds that stand for the broker's clock, so that a replay can be repeated.

    packs: folder of query packs instead of the bundled ones, where no matcher is given.
    """

    def __init__(self, settings: Settings, start_at: float, encoder: Encoder | None = None,
                 matcher: Matcher | None = None, packs: Path | None = None) -> None:  # fmt: skip
        self.settings, self.start_at = settings, start_at
        self.encoder = encoder or load_encoder(settings.encoder.ref)
        self.matcher = matcher or build_matcher(settings, load_queries(packs), self.encoder)
        self.queries = {q.id: q for q in self.matcher.queries}
        self.folder, self.alerts, self.totals = MemoryFolder(), MemoryAlerts(), Totals()
        self.clusters = ClusterStage.new(settings.cluster, self.encoder.dim, self.encoder.version)
        self.rejects: list[Reject] = []

    async def feed(self, raw: bytes, number: int) -> tuple[list[Alert], list[ClusterEvent]]:
        """One raw record through every stage."""
        # A millisecond a frame: a later frame's alerts are newer, as they are on the broker.
        parsed = stages.parse(raw, Origin(0, number), self.start_at + number / 1000, b"replay")
        self.rejects += parsed.rejects
        frame = stages.fold(parsed, await self.folder.claim(parsed.claims))
        worker = self.settings.worker
        self.totals.counts.update(
            read=parsed.read, rejected=len(parsed.rejects), folded=len(frame.repeats), deleted=len(frame.deletions)
        )
        alerts, events = [], []
        for piece in split_frame(frame, worker.frame_bytes, worker.frame_posts, 2 * self.encoder.dim):
            # Through the wire format: float16 vectors, as the live match and cluster stages see them.
            embedded = stages.embed(piece, self.encoder)
            matched = decode_frame(encode_frame(stages.match(embedded, self.matcher)), MatchedFrame)
            made = make_alerts(matched.posts, matched.matches, self.queries, matched.encoder_version)
            alerts += await self.alerts.put_alerts(await stages.settle_alerts(matched, made, self.alerts))
            self.totals.counts.update(stages.tally(matched))
            changes, placed = self.clusters.add_all([matched])
            events += changes
            alerts += await self.alerts.put_alerts(await place_alerts(placed, self.alerts))
        return alerts, events


def replay_file(
    settings: Settings, path: Path, start_at: float, on_frame: Callable[[int], None] = lambda n: None,
    alerts_out: BinaryIO | None = None, clusters_out: BinaryIO | None = None, packs: Path | None = None,
) -> Replay:  # fmt: skip
    """Replay a file of posts; alerts and cluster events are written as JSON lines as they are made."""
    replay = Replay(settings, start_at, packs=packs)

    async def run() -> None:
        with open_lines(path) as lines:
            for number, raw in enumerate(read_frames(iter(lines))):
                alerts, events = await replay.feed(raw, number)
                _write(alerts_out, alerts)
                _write(clusters_out, events)
                on_frame(raw.count(b"\n") + 1)
        events, placed = replay.clusters.finish()
        _write(alerts_out, await replay.alerts.put_alerts(await place_alerts(placed, replay.alerts)))
        _write(clusters_out, events)

    asyncio.run(run())
    return replay


def _write(out: BinaryIO | None, records: list) -> None:
    if out is not None:
        out.writelines(_json(r) + b"\n" for r in records)
