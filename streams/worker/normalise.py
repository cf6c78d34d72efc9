"""The normalise agent: raw records in, clean frames and rejects out."""

from __future__ import annotations

import logging
from collections import Counter
from itertools import islice

import faust

from models.records import Frame
from streams import metrics
from streams.pipeline import stages
from streams.pipeline.frames import split_frame
from streams.worker.stage import Events, Handler, origin_of

log = logging.getLogger(__name__)


class Normalise(Handler):
    """posts.raw → posts.clean: read, reject, fold."""

    name = "normalise"

    async def __call__(self, events: Events) -> Events:
        pseudonyms = self.runtime.pseudonyms
        raw = [(event.value or b"", origin_of(event), event.message.timestamp) for event in events]
        parsed = await self.runtime.compute("encode", lambda: [stages.parse(*one, pseudonyms) for one in raw])
        await self._keep_links(parsed)
        claims = [claim for one in parsed for claim in one.claims]
        verdicts = iter(await self.runtime.folder.claim(claims))
        counted = []
        for one in parsed:
            mine = list(islice(verdicts, len(one.claims)))
            counted.append((one, stages.fold(one, mine), sum(len(verdict.raised) for verdict in mine)))
        worker, vector_bytes = self.runtime.settings.worker, 2 * self.runtime.serving.dim
        for one, frame, _ in counted:
            for piece in split_frame(frame, worker.frame_bytes, worker.frame_posts, vector_bytes):
                await self.outbox.send_frame(piece)
            await self.outbox.send_rejects(stages.sum_up(one.rejects))
        await self.outbox.delivered()
        await self._count(counted)
        return events

    async def give_up(self, event: faust.Event, detail: str) -> None:
        """Refuse a record as it came, counted by its lines: once, whatever a worker that was taken for dead does later.

        Counted is what was sent on before. Workers that are killed from outside die on records that they were done with
        too: refused, those posts would be told twice, as a match and as a reject.
        """
        origin, value = origin_of(event), event.value or b""
        if await self.view.was_counted(self.name, origin):
            log.warning(
                "posts.raw, partition %d, offset %d: done before its worker died", origin.partition, origin.offset
            )
            return
        await self._refuse(origin, "worker_died", detail, value, 0)
        await self.outbox.delivered()
        lines = value.count(b"\n") + 1
        told = {"counts": {"read": lines, "rejected": lines}, "reasons": {"worker_died": lines}}
        await self.view.count(self.name, origin, told)

    async def _keep_links(self, parsed: list[stages.Parsed]) -> None:
        """Before the posts go on: an alert can be opened from its first moment."""
        if (vault := self.runtime.vault) is not None:
            for one in parsed:
                await vault.keep(one.links)
                await vault.drop([deletion.id for deletion in one.deletions])

    async def _count(self, made: list[tuple[stages.Parsed, Frame, int]]) -> None:
        told = [(parsed.origin, counts_of(parsed, frame, raised)) for parsed, frame, raised in made]
        new = await self.view.count_all("normalise", told)
        if repeats := [r for (_, frame, _), first in zip(made, new, strict=True) if first for r in frame.repeats]:
            await self.view.repeat(repeats)
        for parsed, frame, _ in made:
            counts = {
                "accepted": len(frame.posts),
                "folded": len(frame.repeats),
                "deleted": len(frame.deletions),
                "rejected": len(parsed.rejects),
            }
            for outcome, n in counts.items():
                if n:
                    metrics.posts.labels("normalise", outcome).inc(n)
            for reject in parsed.rejects:
                metrics.rejects.labels(reject.reason).inc()


def counts_of(parsed: stages.Parsed, frame: Frame, raised: int) -> dict[str, dict[str, int]]:
    """Counters of the live view. raised: what was folded once and is a post now has one outcome all the same."""
    counts = {
        "read": parsed.read,
        "accepted": len(frame.posts),
        "folded": len(frame.repeats) - raised,
        "deleted": len(frame.deletions),
        "rejected": len(parsed.rejects),
        "edited": sum(p.kind == "update" for p in frame.posts),
    }
    return {
        "counts": counts,
        "reasons": Counter(r.reason for r in parsed.rejects),
        "langs": Counter(p.lang for p in frame.posts),
        "sources": Counter(p.source for p in frame.posts),
    }
