"""The match agent: frames with vectors in, alerts and matched frames out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

import msgspec

from models.encoders.ready import Ready
from models.moments import epoch_s
from models.records import Alert, EmbeddedFrame, Frame, MatchedFrame, account_of
from streams import metrics
from streams.pipeline import stages
from streams.releases.serving import Serving, restate
from streams.view.live import LiveView
from streams.worker.stage import Events, Handler

PLATFORMS = ("bluesky", "mastodon", "file")  # names that no token may take; those of partners are in the live view


class Match(Handler):
    """posts.embedded → alerts and posts.matched; and posts.waiting, with what was only skimmed."""

    name = "match"

    async def __call__(self, events: Events) -> Events:
        frames = await self._decode(events, EmbeddedFrame)
        serving = self.runtime.serving
        given: list[Alert] = []
        matched: list[tuple[MatchedFrame, list[Frame]]] = []
        for frame in frames:
            ready, frame = await self._begun_by(serving, frame)
            put_by = stages.by_turn(frame)
            frame = await self.runtime.compute("match", stages.match, frame, ready.matcher, self.runtime.bars)
            given += await self._alerts(frame, ready, given)
            await self.outbox.send_frame(frame)
            for left in put_by:
                await self.outbox.send_frame(left)
            matched.append((frame, put_by))
        await self.outbox.send_alerts(given)
        await self.outbox.delivered()
        metrics.show_bars(self.runtime.bars.now)
        await self.view.put_alerts(given)
        if (vault := self.runtime.vault) is not None:
            await vault.prolong([alert.post.id for alert in given if alert.status == "active"])
        for frame, put_by in matched:
            await self._count(frame, put_by)
            await self.runtime.trial.matched(serving, frame)
        await self._observe(given)
        await self.runtime.forget_labels({d.id for frame, _ in matched for d in frame.deletions})
        return events

    async def _begun_by(self, serving: Serving, frame: EmbeddedFrame) -> tuple[Ready, EmbeddedFrame]:
        """The version that began the frame; where it is not loaded here, one that is, and the frame made anew by it."""
        ready = serving.of(frame)
        if ready is None and frame.posts:
            ready = serving.for_partition(frame.origin.partition)
            frame = await self.runtime.compute("encode", restate, frame, ready.encoder)
            metrics.restated.labels("match").inc(len(frame.posts))
        elif ready is None:  # repeats and deletions only: no vectors, so of any version
            ready = serving.current
            frame = msgspec.structs.replace(frame, encoder_version=ready.encoder.version, dim=ready.encoder.dim)
        self.runtime.takeover.used(ready)
        return ready, frame

    async def _alerts(self, frame: MatchedFrame, ready: Ready, given: list[Alert]) -> list[Alert]:
        alerts = stages.alerts(frame, ready)
        return await stages.settle_alerts(frame, alerts, WithBatch(self.view, given))

    async def _count(self, frame: MatchedFrame, put_by: list[Frame]) -> None:
        outcome = stages.tally(frame)
        waiting = [post for left in put_by for post in left.posts]
        by_query = Counter(f"{m.query_id}:{m.level}" for m in frame.matches)
        by_id = {p.id: p.lang for p in frame.posts}
        langs = Counter(by_id[m.post_id] for m in frame.matches)
        new = await self.view.count(
            "match",
            frame.origin,
            {
                "counts": outcome | {"put_by": len(waiting)},
                "queries": by_query,
                "matched-langs": langs,
                "put-by-langs": Counter(post.lang for post in waiting),
                "put-by-sources": Counter(post.source for post in waiting),
            },
        )
        languages = self.runtime.takeover.languages if waiting else set()
        for post in waiting if new else ():
            lang = post.lang if post.lang in languages else "other"
            source = post.source if post.source in PLATFORMS else "other"
            metrics.put_by.labels(post.put_by.reason if post.put_by else "order", lang, source).inc()
        for name, n in outcome.items():
            metrics.posts.labels("match", name).inc(n)
        for found in frame.matches:
            metrics.query_matches.labels(found.query_id).inc()

    async def _observe(self, given: list[Alert]) -> None:
        now = time.time()
        waited_s = [max(0.0, now - epoch_s(alert.seen_at)) for alert in given]
        for alert, waited in zip(given, waited_s, strict=True):
            metrics.alerts.labels(alert.level, alert.kind, alert.status).inc()
            metrics.alert_seconds.observe(waited)
        await self.view.add_latencies([1000 * waited for waited in waited_s])


class WithBatch:
    """What the live view knows, and the alerts of this batch that it is not told before they are published."""

    def __init__(self, view: LiveView, given: list[Alert]) -> None:
        self._given = {a.alert_id: a for a in given}
        self.mark_gone, self.gone, self.put_alerts = view.mark_gone, view.gone, view.put_alerts
        self._alerts_of = view.alerts_of

    async def alerts_of(self, post_ids: Iterable[str]) -> list[Alert]:
        ids = set(post_ids)
        known = {a.alert_id: a for a in await self._alerts_of(ids)}
        return list(
            (known | {k: a for k, a in self._given.items() if ids & {a.post.id, account_of(a.post.id)}}).values()
        )
