"""The match agent: frames with vectors in, alerts and matched frames out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby

import msgspec
from msgspec import Struct

from models.bars import Bars
from models.encoders.ready import Ready
from models.moments import epoch_s
from models.records import Alert, EmbeddedFrame, Frame, MatchedFrame, Origin, account_of
from streams import metrics
from streams.config.sources import SOURCES
from streams.pipeline import stages
from streams.releases.serving import Serving, restate
from streams.view.live import LiveView
from streams.worker.keeping import keep_alerts
from streams.worker.stage import Events, Handler

__all__ = ["Match"]


class Match(Handler):
    """posts.embedded → alerts and posts.matched; and posts.waiting, with what was only skimmed."""

    name, gives = "match", "posts.matched"
    kind = EmbeddedFrame

    async def __call__(self, events: Events) -> Events:
        frames = await self._decode(events)
        serving = self.runtime.serving
        begun = [await self._begun_by(serving, frame) for frame in frames]
        matched = await self.runtime.compute("match", match_all, begun, self.runtime.bars)
        known = WithBatch(self.view, [])
        await known.gone({alert.post.id for one in matched for alert in one.alerts})  # of all in one round trip
        for one in matched:
            known.given += await stages.with_withdrawals(one.frame, one.alerts, known)
        await self._tell(known.given, {p.id for one in matched for p in one.frame.posts if p.kind == "update"})
        # Asked anew, and of all posts: some may be gone since their alerts were made, and who clusters is to see none.
        gone = await self.view.gone({post.id for one in matched for post in one.frame.posts})
        await self._tell(withdrawn := stages.taken_back(known.given, gone))
        given, begun_before = known.given + withdrawn, set[Origin]()
        for one in matched:  # after its alerts are known: the clusterer looks for them as soon as it has the frame
            for frame in (*stages.without(one.frame, gone), *(await self._first_put_by(one, begun_before))):
                await self.outbox.send_frame(frame)
        await self.outbox.delivered()
        metrics.show_bars(self.runtime.bars.now, self.runtime.bars.held)
        if (vault := self.runtime.vault) is not None:
            await vault.prolong([a.post.id for a in given if a.status == "active" and a.post.id not in gone])
        await self._count(matched)
        for one in matched:
            await self.runtime.trial.matched(serving, one.frame)
        await self._observe(given)
        await self.runtime.forget_labels({d.id for one in matched for d in one.frame.deletions})
        return events

    async def _tell(self, alerts: list[Alert], edited: Collection[str] = ()) -> None:
        if alerts:
            told = await self.outbox.send_alerts(alerts)
            await self.outbox.delivered()
            await keep_alerts(
                self.outbox, self.view, alerts, lambda a: a.status != "active" or a.post.id in edited, told
            )

    async def _first_put_by(self, one: Matched, begun_before: set[Origin]) -> list[Frame]:
        """What waits of a frame, as it was divided the first time.

        A worker that is killed leaves frames to be divided anew, at another lag: then other posts wait, or in another
        turn, and those of both times would be read and counted twice. What was counted was sent.
        """
        origin = one.frame.origin
        again = origin in begun_before or bool(one.put_by) and await self.view.was_counted(self.name, origin)
        begun_before.add(origin)
        return [] if again else one.put_by

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

    async def _count(self, matched: list[Matched]) -> None:
        new = await self.view.count_all("match", [(one.frame.origin, counts_of(one)) for one in matched])
        waiting = [p for one, first in zip(matched, new, strict=True) if first for f in one.put_by for p in f.posts]
        languages = self.runtime.takeover.languages if waiting else set()
        for post in waiting:
            lang = post.lang if post.lang in languages else "other"
            source = post.source if post.source in SOURCES else "other"  # names of partners are in the live view
            metrics.put_by.labels(post.put_by.reason if post.put_by else "order", lang, source).inc()
        for name, n in sum((Counter(stages.tally(one.frame)) for one in matched), Counter()).items():
            metrics.posts.labels("match", name).inc(n)
        for query_id, n in Counter(m.query_id for one in matched for m in one.frame.matches).items():
            metrics.query_matches.labels(query_id).inc(n)

    async def _observe(self, given: list[Alert]) -> None:
        now = time.time()
        seen_s = {seen_at: epoch_s(seen_at) for seen_at in {alert.seen_at for alert in given}}
        waited_s = [max(0.0, now - seen_s[alert.seen_at]) for alert in given]
        for waited in waited_s:
            metrics.alert_seconds.observe(waited)
        for labels, n in Counter((alert.level, alert.kind, alert.status) for alert in given).items():
            metrics.alerts.labels(*labels).inc(n)
        await self.view.add_latencies([1000 * waited for waited in waited_s])


class Matched(Struct, frozen=True):
    """A frame that was matched, what of it was put by, and the alerts of its matches."""

    frame: MatchedFrame
    put_by: list[Frame]
    alerts: list[Alert]


def match_all(begun: Sequence[tuple[Ready, EmbeddedFrame]], bars: Bars) -> list[Matched]:
    """Match frames in order, those of one version together. Blocking."""
    made = []
    for _, same in groupby(begun, key=lambda one: id(one[0])):
        alike = list(same)
        ready, frames = alike[0][0], [embedded for _, embedded in alike]
        for embedded, frame in zip(frames, stages.match_many(frames, ready.matcher, bars), strict=True):
            made.append(Matched(frame, stages.by_turn(embedded), stages.alerts(frame, ready)))
    return made


def counts_of(one: Matched) -> dict[str, dict[str, int]]:
    """Counters of the live view."""
    frame, waiting = one.frame, [post for left in one.put_by for post in left.posts]
    by_id = {p.id: p.lang for p in frame.posts}
    return {
        "counts": stages.tally(frame) | {"put_by": len(waiting)},
        "queries": Counter(f"{m.query_id}:{m.level}" for m in frame.matches),
        "matched-langs": Counter(by_id[m.post_id] for m in frame.matches),
        "put-by-langs": Counter(post.lang for post in waiting),
        "put-by-sources": Counter(post.source for post in waiting),
    }


class WithBatch:
    """What the live view knows, each post asked for once, and the alerts of this batch that it is not told before
    they are published."""

    def __init__(self, view: LiveView, given: list[Alert]) -> None:
        self._view, self.given = view, given
        self._asked: set[str] = set()
        self._gone: set[str] = set()
        self.put_alerts = view.put_alerts

    async def mark_gone(self, post_ids: Sequence[str]) -> None:
        await self._view.mark_gone(post_ids)
        self._gone |= set(post_ids)

    async def gone(self, post_ids: Iterable[str]) -> set[str]:
        ids = set(post_ids)
        if new := ids - self._asked:
            self._asked |= new
            self._gone |= await self._view.gone(new)
        return {p for p in ids if p in self._gone or account_of(p) in self._gone}

    async def alerts_of(self, post_ids: Iterable[str]) -> list[Alert]:
        ids = set(post_ids)
        known = {a.alert_id: a for a in await self._view.alerts_of(ids)}
        given = {a.alert_id: a for a in self.given if ids & {a.post.id, account_of(a.post.id)}}
        for alert_id, alert in known.items():  # a batch that is read again is older than what is known of it
            if alert_id not in given or given[alert_id].revision < alert.revision:
                given[alert_id] = alert
        return list(given.values())
