"""The cluster agent between two snapshots: what a snapshot holds has been told, what is acknowledged is in one."""

from __future__ import annotations

import asyncio

import pytest

from models.clusters.state import Changes
from models.encoders.cluster_thresholds import TunedClusters
from models.encoders.ready import Loaded
from models.encoders.registry import OWN
from models.errors import ServiceError
from models.records import MatchedFrame
from streams import metrics
from streams.config import load_settings
from streams.pipeline.clusters import ClusterStage
from streams.pipeline.frames import decode_frame
from streams.view.snapshots import Kept
from streams.worker.cluster import PART, SAVE_AT, Cluster
from tests.dashboard.serving import TinyEncoder
from tests.worker.cluster_agent import Event, Outbox, new_agent


@pytest.fixture
def agent() -> Cluster:
    return new_agent()


async def test_frames_are_acknowledged_with_the_snapshot_that_holds_them(agent):
    event = Event(1)
    assert await agent([event]) == [] and not event.acked
    await agent.save()
    assert event.acked
    restored = ClusterStage.restore(agent.view.snapshot, agent.runtime.settings.cluster, TinyEncoder())
    assert restored.clusterer.counters.posts == 60


async def test_a_batch_of_nothing_but_rubbish_is_refused_before_it_is_acknowledged(agent):
    event = Event(0)
    event.value = b"no frame"
    await agent([event])
    assert [reject.reason for reject in agent.outbox.told] == ["bad_frame"] and agent.outbox.asked.is_set()


async def test_posts_are_counted_once_however_often_their_frames_come(agent):
    clustered = metrics.posts.labels("cluster", "clustered")
    before, event = clustered._value.get(), Event(1, posts=3)
    await agent([event, Event(2, posts=4)])
    await agent([event])
    assert clustered._value.get() - before == 7


async def test_it_tells_how_far_it_has_applied_from_the_moment_it_holds_a_record_until_the_partition_leaves(agent):
    part = ("posts.matched", 0)
    assert agent.applied == {}
    agent.outbox.may.clear()
    applying = asyncio.create_task(agent([Event(1), Event(2)]))
    await agent.outbox.asked.wait()
    assert agent.applied == {}, "its events are still on their way"
    agent.outbox.may.set()
    await applying
    assert agent.applied == {part: 3}
    await agent.save()
    assert agent.applied == {part: 3}, "until it is committed nobody else knows"
    agent.forget()
    assert agent.applied == {}


async def test_a_worker_that_clusters_no_more_shows_no_clusters(agent):
    await agent([Event(1)])
    await agent.save()
    shown = (metrics.clusters, metrics.biggest_cluster_share)
    assert all(gauge._value.get() > 0 for gauge in shown)
    agent.forget()
    assert [gauge._value.get() for gauge in shown] == [0, 0]


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


async def test_of_a_large_batch_a_part_is_computed_while_the_one_before_it_is_told(agent):
    agent.outbox.may.clear()
    events = [Event(number, PART) for number in (1, 2, 3)]
    applying = asyncio.create_task(agent(events))
    await agent.outbox.asked.wait()
    while agent.stage.clusterer.counters.posts < 2 * PART:
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    straight = ClusterStage.new(agent.stage.clusterer.config, TinyEncoder().dim, TinyEncoder().version)
    frames = [decode_frame(event.value, MatchedFrame) for event in events]
    told = straight.add_all(frames[:1])[0]
    assert agent.outbox.told == told != [] and agent.stage.clusterer.counters.posts == 2 * PART, "one is ahead, not two"
    agent.outbox.may.set()
    await applying
    assert agent.outbox.told == told + straight.add_all(frames[1:])[0]
    assert agent.stage.clusterer.snapshot() == straight.clusterer.snapshot()


async def test_likely_clusters_are_told_once_a_batch_beside_what_is_known(agent, monkeypatch):
    monkeypatch.setattr(ClusterStage, "add_all", lambda self, frames: ([], {"sure": "c1"}))
    monkeypatch.setattr(ClusterStage, "likely", lambda self: {"maybe": "c2", "sure": "c3", "back": None})
    await agent([Event(1, PART), Event(2, 1)])
    named = [(alert.post.id, alert.cluster_id) for alert in agent.outbox.told]
    assert sorted(named) == [("maybe", "c2"), ("sure", "c1"), ("sure", "c1")], "of an alert without one none is taken"


@pytest.mark.parametrize("end", ["the broker is gone", "cancelled"])
@pytest.mark.parametrize("posts", [60, 2 * PART])
async def test_what_could_not_be_told_is_in_no_snapshot(agent, end, posts):
    """Though a save waits at the door: after a restart its frames would be taken for known, and nobody be told."""
    held, lost = Event(1), [Event(2, posts), Event(3, posts)]
    await agent([held])
    asked, may = asyncio.Event(), asyncio.Event()

    async def fail() -> None:
        asked.set()
        await may.wait()
        raise OSError("no broker")

    agent.outbox.delivered = fail
    applying = asyncio.create_task(agent(lost))
    await asked.wait()
    saving = asyncio.create_task(agent.save())
    await asyncio.sleep(0)
    if end == "cancelled":
        applying.cancel()
    may.set()
    with pytest.raises(asyncio.CancelledError if end == "cancelled" else OSError):
        await applying
    await saving
    assert agent.view.snapshot is None and agent.stage is None
    assert not any(event.acked for event in (held, *lost))


