"""The live view: every write can be repeated without harm."""

import json

import msgspec
import pytest

from models.clusters.state import Changes
from models.moments import rfc3339
from models.records import ClusterEvent, Origin, Repeat
from streams.config import Settings
from streams.view.live import LiveView
from streams.view.snapshots import Kept, Snapshots
from streams.view.status import (
    DEAD_KEPT,
    GONE_S,
    SOURCE_KEPT_S,
    WORKER_KEPT_S,
    SourceStatus,
    WorkerStatus,
    encode_status,
)
from tests.view.samples import alert_for
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.redis


async def test_counters_of_a_redelivered_frame_count_once(view):
    origin = Origin(2, 41, 1)
    assert await view.count("match", origin, {"counts": {"alert": 3}, "langs": {"ht": 2}})
    assert not await view.count("match", origin, {"counts": {"alert": 3}, "langs": {"ht": 2}})
    assert not await view.count("match", Origin(2, 40), {"counts": {"alert": 9}})
    assert await view.count("match", Origin(2, 41, 30_000), {"counts": {"alert": 0}})
    assert not await view.count("match", Origin(2, 41, 9), {"counts": {"alert": 9}})
    assert await view.count("match", Origin(2, 42), {"counts": {"alert": 2}})
    assert await view.count("match", Origin(3, 0), {"counts": {"alert": 1}})
    assert await view.count("match", Origin(2, 7, turn=1), {"counts": {"alert": 0}}), "what waited is overtaken"
    assert not await view.count("match", Origin(2, 7, turn=1), {"counts": {"alert": 9}})
    assert await view.counts() == {"alert": 6}
    assert await view.counts("langs") == {"ht": 2}


async def test_names_that_somebody_invents_do_not_fill_redis_and_all_are_counted(view):
    for frame in range(3):
        await view.count("normalise", Origin(0, frame), {"sources": {f"invented {frame}/{n}": 1 for n in range(1_000)}})
    found = await view.counts("sources")
    assert len(found) == 2_001 and sum(found.values()) == 3_000 and found["other"] == 1_000


async def test_live_readers_hear_of_new_alerts_and_only_of_new_ones(view):
    async with view.redis.pubsub() as pubsub:
        await pubsub.subscribe(view.key("live-alerts"))
        await pubsub.get_message(timeout=PATIENCE_S)  # the subscription itself
        alert = alert_for()
        await view.put_alerts([alert])
        await view.put_alerts([alert])
        await view.put_alerts([alert_for("p2")])
        heard = [await pubsub.get_message(ignore_subscribe_messages=True, timeout=PATIENCE_S) for _ in range(2)]
        assert [json.loads(m["data"])["post"]["id"] for m in heard] == ["p1", "p2"]


def event(version, **changes):
    first, last = rfc3339(10.0), rfc3339(20.0 + version)
    made = ClusterEvent("grow", "c1", version, 5 + version, 4.0, first, last, "school · roof", "v1")
    return msgspec.structs.replace(made, **changes)


async def test_clusters_keep_their_newest_version_and_merged_ones_leave(view):
    await view.put_clusters([event(1), event(3), event(2)])
    assert [c.version for c in await view.clusters()] == [3]
    await view.put_clusters([event(4, event="merge", into="c0")])
    assert await view.clusters() == []
    await view.put_clusters([event(3)])
    assert await view.clusters() == []


async def test_what_a_cluster_was_merged_into_is_known_as_long_as_that_it_is_gone(view):
    await view.put_clusters([event(4, event="merge", into="c0"), event(1, cluster_id="c2", event="expire")])
    await view.put_clusters([event(3, event="merge", into="late")])
    assert await view.merged_clusters() == {"c1": "c0"}
    assert await view.redis.ttl(view.key("cluster-into")) == await view.redis.ttl(view.key("clusters-gone"))
    for n in range(2, 100):
        await view.put_clusters([event(n, cluster_id=f"c{n}", event="merge", into="c0")], most=10)
    assert set(await view.merged_clusters()) == {f"c{n}" for n in range(60, 100)}


async def test_repeats_are_counted_with_their_original(view):
    await view.repeat([Repeat("r1", "p1", 0.0), Repeat("r2", "p1", 0.0)])
    assert await view.repeats_of(["p1", "p2"]) == [2, 0]


async def test_hostile_text_reaches_live_readers_as_data(view):
    alert = alert_for()
    nasty = msgspec.structs.replace(alert.post, text='"}},"x":{"</script><script>alert(1)</script>\u2028')
    await view.put_alerts([msgspec.structs.replace(alert, post=nasty)])
    assert (await view.recent_alerts())[0].post.text == nasty.text


async def test_clear_forgets_everything_under_the_prefix_only(view):
    await view.redis.set("other", 1)
    await view.put_alerts([alert_for()])
    await view.clear()
    assert await view.redis.keys("*") == [b"other"]


async def test_a_save_replaces_the_parts_that_changed_and_nothing_else(view):
    snapshots = Snapshots(view.redis, Settings())
    assert await snapshots.load() is None
    assert await snapshots.save(Changes({"a": b"1", "b": b"1", "c": b"\xff"}, [], True)) is Kept.SAVED
    assert await snapshots.save(Changes({"a": b"2"}, ["b"], False)) is Kept.SAVED
    assert await snapshots.load() == {"a": b"2", "c": b"\xff"}
    assert await snapshots.save(Changes({"d": b""}, [], True)) is Kept.SAVED
    assert await snapshots.load() == {"d": b""}


