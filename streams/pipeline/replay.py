"""The whole pipeline over the raw records of a file, without a broker: the same stages, so the same results as live."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from models.bars import Bars
from models.clusters.vectors import widened
from models.encoders.ready import Ready
from models.pseudonyms import OFFLINE, Pseudonyms
from models.records import Alert, ClusterEvent, MatchedFrame, Origin, Post, Reject
from streams.pipeline import stages
from streams.pipeline.clusters import ClusterStage, place_alerts
from streams.pipeline.frames import decode_frame, encode_frame, split_frame
from streams.pipeline.memory import MemoryAlerts, MemoryFolder
from streams.pipeline.outcomes import Totals

if TYPE_CHECKING:
    from streams.config import Settings

__all__ = ["Replay", "replay_records"]

_json = msgspec.json.Encoder().encode


class Replay:
    """One pass over a file. start_at: epoch seconds that stand for the broker's clock, so that a replay can be
    repeated. ready: the encoder version, with its queries. pseudonyms: of the deployment, for the very same records;
    by default ids stay as the file has them.
    """

    def __init__(
        self,
        settings: Settings,
        start_at: float,
        ready: Ready,
        pseudonyms: Pseudonyms = OFFLINE,
    ) -> None:
        self.settings, self.start_at, self.ready = settings, start_at, ready
        self.pseudonyms = pseudonyms
        self.encoder, self.matcher = ready.encoder, ready.matcher
        self.bars = Bars(settings.match)
        self.folder, self.alerts, self.totals = MemoryFolder(), MemoryAlerts(), Totals()
        read_by = ready.clustered_by
        self.clusters = ClusterStage.new(settings.clusters_under(ready.clusters), read_by.dim, read_by.version)
        self.rejects: list[Reject] = []  # of the last record
        self.refused: Counter[str] = Counter()  # all of them, by reason
        self.first_refused: Reject | None = None
        self.edits = 0  # posts that came under the id of an earlier one with another text, without saying so

    async def feed(self, raw: bytes, number: int) -> tuple[list[Alert], list[ClusterEvent]]:
        """One raw record through every stage."""
        # A millisecond a frame: a later frame's alerts are newer, as they are on the broker.
        parsed = stages.parse(raw, Origin(0, number), self.start_at + number / 1000, self.pseudonyms)
        self.rejects = parsed.rejects
        self.refused.update(reject.reason for reject in parsed.rejects)
        self.first_refused = self.first_refused or next(iter(parsed.rejects), None)
        verdicts = await self.folder.claim(parsed.claims)
        frame, worker = stages.fold(parsed, verdicts), self.settings.worker
        self.totals.counts.update(stages.tally_unmatched(parsed, frame, verdicts))
        self.edits += _updates(frame.posts) - _updates(parsed.posts)
        alerts, events = [], []
        for piece in split_frame(frame, worker.frame_bytes, worker.frame_posts, 2 * self.encoder.dim):
            # Through the wire format: float16 vectors, as the live match and cluster stages see them.
            embedded = stages.embed(piece, self.encoder)
            matched = decode_frame(encode_frame(stages.match(embedded, self.matcher, self.bars)), MatchedFrame)
            made = stages.alerts(matched, self.ready)
            alerts += await self.alerts.put_alerts(await stages.with_withdrawals(matched, made, self.alerts))
            self.totals.counts.update(stages.tally(matched))
            changes, placed = self.clusters.add_all(widened([matched], self.ready.clustered_by))
            events += changes
            alerts += await self.alerts.put_alerts(await place_alerts(placed, self.alerts))
        return alerts, events


def replay_records(
    settings: Settings,
    records: Iterable[bytes],
    start_at: float,
    ready: Ready,
    on_frame: Callable[[int], None] = lambda n: None,
    alerts_out: BinaryIO | None = None,
    clusters_out: BinaryIO | None = None,
    rejects_out: BinaryIO | None = None,
    pseudonyms: Pseudonyms = OFFLINE,
) -> Replay:
    """Replay raw records; alerts, cluster events and rejects are written as JSON lines as they are made."""
    replay = Replay(settings, start_at, ready, pseudonyms)

    async def run() -> None:
        for number, raw in enumerate(records):
            alerts, events = await replay.feed(raw, number)
            _write(alerts_out, alerts)
            _write(clusters_out, events)
            _write(rejects_out, replay.rejects)
            on_frame(raw.count(b"\n") + 1)
            await asyncio.sleep(0)  # nothing else here waits, and Ctrl-C comes in where something does
        events, placed = replay.clusters.finish()
        _write(alerts_out, await replay.alerts.put_alerts(await place_alerts(placed, replay.alerts)))
        _write(clusters_out, events)

    asyncio.run(run())
    return replay


def _updates(posts: Sequence[Post]) -> int:
    return sum(post.kind == "update" for post in posts)


def _write(out: BinaryIO | None, records: Sequence[Alert | ClusterEvent | Reject]) -> None:
    if out is not None:
        out.writelines(_json(r) + b"\n" for r in records)
