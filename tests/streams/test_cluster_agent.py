"""The cluster agent between two snapshots: what a snapshot holds has been told, what is acknowledged is in one."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from models.records import MatchedFrame, Origin, Post
from streams.agents import Cluster
from streams.clusterer import ClusterStage
from streams.config import load_settings
from streams.frames import encode_frame, pack_vectors
from tests.dashboard.serving import TinyEncoder

TEXT = "we need drinking water in the camp"


class View:
    """Keeps the snapshot as Redis does."""

    snapshot: bytes | None = None

    async def save_snapshot(self, snapshot: bytes) -> None:
        self.snapshot = snapshot

    async def load_snapshot(self) -> bytes | None:
        return self.snapshot

    async def put_clusters(self, events: object) -> None: ...

    async def put_alerts(self, alerts: object) -> None: ...


class Outbox:
    """A broker that acknowledges when it may."""

    def __init__(self) -> None:
        self.asked, self.may, self.told = asyncio.Event(), asyncio.Event(), []
        self.may.set()

    async def send_cluster_events(self, events: list) -> None:
        self.told += events

    async def send_alerts(self, alerts: object) -> None: ...

    async def delivered(self) -> None:
        self.asked.set()
        await self.may.wait()


class Event:
    def __init__(self, number: int, posts: int = 60) -> None:
        made = [Post(f"p{number}-{i}", TEXT, 1000.0 + number, 1000.0 + number) for i in range(posts)]
        encoder = TinyEncoder()
        frame = MatchedFrame(Origin(0, number), made, encoder_version=encoder.version, dim=encoder.dim,
                             vectors=pack_vectors(encoder.encode([p.text for p in made])))  # fmt: skip
        self.value, self.acked = encode_frame(frame), False

    def ack(self) -> None:
        self.acked = True


async def compute(thread: str, work, *args):
    return await asyncio.to_thread(work, *args)


@pytest.fixture
def agent() -> Cluster:
    runtime = SimpleNamespace(view=View(), compute=compute, encoder=TinyEncoder(), settings=load_settings())
    return Cluster(runtime, Outbox())


async def test_frames_are_acknowledged_with_the_snapshot_that_holds_them(agent):
    event = Event(1)
    assert await agent([event]) == [] and not event.acked
    await agent.save()
    assert event.acked
    restored = ClusterStage.restore(agent.view.snapshot, agent.runtime.settings.cluster, TinyEncoder())
    assert restored.clusterer.counters.posts == 60


async def test_no_snapshot_is_taken_of_a_batch_whose_events_are_still_on_their_way(agent):
    """Else a crash would lose them: after the restart the frame is known, and applying it again says nothing."""
    first, second = Event(1), Event(2)
    await agent([first])
    agent.outbox.may.clear()
    agent.outbox.asked.clear()
    applying = asyncio.create_task(agent([second]))
    await agent.outbox.asked.wait()
    saving = asyncio.create_task(agent.save())
    for _ in range(20):
        await asyncio.sleep(0)
    assert agent.view.snapshot is None
    agent.outbox.may.set()
    await asyncio.gather(applying, saving)
    assert first.acked and second.acked


async def test_a_crash_before_the_snapshot_tells_the_same_events_again(agent):
    await agent([Event(1)])
    again = Cluster(agent.runtime, Outbox())
    await again([Event(1)])
    assert again.outbox.told == agent.outbox.told != []


async def test_a_batch_that_the_partition_left_meanwhile_is_not_acknowledged(agent):
    event = Event(1)
    agent.outbox.may.clear()
    applying = asyncio.create_task(agent([event]))
    await agent.outbox.asked.wait()
    agent.forget()
    agent.outbox.may.set()
    await applying
    await agent([])  # the partition came back: the saved state, of which there is none
    await agent.save()
    assert not event.acked and agent.view.snapshot is None


async def test_a_snapshot_under_way_when_the_partition_leaves_is_not_saved_over_the_new_owners(agent):
    event = Event(1)
    await agent([event])
    started, may = asyncio.Event(), asyncio.Event()

    async def held_up(thread, work, *args):
        started.set()
        await may.wait()
        return work(*args)

    agent.runtime.compute = held_up
    saving = asyncio.create_task(agent.save())
    await started.wait()
    agent.forget()
    may.set()
    await saving
    assert agent.view.snapshot is None and not event.acked
