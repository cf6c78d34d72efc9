"""The four Faust agents: read frames, call a stage, publish, count, then acknowledge. Wiring only.

Delivery: an input is acknowledged after everything made from it was acknowledged by the broker and counted in
Redis. An exception that escapes crashes the worker (CrashingSupervisor); the frame is read again after the restart,
and every effect can be repeated without harm. Agents have concurrency 1 and ack in order.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence

import faust
import msgspec

from models.alerts import make_alerts
from models.audit import propose_merges
from models.errors import CrisisError, Rejected, ServiceError
from models.records import Alert, EmbeddedFrame, Frame, MatchedFrame, Origin, Post, Reject, account_of
from streams import metrics, stages
from streams.clusterer import ClusterStage, place_alerts
from streams.config import Settings
from streams.frames import decode_frame, split_frame
from streams.gaps import Gaps, check
from streams.home import Home
from streams.outbox import Outbox
from streams.runtime import Runtime
from streams.state import LiveView
from streams.trial import embed_canary, timed
from streams.versions import Ready, Serving, restate
from streams.watchdog import STALLED

log = logging.getLogger(__name__)

AGENTS = ("normalise", "embed", "match", "cluster")
INPUTS = dict(zip(AGENTS, ("posts.raw", "posts.clean", "posts.embedded", "posts.matched"), strict=True))
WITHIN_S = 0.02  # how long a batch may wait for more frames: the price in latency per stage

Events = list[faust.Event]


def add_agents(app: faust.App, runtime: Runtime, names: Sequence[str]) -> dict[str, _Stage]:
    """Attach the named agents to the app; returns their handlers by name."""
    attached: dict[str, _Stage] = {}
    for name in names:
        topic = app.topic(
            runtime.settings.topics.name(INPUTS[name]), key_type=bytes, value_type=bytes, value_serializer="raw"
        )
        outbox = Outbox(app, runtime.settings)
        handler = attached[name] = HANDLERS[name](runtime, outbox)
        app.agent(topic, name=name, concurrency=1)(_loop(name, runtime, handler))
    return attached


def _loop(name: str, runtime: Runtime, handler: Callable[[Events], Awaitable[Events]]) -> Callable:
    async def agent(stream: faust.Stream) -> None:
        gaps = Gaps()
        async for events in stream.noack_take(runtime.settings.worker.frames_in_flight, within=WITHIN_S):
            for event in events:
                await _check_gap(gaps, runtime.settings, event)
            with metrics.stage_seconds.labels(name).time():
                done = await handler(events)
            for event in done:
                await stream.ack(event)
            metrics.frames.labels(name).inc(len(events))

    agent.__name__ = agent.__qualname__ = name
    return agent


async def _check_gap(gaps: Gaps, settings: Settings, event: faust.Event) -> None:
    message = event.message
    known = event.app.consumer._committed_offset.get(message.tp)  # no public getter in 0.15.3
    place = message.topic, message.partition, message.generation_id
    try:
        await check(gaps, settings, event.app.conf.id, place, message.offset, known)
    except ServiceError as error:
        log.critical("%s", error)
        os._exit(STALLED)  # an orderly end would commit on its way


def _origin(event: faust.Event) -> Origin:
    return Origin(event.message.partition, event.message.offset)


class _Stage:
    """What the handlers share: the runtime, where they send, and how a frame that cannot be read is refused."""

    name: str

    def __init__(self, runtime: Runtime, outbox: Outbox) -> None:
        self.runtime, self.outbox = runtime, outbox
        self.view = runtime.view

    async def _decode(self, events: Events, kind: type[Frame]) -> list[Frame]:
        frames = []
        for event in events:
            try:
                frames.append(decode_frame(event.value or b"", kind))
            except Rejected as why:  # somebody else wrote to our inner topic
                await self._refuse(_origin(event), why.reason, str(why), event.value or b"", 0)
        return frames

    async def _refuse(self, origin: Origin, reason: str, detail: str, raw: bytes, line: int) -> None:
        reject = Reject(reason, detail, self.name, origin, line, time.time(), raw[: stages.KEPT_OF_REJECT])
        await self.outbox.send_rejects([reject])
        metrics.rejects.labels(reason).inc()


class Normalise(_Stage):
    """posts.raw → posts.clean: read, reject, fold."""

    name = "normalise"

    async def __call__(self, events: Events) -> Events:
        counted = []
        for event in events:
            origin, seen_at = _origin(event), event.message.timestamp
            parsed = await self.runtime.compute(
                "encode", stages.parse, event.value or b"", origin, seen_at, self.runtime.author_key
            )
            frame = stages.fold(parsed, await self.runtime.folder.claim(parsed.claims))
            worker = self.runtime.settings.worker
            vector_bytes = 2 * self.runtime.serving.dim
            for piece in split_frame(frame, worker.frame_bytes, worker.frame_posts, vector_bytes):
                await self.outbox.send_frame(piece)
            await self.outbox.send_rejects(parsed.rejects)
            counted.append((parsed, frame))
        await self.outbox.delivered()
        for parsed, frame in counted:
            await self._count(parsed, frame)
        return events

    async def _count(self, parsed: stages.Parsed, frame: Frame) -> None:
        counts = {
            "read": parsed.read, "accepted": len(frame.posts), "folded": len(frame.repeats),
            "deleted": len(frame.deletions), "rejected": len(parsed.rejects),
            "edited": sum(p.kind == "update" for p in frame.posts),
        }  # fmt: skip
        reasons = Counter(r.reason for r in parsed.rejects)
        new = await self.view.count(
            "normalise", parsed.origin,
            {"counts": counts, "reasons": reasons, "langs": Counter(p.lang for p in frame.posts),
             "sources": Counter(p.source for p in frame.posts)},
        )  # fmt: skip
        if new:
            await self.view.repeat(frame.repeats)
        for outcome in ("accepted", "folded", "deleted", "rejected"):
            metrics.posts.labels("normalise", outcome).inc(counts[outcome])
        for reason, n in reasons.items():
            metrics.rejects.labels(reason).inc(n)


class Embed(_Stage):
    """posts.clean → posts.embedded: one encoder call for all frames of the batch and version."""

    name = "embed"

    async def __call__(self, events: Events) -> Events:
        frames = await self._decode(events, Frame)
        serving = self.runtime.serving
        canary = [f for f in frames if serving.for_partition(f.origin.partition) is serving.canary]
        rest = [f for f in frames if serving.for_partition(f.origin.partition) is not serving.canary]
        (embedded, poison), took_s = await self.runtime.compute("encode", timed, embed_frames, rest, serving.current.encoder)
        await self._count_trial(serving, serving.current, embedded, [0] * len(embedded), took_s)
        if serving.canary is not None and canary:
            (tried, errors), took_s = await self.runtime.compute(
                "encode", timed, embed_canary, canary, serving.canary, serving.current
            )
            await self._count_trial(serving, serving.canary, tried, errors, took_s)
            embedded += tried
        for origin, post, error in poison:
            await self._refuse(origin, "stage_error", error, msgspec.msgpack.encode(post), 0)
            await self.view.count(f"poison:{post.id}", origin, {"counts": {"rejected": 1}})
        for frame in embedded:
            await self.outbox.send_frame(frame)
        await self.outbox.delivered()
        metrics.posts.labels("embed", "embedded").inc(sum(len(f.posts) for f in embedded))
        return events

    async def _count_trial(
        self, serving: Serving, ready: Ready, frames: list[EmbeddedFrame], errors: list[int], took_s: float
    ) -> None:
        posts = sum(len(f.posts) for f in frames)
        for frame, failed in zip(frames, errors, strict=True):
            share_s = took_s * len(frame.posts) / max(posts, 1)
            await self.runtime.trial.embedded(serving, frame, ready, failed, share_s)


def embed_frames(
    frames: list[Frame], encoder: object
) -> tuple[list[EmbeddedFrame], list[tuple[Origin, Post, str]]]:
    """Embed several frames in one encoder call. A post no encoder call survives is left out and returned with its error."""
    texts = [post.text for frame in frames for post in frame.posts]
    metrics.encode_posts.observe(len(texts))
    try:
        with metrics.encode_seconds.time():
            return stages.embed_many(frames, encoder), []
    except CrisisError:
        raise
    except Exception:  # the rim: one bad post must not stop the stream, nor take its neighbours with it
        log.exception("the encoder failed on a batch of %d posts; trying them one by one", len(texts))
    kept, poison = [], []
    for frame in frames:
        good = []
        for post in frame.posts:
            try:
                encoder.encode([post.text])
                good.append(post)
            except Exception as error:
                poison.append((frame.origin, post, f"{type(error).__name__}: {error}"))
        kept.append(stages.embed(msgspec.structs.replace(frame, posts=good), encoder))
    return kept, poison


class Match(_Stage):
    """posts.embedded → alerts and posts.matched."""

    name = "match"

    async def __call__(self, events: Events) -> Events:
        frames = await self._decode(events, EmbeddedFrame)
        serving = self.runtime.serving
        given: list[Alert] = []
        matched: list[MatchedFrame] = []
        for frame in frames:
            ready, frame = await self._begun_by(serving, frame)
            frame = await self.runtime.compute("match", stages.match, frame, ready.matcher)
            given += await self._alerts(frame, ready.queries, given)
            await self.outbox.send_frame(frame)
            matched.append(frame)
        await self.outbox.send_alerts(given)
        await self.outbox.delivered()
        await self.view.put_alerts(given)
        for frame in matched:
            await self._count(frame)
            await self.runtime.trial.matched(serving, frame)
        await self._observe(given)
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

    async def _alerts(self, frame: MatchedFrame, queries: dict, given: list[Alert]) -> list[Alert]:
        alerts = make_alerts(frame.posts, frame.matches, queries, frame.encoder_version)
        return await stages.settle_alerts(frame, alerts, _WithBatch(self.view, given))

    async def _count(self, frame: MatchedFrame) -> None:
        outcome = stages.tally(frame)
        by_query = Counter(f"{m.query_id}:{m.level}" for m in frame.matches)
        by_id = {p.id: p.lang for p in frame.posts}
        langs = Counter(by_id[m.post_id] for m in frame.matches)
        await self.view.count(
            "match", frame.origin, {"counts": outcome, "queries": by_query, "matched-langs": langs}
        )
        for name, n in outcome.items():
            metrics.posts.labels("match", name).inc(n)
        for found in frame.matches:
            metrics.query_matches.labels(found.query_id).inc()

    async def _observe(self, given: list[Alert]) -> None:
        now_ms = time.time() * 1000
        waited_ms = [max(0.0, now_ms - a.revision) for a in given]
        for alert, ms in zip(given, waited_ms, strict=True):
            metrics.alerts.labels(alert.level, alert.kind, alert.status).inc()
            metrics.alert_seconds.observe(ms / 1000)
        await self.view.add_latencies(waited_ms)


class _WithBatch:
    """What the live view knows, and the alerts of this batch that it is not told before they are published."""

    def __init__(self, view: LiveView, given: list[Alert]) -> None:
        self._given = {a.alert_id: a for a in given}
        self.mark_gone, self.gone, self.put_alerts = view.mark_gone, view.gone, view.put_alerts
        self._alerts_of = view.alerts_of

    async def alerts_of(self, post_ids: Iterable[str]) -> list[Alert]:
        ids = set(post_ids)
        known = {a.alert_id: a for a in await self._alerts_of(ids)}
        return list((known | {k: a for k, a in self._given.items() if ids & {a.post.id, account_of(a.post.id)}}).values())


class Cluster(_Stage):
    """posts.matched → clusters, and alert updates once a post's cluster is known.

    The clusterer's state lives in memory; a frame is acknowledged when a snapshot that contains it is saved. After a
    crash or a rebalance the next owner restores the snapshot, reads on from the last acknowledged frame, and skips
    what the snapshot already holds.
    """

    name = "cluster"

    def __init__(self, runtime: Runtime, outbox: Outbox) -> None:
        super().__init__(runtime, outbox)
        self.stage: ClusterStage | None = None
        self._home = Home(runtime.compute)
        self._held: Events = []
        self._turn = asyncio.Lock()  # a snapshot holds whole batches: what is in it has been told

    def forget(self) -> None:
        """The partition moved to another worker: the next frames start from the saved snapshot."""
        self.stage, self._held = None, []

    async def __call__(self, events: Events) -> Events:
        async with self._turn:
            await self._apply(events)
        return []

    async def _apply(self, events: Events) -> None:
        if self.stage is None:
            self.stage = await self._restore()
        stage = self.stage
        await self._home.follow(stage.clusterer, self.runtime.encoder)
        frames = [await self._home.bring(frame) for frame in await self._decode(events, MatchedFrame)]
        changes, placed = await self.runtime.compute("cluster", stage.add_all, frames)
        alerts = await place_alerts(placed, self.view)
        await self.outbox.send_cluster_events(changes)
        await self.outbox.send_alerts(alerts)
        await self.outbox.delivered()
        await self.view.put_clusters(changes)
        await self.view.put_alerts(alerts)
        for change in changes:
            metrics.cluster_events.labels(change.event).inc()
        if self.stage is stage:  # else the partition moved meanwhile: whoever has it reads these frames again
            self._held += events

    async def save(self) -> None:
        """Save the state if it changed, then acknowledge the frames it contains."""
        async with self._turn:
            stage = self.stage
            if stage is None or not self._held:
                return
            held, self._held = self._held, []
            snapshot = await self.runtime.compute("cluster", stage.snapshot)
            if self.stage is not stage:  # it moved meanwhile: its new owner's snapshots are the ones that count
                return
            await self.view.save_snapshot(snapshot)
            for event in held:
                event.ack()
            metrics.clusters.set(stage.clusterer.size)
            metrics.biggest_cluster_share.set(stage.clusterer.biggest_share())

    async def audit(self) -> None:
        """Let HDBSCAN look over the clusters; what it would merge is shown to people, never done."""
        if self.stage is not None:
            clusters, means = await self.runtime.compute("cluster", self.stage.clusterer.means)
            # In a thread of its own: it may take seconds, and the stream goes on.
            await self.view.put_proposals(await asyncio.to_thread(propose_merges, clusters, means))

    async def _restore(self) -> ClusterStage:
        saved = await self.view.load_snapshot()
        encoder, config = self.runtime.encoder, self.runtime.settings.cluster
        self._home.settle(encoder)
        if saved is None:
            return ClusterStage.new(config, encoder.dim, encoder.version)
        return await self.runtime.compute("cluster", ClusterStage.restore, saved, config, encoder)


HANDLERS = {"normalise": Normalise, "embed": Embed, "match": Match, "cluster": Cluster}