async def test_a_crash_before_the_snapshot_tells_the_same_events_again(agent):
    again = Cluster(agent.runtime, Outbox())
    for one in (agent, again):
        await one([Event(1, posts=200)])
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


async def test_a_later_save_holds_what_changed_and_restores_the_same(agent):
    for number in range(1, 4):
        await agent([Event(number)])
        await agent.save()
    restored = ClusterStage.restore(agent.view.snapshot, agent.runtime.settings.cluster, TinyEncoder())
    assert restored.clusterer.snapshot() == agent.stage.clusterer.snapshot()
    changes = agent.stage.changes()
    assert not changes.whole and set(changes.put) == {"head", "lexicon", "waiting"} and not changes.gone


async def test_on_a_fast_stream_a_save_does_not_wait_for_its_timer(agent):
    event = Event(1, SAVE_AT)
    await agent([event])
    assert event.acked and agent.view.snapshot is not None


async def test_what_redis_lost_is_saved_again_whole(agent):
    await agent([Event(1)])
    await agent.save()
    agent.view.snapshot, agent.view.answers = {}, (Kept.LOST, Kept.SAVED)
    event = Event(2)
    await agent([event])
    await agent.save()
    restored = ClusterStage.restore(agent.view.snapshot, agent.runtime.settings.cluster, TinyEncoder())
    assert event.acked and restored.clusterer.counters.posts == 120


async def test_state_that_another_worker_took_over_is_given_up_unacknowledged_and_ends_the_process(agent):
    """It has frames in hand that are in nobody's snapshot: only who begins anew reads them again."""
    event = Event(1)
    await agent([event])
    agent.view.answers = (Kept.MOVED,)
    with pytest.raises(ServiceError, match="another worker"):
        await agent.save()
    assert agent.stage is None and not event.acked and agent.view.snapshot is None


async def test_state_that_is_loaded_when_the_partition_leaves_is_not_used(agent):
    loading, may = asyncio.Event(), asyncio.Event()

    async def load() -> None:
        loading.set()
        await may.wait()

    agent.view.load = load
    event = Event(1)
    work = asyncio.create_task(agent([event]))
    await loading.wait()
    agent.forget()
    may.set()
    await work
    await agent.save()
    assert agent.stage is None and not event.acked and agent.view.snapshot is None and not agent.outbox.told


async def test_a_snapshot_that_cannot_be_read_ends_no_worker(agent, caplog):
    await agent([Event(1)])
    await agent.save()
    del agent.view.snapshot["waiting"]
    agent.forget()
    event = Event(2)
    await agent([event])
    await agent.save()
    assert event.acked and agent.stage.clusterer.counters.posts == 60
    assert "the saved clusters are lost" in caplog.text


async def test_a_save_that_failed_keeps_its_frames_for_the_next_which_is_whole(agent):
    event, save = Event(1), agent.view.save

    async def fail(changes: Changes) -> Kept:
        raise OSError("no Redis")

    await agent([event])
    agent.runtime.snapshots.save = fail
    with pytest.raises(OSError, match="no Redis"):
        await agent.save()
    assert not event.acked
    agent.runtime.snapshots.save = save
    await agent.save()
    assert (
        event.acked
        and ClusterStage.restore(
            agent.view.snapshot, agent.runtime.settings.cluster, TinyEncoder()
        ).clusterer.counters.posts
        == 60
    )


async def test_the_thresholds_of_the_bundle_hold_unless_the_settings_name_some(agent):
    own = TunedClusters(agent.runtime.encoder.version, t_attach=0.5, t_merge=0.4, lexical=0.6)
    agent.runtime.serving.current = Loaded(OWN, TinyEncoder(), clusters=own)
    await agent([Event(1)])
    config = agent.stage.clusterer.config
    assert (config.t_attach, config.t_merge) == (0.5, 0.4)
    agent.runtime.settings = load_settings(cluster={"t_attach": 0.7})
    await agent([Event(2)])
    config = agent.stage.clusterer.config
    assert (config.t_attach, config.t_merge) == (0.7, 0.4)


async def test_clusters_keep_their_ids_when_the_static_encoder_comes_to_stand_beside_the_own(agent):
    await agent([Event(1)])
    before = set(agent.stage.clusterer.assignments().values())
    own = agent.runtime.serving.current.encoder
    tuned = TunedClusters(own.version, t_attach=0.5, t_merge=0.4, lexical=0.6, beside=0.7)
    agent.runtime.serving.current = version = Loaded(OWN, own, clusters=tuned)
    for number in range(2, 200):  # its sample texts are read beside the stream
        await agent([Event(number)])
        if agent.stage.clusterer.encoder_version == version.clustered_by.version:
            break
    assert agent.stage.clusterer.dim == version.clustered_by.dim > own.dim
    await agent([Event(number + 1)])
    assert set(agent.stage.clusterer.assignments().values()) == before
    assert agent.stage.clusterer.counters.posts == 60 * (number + 1)