async def test_parts_of_two_workers_never_mix(view):
    """The one that loaded last owns the state; one that was cut off meanwhile cannot write into it."""
    old, new = Snapshots(view.redis, Settings()), Snapshots(view.redis, Settings())
    await old.load()
    await old.save(Changes({"a": b"old"}, [], True))
    assert await new.load() == {"a": b"old"}
    for whole in (True, False):
        assert await old.save(Changes({"a": b"late"}, [], whole)) is Kept.MOVED
    assert await new.save(Changes({"b": b"new"}, [], False)) is Kept.SAVED
    assert await new.load() == {"a": b"old", "b": b"new"}


async def test_parts_are_not_saved_over_an_older_state_of_a_redis_that_came_back(view):
    """A fail-over, a power cut: it has what was saved before, and not what these parts go on from."""
    snapshots = Snapshots(view.redis, Settings())
    await snapshots.save(Changes({"a": b"1", "b": b"1"}, [], True))
    older = await view.redis.dump(view.key("snapshot-parts"))
    assert await snapshots.save(Changes({"a": b"2"}, ["b"], False)) is Kept.SAVED
    await view.redis.restore(view.key("snapshot-parts"), 0, older, replace=True)
    assert await snapshots.save(Changes({"c": b"3"}, [], False)) is Kept.LOST
    assert await Snapshots(view.redis, Settings()).load() == {"a": b"1", "b": b"1"}


async def test_state_of_a_version_that_did_not_number_its_saves_is_saved_anew_as_a_whole(view):
    await view.redis.hset(view.key("snapshot-parts"), mapping={"owner": "before", "a": b"1"})
    snapshots = Snapshots(view.redis, Settings())
    assert await snapshots.load() == {"a": b"1"}
    assert await snapshots.save(Changes({"b": b"1"}, [], False)) is Kept.LOST
    assert await snapshots.save(Changes({"a": b"1", "b": b"1"}, [], True)) is Kept.SAVED


async def test_of_clusters_that_went_no_more_is_kept_than_keeps_late_words_from_bringing_them_back(view):
    for n in range(100):
        await view.put_clusters(
            [event(n, cluster_id=f"c{n}"), event(n + 1, cluster_id=f"c{n}", event="expire")], most=10
        )
    assert await view.redis.hlen(view.key("cluster-ver")) == await view.redis.zcard(view.key("clusters-gone")) == 40
    await view.put_clusters([event(99, cluster_id="c99")])
    assert await view.clusters() == []


async def test_parts_are_not_saved_where_the_rest_is_gone(view):
    snapshots = Snapshots(view.redis, Settings())
    await snapshots.save(Changes({"a": b"1"}, [], True))
    await view.clear()
    assert await snapshots.save(Changes({"b": b"1"}, [], False)) is Kept.LOST
    assert await snapshots.save(Changes({"a": b"1", "b": b"1"}, [], True)) is Kept.SAVED


async def test_deployments_with_topics_of_their_own_share_no_key_of_one_redis(view):
    drill = LiveView(view.redis, Settings(redis={"recent_alerts": 10}, topics={"prefix": "drill."}))
    for one in (view, drill):
        assert await one.count("match", Origin(0, 7), {"counts": {"alert": 1}})
        await one.put_alerts([alert_for()])
    await view.clear()
    assert await view.counts() == {} and await view.recent_alerts() == []
    assert await drill.counts() == {"alert": 1} and await drill.recent_alerts() == [alert_for()]


async def test_a_worker_clears_away_a_source_that_nobody_misses_any_more_though_others_speak(view):
    now = await view.now()
    for name, silent_s in (("lately", SOURCE_KEPT_S - 60), ("long ago", SOURCE_KEPT_S + 60)):
        await view.redis.hset(view.key("sources-at"), name, encode_status(SourceStatus(now - silent_s)))
    for value in (b"", b"5", b'{"message":"\xff"}', b'{"x":' + b"[" * 100_000):
        await view.redis.hset(view.key("sources-at"), f"no status {value[:20]}", value)
    await view.put_source("http")
    await view.put_worker("w", WorkerStatus())
    assert set(await view.sources()) == {"http", "lately"}


async def test_workers_that_died_are_cleared_away_by_those_that_live_however_many_there_were(view):
    now = await view.now()
    for n in range(300):  # one that is started again and again
        await view.redis.hset(view.key("workers"), f"w-{n:03}", encode_status(WorkerStatus(now - 3_590 + n)))
    for name, word in (("long ago", WorkerStatus(now - WORKER_KEPT_S - 60)), ("lives", WorkerStatus(now - GONE_S / 2))):
        await view.redis.hset(view.key("workers"), name, encode_status(word))
    await view.redis.hset(view.key("workers"), "of another version", b'{"at":"yesterday"}')
    await view.put_worker("w", WorkerStatus())
    last = {f"w-{n}" for n in range(300 - DEAD_KEPT, 300)}
    assert set(await view.workers()) == {"w", "lives"} | last


async def test_counters_stay_as_long_as_posts_after_they_were_written_last_and_longer_where_somebody_says_so(view):
    await view.count("match", Origin(0, 1), {"counts": {"alert": 1}, "trial-1": {"posts": 1}})
    await view.redis.expire(view.key("trial-1"), 14 * 86_400)
    await view.redis.expire(view.key("counts"), 60)
    await view.count("match", Origin(0, 2), {"counts": {"alert": 1}, "trial-1": {"posts": 1}})
    left = [await view.redis.ttl(view.key(name)) for name in ("counts", "counted", "trial-1")]
    assert left == [pytest.approx(72 * 3600, abs=3600)] * 2 + [pytest.approx(14 * 86_400, abs=3600)]
