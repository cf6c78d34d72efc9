"""A cluster agent whose Redis and broker are in memory, and frames for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace

from models.clusters.state import Changes
from models.encoders.ready import Loaded
from models.encoders.registry import OWN
from models.records import Alert, MatchedFrame, Origin, Post
from streams.config import load_settings
from streams.pipeline.frames import encode_frame, pack_vectors
from streams.view.snapshots import Kept
from streams.worker.cluster import Cluster
from tests.dashboard.serving import TinyEncoder
from tests.view.samples import alert_for

TEXT = "we need drinking water in the camp"


class View:
    """Keeps the snapshot as Redis does."""

    snapshot: dict[str, bytes] | None = None
    answers: tuple[Kept, ...] = ()

    async def save(self, changes: Changes) -> Kept:
        kept, *self.answers = self.answers or (Kept.SAVED,)
        if kept is Kept.SAVED:
            assert changes.whole or self.snapshot is not None
            before = {} if changes.whole else self.snapshot
            self.snapshot = {n: p for n, p in before.items() if n not in changes.gone} | changes.put
        return kept

    async def load(self) -> dict[str, bytes] | None:
        return self.snapshot

    async def put_clusters(self, events: object, told: object) -> None: ...

    async def put_alerts(self, alerts: Iterable[Alert], told: object) -> list[Alert]:
        return list(alerts)

    async def alerts_of(self, post_ids: Iterable[str]) -> list[Alert]:
        return [alert_for(post_id) for post_id in post_ids]


class Outbox:
    """A broker that acknowledges when it may."""

    def __init__(self) -> None:
        self.asked, self.may, self.told = asyncio.Event(), asyncio.Event(), []
        self.may.set()

    async def send_cluster_events(self, events: list) -> None:
        self.told += events

    async def send_alerts(self, alerts: list) -> None:
        self.told += alerts

    async def send_rejects(self, rejects: list) -> None:
        self.told += rejects

    async def delivered(self) -> None:
        self.asked.set()
        await self.may.wait()


class Event:
    def __init__(self, number: int, posts: int = 60) -> None:
        made = [Post(f"p{number}-{i}", TEXT, 1000.0 + number, 1000.0 + number) for i in range(posts)]
        encoder = TinyEncoder()
        frame = MatchedFrame(
            Origin(0, number),
            made,
            encoder_version=encoder.version,
            dim=encoder.dim,
            vectors=pack_vectors(encoder.encode([p.text for p in made])),
        )
        self.value, self.acked = encode_frame(frame), False
        self.message = SimpleNamespace(topic="posts.matched", partition=0, offset=number)

    def ack(self) -> None:
        self.acked = True


async def compute(thread: str, work, *args):
    return await asyncio.to_thread(work, *args)


def new_agent() -> Cluster:
    view = View()
    version = Loaded(OWN, TinyEncoder())
    runtime = SimpleNamespace(
        view=view,
        snapshots=view,
        compute=compute,
        encoder=version.encoder,
        settings=load_settings(),
        serving=SimpleNamespace(current=version),
    )
    return Cluster(runtime, Outbox())
