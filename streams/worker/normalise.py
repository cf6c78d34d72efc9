"""The normalise agent: raw records in, clean frames and rejects out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import islice

from models.posts import split_lines
from models.records import Frame, Origin
from streams import metrics
from streams.pipeline import stages
from streams.pipeline.frames import split_frame
from streams.view.live import Counts
from streams.worker.stage import Events, Handler, origin_of, refused

__all__ = ["Normalise"]


class Normalise(Handler):
    """posts.raw → posts.clean: read, reject, fold."""

    name, gives = "normalise", "posts.clean"

    async def __call__(self, events: Events) -> Events:
        pseudonyms = self.runtime.pseudonyms
        raw = [(event.value or b"", origin_of(event), event.message.timestamp) for event in events]
        parsed = await self.runtime.compute("encode", stages.parse_many, raw, pseudonyms)
        self.runtime.pace.took("posts.raw", len(events), sum(len(one.posts) for one in parsed))
        await self._keep_links(parsed)
        claims = [claim for one in parsed for claim in one.claims]
        verdicts = iter(await self.runtime.folder.claim(claims))
        counted = []
        for one in parsed:
            mine = list(islice(verdicts, len(one.claims)))
            frame = stages.fold(one, mine)
            counted.append((one, frame, stages.tally_unmatched(one, frame, mine)))
        worker, vector_bytes = self.runtime.settings.worker, 2 * self.runtime.serving.dim
        for one, frame, _ in counted:
            for piece in split_frame(frame, worker.frame_bytes, worker.frame_posts, vector_bytes):
                await self.outbox.send_frame(piece)
            await self.outbox.send_rejects(stages.sum_up(one.rejects))
        await self.outbox.delivered()
        await self._count(counted)
        return events

    def origins(self, value: bytes, origin: Origin) -> set[tuple[int, int, int]]:
        """The record's own place."""
        return {(origin.partition, origin.offset, 0)}

    def given_up(self, value: bytes, origin: Origin) -> list[tuple[Origin, Counts]]:
        """As many posts as it has lines: it is not read again."""
        lines = len(split_lines(value))
        told = refused(lines)
        return [(origin, told | {"counts": told["counts"] | {"read": lines}})]

    async def _keep_links(self, parsed: list[stages.Parsed]) -> None:
        """Before the posts go on: an alert can be opened from its first moment."""
        if (vault := self.runtime.vault) is not None:
            for one in parsed:
                await vault.keep(one.links)
                await vault.drop([deletion.id for deletion in one.deletions])

    async def _count(self, made: list[tuple[stages.Parsed, Frame, Mapping[str, int]]]) -> None:
        told = [(parsed.origin, counts_of(parsed, frame, outcomes)) for parsed, frame, outcomes in made]
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


def counts_of(parsed: stages.Parsed, frame: Frame, outcomes: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Counters of the live view. outcomes: of what goes no further (`stages.tally_unmatched`)."""
    more = {"accepted": len(frame.posts), "edited": sum(p.kind == "update" for p in frame.posts)}
    return {
        "counts": {**outcomes, **more},
        "reasons": Counter(r.reason for r in parsed.rejects),
        "langs": Counter(p.lang for p in frame.posts),
        "sources": Counter(p.source for p in frame.posts),
    }
