"""The cluster agent when no more posts come: the last ones are told their cluster."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from streams.pipeline.clusters import ClusterStage
from streams.worker import cluster
from streams.worker.cluster import Cluster
from tests.dashboard.serving import TinyEncoder
from tests.worker.cluster_agent import Event, new_agent


@pytest.fixture
def agent() -> Cluster:
    return new_agent()


async def test_when_no_more_posts_come_the_last_ones_are_told_their_cluster_once_and_what_was_told_is_saved(
    agent, monkeypatch
):
    clock = SimpleNamespace(now=1000.0, monotonic=lambda: clock.now, time=lambda: clock.now)
    monkeypatch.setattr(cluster, "time", clock)
    await agent.rest()
    event = Event(1)
    await agent([event])
    waits = agent.stage.clusterer.config.settle_every_s
    await agent.rest()
    clock.now += waits - 0.1
    await agent.rest()
    assert agent.outbox.told == [] and not event.acked
    clock.now += 0.1
    await agent.rest()
    (told,) = agent.outbox.told
    assert told.posts == 60 and event.acked
    restored = ClusterStage.restore(agent.view.snapshot, agent.runtime.settings.cluster, TinyEncoder())
    assert restored.clusterer.snapshot() == agent.stage.clusterer.snapshot()
    clock.now += 10 * waits
    await agent.rest()
    assert agent.outbox.told == [told]


async def test_a_rest_that_could_not_be_told_is_in_no_snapshot(agent, monkeypatch):
    event = Event(1)
    await agent([event])
    monkeypatch.setattr(cluster, "time", SimpleNamespace(monotonic=lambda: math.inf))

    async def fail() -> None:
        raise OSError("no broker")

    agent.outbox.delivered = fail
    with pytest.raises(OSError, match="no broker"):
        await agent.rest()
    await agent.save()
    assert agent.view.snapshot is None and agent.stage is None and not event.acked
