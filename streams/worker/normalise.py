"""The normalise agent: raw records in, clean frames and rejects out."""

from __future__ import annotations

from collections import Counter

from models.records import Frame
from streams import metrics
from streams.pipeline import stages
from streams.pipeline.frames import split_frame
from streams.worker.stage import Events, Handler, origin_of


class Normalise(Handler):
    """posts.raw → posts.clean: read, reject, fold."""

    name = "normalise"

    async def __call__(self, events: Events) -> Events:
        counted = []
        for event in events:
            origin, seen_at = origin_of(event), event.message.timestamp
            parsed = await self.runtime.compute(
                "encode", stages.parse, event.value or b"", origin, seen_at, self.runtime.pseudonyms
            )
            await self._keep_links(parsed)
            verdicts = await self.runtime.folder.claim(parsed.claims)
            frame = stages.fold(parsed, verdicts)
            worker = self.runtime.settings.worker
            vector_bytes = 2 * self.runtime.serving.dim
            for piece in split_frame(frame, worker.frame_bytes, worker.frame_posts, vector_bytes):
                await self.outbox.send_frame(piece)
            await self.outbox.send_rejects(stages.sum_up(parsed.rejects))
            counted.append((parsed, frame, sum(len(verdict.raised) for verdict in verdicts)))
        await self.outbox.delivered()
        for parsed, frame, raised in counted:
            await self._count(parsed, frame, raised)
        return events

    async def _keep_links(self, parsed: stages.Parsed) -> None:
        """Before the posts go on: an alert can be opened from its first moment."""
        if (vault := self.runtime.vault) is not None:
            await vault.keep(parsed.links)
            await vault.drop([deletion.id for deletion in parsed.deletions])

    async def _count(self, parsed: stages.Parsed, frame: Frame, raised: int) -> None:
        counts = {
            "read": parsed.read,
            "accepted": len(frame.posts),
            "folded": len(frame.repeats),
            "deleted": len(frame.deletions),
            "rejected": len(parsed.rejects),
            "edited": sum(p.kind == "update" for p in frame.posts),
        }
        reasons = Counter(r.reason for r in parsed.rejects)
        new = await self.view.count(
            "normalise",
            parsed.origin,
            {
                # What was folded once and is a post now has one outcome all the same.
                "counts": counts | {"folded": counts["folded"] - raised},
                "reasons": reasons,
                "langs": Counter(p.lang for p in frame.posts),
                "sources": Counter(p.source for p in frame.posts),
            },
        )
        if new:
            await self.view.repeat(frame.repeats)
        for outcome in ("accepted", "folded", "deleted", "rejected"):
            metrics.posts.labels("normalise", outcome).inc(counts[outcome])
        for reason, n in reasons.items():
            metrics.rejects.labels(reason).inc(n)
