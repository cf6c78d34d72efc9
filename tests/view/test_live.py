"""The live view: every write can be repeated without harm."""

import asyncio
import json
import random
from collections import Counter

import msgspec
import pytest
from redis.asyncio import Redis

from models.alerts import make_alert, place_in_cluster, withdraw
from models.clusters.state import Changes
from models.moments import epoch_s, rfc3339
from models.queries import Query
from models.records import ClusterEvent, Deletion, Match, MatchedFrame, Origin, Post, Repeat
from streams.config import Settings
from streams.dashboard.crowds import Crowds
from streams.pipeline.clusters import place_alerts
from streams.pipeline.memory import MemoryAlerts
from streams.pipeline.stages import with_withdrawals
from streams.view.live import LiveView
from streams.view.snapshots import Kept, Snapshots
from streams.worker.match import WithBatch
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.redis
QUERY = Query("need.water", "need", "water", "Drinking water", {"en": ["We need water"]}, "WASH", "#need +water")


def alert_for(post_id="p1", seen_at=1000.0, author=None, source="sms", level="alert", category="water", cluster=None):
    post = Post(post_id, "we need water", seen_at - 1, seen_at, "en", source, author=author)
    match = Match(post_id, "need.water", QUERY.version, level, 0.6, 0.5, None, "We need water", "en", 0.9)
    made = make_alert(post, match, msgspec.structs.replace(QUERY, category=category), "v1")
    return made if cluster is None else place_in_cluster(made, cluster)


@pytest.fixture
async def view(redis_url):
    redis = Redis.from_url(redis_url)
    yield LiveView(redis, Settings(redis={"url": redis_url, "recent_alerts": 10}))
    await redis.aclose()


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


async def test_only_a_newer_revision_of_an_alert_replaces_it(view):
    alert = alert_for()
    placed = place_in_cluster(alert, "c1")
    assert await view.put_alerts([alert]) == [alert]
    assert await view.put_alerts([placed]) == [placed]
    assert await view.put_alerts([alert]) == []
    assert await view.recent_alerts() == [placed]


async def test_a_withdrawn_alert_stays_withdrawn_when_its_post_is_redelivered(view):
    alert = alert_for()
    await view.put_alerts([alert])
    gone = withdraw(alert, Deletion("p1", epoch_s(alert.seen_at) + 5))
    await view.put_alerts([gone])
    await view.put_alerts([alert])
    (kept,) = await view.alerts_of(["p1"])
    assert (kept.status, kept.withdrawn_because) == ("withdrawn", "deleted")


async def test_redis_and_memory_take_the_same_alerts(view):
    memory = MemoryAlerts()
    one, two = alert_for("a"), alert_for("b", 2000.0)
    for batch in ([one, two], [one], [place_in_cluster(two, "c9")], [two]):
        assert await view.put_alerts(batch) == await memory.put_alerts(batch)
    for known in (view, memory):
        await known.mark_gone(["b"])
        assert await known.gone(["a", "b"]) == {"b"}
    assert await view.alerts_of(["a", "b"]) == await memory.alerts_of(["a", "b"])


async def test_a_closed_account_takes_the_alerts_of_all_its_posts_along(view):
    memory, posts = (
        MemoryAlerts(),
        [alert_for("bsky:did:plc:x/1"), alert_for("bsky:did:plc:x/2"), alert_for("bsky:y/1")],
    )
    for known in (view, memory):
        await known.put_alerts(posts)
        assert {a.post.id for a in await known.alerts_of(["bsky:did:plc:x"])} == {p.post.id for p in posts[:2]}
        await known.mark_gone(["bsky:did:plc:x"])
        assert await known.gone([p.post.id for p in posts] + ["bsky:did:plc:x/9"]) == {
            "bsky:did:plc:x/1",
            "bsky:did:plc:x/2",
            "bsky:did:plc:x/9",
        }


@pytest.mark.parametrize("deleted", ["bsky:did:plc:x/1", "bsky:did:plc:x"], ids=["the post", "its account"])
async def test_a_deletion_in_the_batch_of_the_post_itself_withdraws_its_alert(view, deleted):
    given = [alert_for("bsky:did:plc:x/1"), alert_for("bsky:did:plc:y/1")]  # published, but not yet in the view
    gone = MatchedFrame(
        Origin(0, 9), [], deletions=[Deletion(deleted, 9000.0)], encoder_version="v1", dim=1, vectors=b""
    )
    (withdrawn,) = await with_withdrawals(gone, [], WithBatch(view, given))
    assert (withdrawn.alert_id, withdrawn.status) == (given[0].alert_id, "withdrawn")


async def test_the_oldest_alerts_leave_the_list_when_there_are_too_many(view):
    await view.put_alerts([alert_for(f"p{n}", 1000.0 + n) for n in range(15)])
    assert [a.post.id for a in await view.recent_alerts()] == [f"p{n}" for n in range(14, 4, -1)]
    assert await view.redis.zcard(view.key("alerts")) == 10


FLOODS = {
    "one author": lambda n: {"author": "loud"},
    "one account": lambda n: {"post_id": f"bsky:loud/{n}"},
    "many authors, one cluster": lambda n: {"author": f"bot{n}", "cluster": "c9"},
    "many authors of another source": lambda n: {"author": f"bot{n}", "source": "loud"},
    "suggestions of many authors": lambda n: {"author": f"bot{n}", "level": "suggestion"},
    "another category": lambda n: {"author": f"bot{n}", "category": "money"},
}


@pytest.mark.parametrize("flood", FLOODS)
async def test_a_flood_pushes_out_itself_and_not_the_real_alerts_that_came_before(view, flood):
    real = [alert_for(f"real{n}", 1000.0 + n, author=f"a{n}") for n in range(4)]
    await view.put_alerts(real)
    for start in range(0, 100, 7):
        told = [{"post_id": f"f{n}", "seen_at": 2000.0 + n} | FLOODS[flood](n) for n in range(start, start + 7)]
        await view.put_alerts([alert_for(**one) for one in told])
    kept = [a.post.id for a in await view.recent_alerts()]
    assert kept[-4:] == ["real3", "real2", "real1", "real0"] and len(kept) == 10


async def test_who_gives_way_is_counted_as_alerts_are_moved_withdrawn_and_left_out(view):
    draw, told = random.Random(3), {}
    for n in range(300):
        again = draw.choice(list(told)) if told and draw.random() < 0.4 else None
        fields = {
            "author": draw.choice([None, "a", "b"]),
            "source": draw.choice(["sms", "web"]),
            "cluster": draw.choice([None, "c1", "c2"]),
        }
        post_id = again or f"{draw.choice(['x/', ''])}p{n}"
        alert = alert_for(post_id, 1000.0 + n, level=draw.choice(["alert", "suggestion"]), **fields)
        told[post_id] = msgspec.structs.replace(alert, revision=n + 1)
        if draw.random() < 0.2:
            told[post_id] = withdraw(told[post_id], Deletion(post_id, 0.0))
        await view.put_alerts([told[post_id]])
    listed = await view.recent_alerts()
    places = {
        k.decode(): v.decode().split("\x1f") for k, v in (await view.redis.hgetall(view.key("alert-places"))).items()
    }
    assert places == {a.alert_id: place_of(a) for a in listed} and len(listed) == 10
    assert not [key async for key in view.redis.scan_iter(match=view.key("alert*")) if await view.redis.ttl(key) < 0]


def place_of(alert):
    named = "x" if alert.post.id.startswith("x/") else ""
    return [f"{alert.level}/{alert.category}", alert.post.source, alert.cluster_id or "", alert.post.author or named]


async def test_a_full_list_makes_room_for_many_and_gives_way_as_the_board_does(view):
    draw, roomy = random.Random(5), LiveView(view.redis, Settings(redis={"recent_alerts": 320}))
    crowds, told = Crowds(), []
    for n in range(321):
        fields = {"author": f"a{draw.randrange(40)}", "source": draw.choice(["sms", "web"]), "cluster": f"c{n}"}
        told.append(alert_for(f"p{n}", 1000.0 + n, category=draw.choice(["water", "food"]), **fields))
        crowds.add(told[-1])
    await roomy.put_alerts(told)
    left = {a.alert_id: a for a in told}
    for _ in range(41):
        crowds.remove(left.pop(gone := crowds.next_to_go()))
    kept = {a.alert_id: a for a in await roomy.recent_alerts(1_000)}
    assert len(kept) == len(left) == 280 and gone not in left

    def sizes(alerts):
        rooms = Counter((a.category, a.post.source) for a in alerts.values())
        return rooms, Counter(Counter((a.category, a.post.source, a.post.author) for a in alerts.values()).values())

    assert sizes(kept) == sizes(left)  # of crowds of one size another one may have given way


async def test_alerts_that_an_earlier_version_listed_are_a_crowd_of_their_own_beside_the_new_ones(view):
    old, new = ([alert_for(f"{name}{n}", 1000.0 + n) for n in range(8)] for name in ("old", "new"))
    await view.put_alerts(old)
    async for key in view.redis.scan_iter(match=view.key("alert-*")):
        await view.redis.delete(key)  # as it was
    await view.put_alerts(new)
    kept = {a.post.id for a in await view.recent_alerts()}
    assert kept == {f"new{n}" for n in range(3, 8)} | {f"old{n}" for n in range(3, 8)}


async def test_a_post_deleted_after_any_number_of_newer_alerts_is_withdrawn_and_a_late_cluster_told(view):
    told = []
    for known in (view, MemoryAlerts()):
        for n in range(0, 2_100, 100):
            await known.put_alerts([alert_for(f"p{k}", 1000.0 + k) for k in range(n, n + 100)])
        (placed,) = await known.put_alerts(await place_alerts({"p1": "c1"}, known))
        gone = MatchedFrame(
            Origin(0, 9), [], deletions=[Deletion("p0", 9000.0)], encoder_version="v1", dim=1, vectors=b""
        )
        (withdrawn,) = await known.put_alerts(await with_withdrawals(gone, [], known))
        assert (placed.post.id, placed.cluster_id) == ("p1", "c1")
        assert (withdrawn.post.id, withdrawn.status) == ("p0", "withdrawn")
        assert await known.put_alerts([alert_for("p0")]) == []  # read again: it stays withdrawn
        told.append((placed, withdrawn, *await known.alerts_of(["p0", "p1", "p2"])))
    assert told[0] == told[1]
    assert [a.post.id for a in await view.recent_alerts()] == [f"p{n}" for n in range(2_099, 2_089, -1)]


async def test_an_alert_is_kept_as_long_as_on_the_broker_while_it_is_listed_and_for_the_fold_window_after(view):
    listed, unlisted = (alert_for(f"p{n}", 1000.0 + n) for n in (20, 1))
    await view.put_alerts([unlisted, *(alert_for(f"p{n}", 1000.0 + n) for n in range(10, 20)), listed])
    await view.put_alerts([place_in_cluster(unlisted, "c1")])
    ttls = [await view.redis.ttl(view.key(f"alert:{a.alert_id}")) for a in (listed, unlisted)]
    assert ttls == [pytest.approx(72 * 3600, abs=3600), pytest.approx(24 * 3600, abs=3600)]


async def test_an_account_that_alerts_for_ever_is_indexed_by_its_last_fold_window_only(view):
    for day in range(5):
        await view.put_alerts([alert_for(f"bsky:x/{day}", 86_400.0 * (day + 1))])
    assert [a.post.id for a in await view.recent_alerts()] == [f"bsky:x/{day}" for day in (4, 3, 2, 1, 0)]
    assert {a.post.id for a in await view.alerts_of(["bsky:x"])} == {"bsky:x/4"}


async def test_an_alert_asked_for_by_its_post_and_its_account_is_told_once(view):
    for known in (view, MemoryAlerts()):
        await known.put_alerts([alert_for("bsky:x/1")])
        assert len(await known.alerts_of(["bsky:x", "bsky:x/1"])) == 1


async def test_live_readers_hear_of_new_alerts_and_only_of_new_ones(view):
    async with view.redis.pubsub() as pubsub:
        await pubsub.subscribe(view.key("live"))
        await pubsub.get_message(timeout=PATIENCE_S)  # the subscription itself
        alert = alert_for()
        await view.put_alerts([alert])
        await view.put_alerts([alert])
        await view.put_alerts([alert_for("p2")])
        heard = [await pubsub.get_message(ignore_subscribe_messages=True, timeout=PATIENCE_S) for _ in range(2)]
        assert [json.loads(m["data"])["alert"]["post"]["id"] for m in heard] == ["p1", "p2"]


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


async def test_repeats_are_counted_with_their_original(view):
    await view.repeat([Repeat("r1", "p1", 0.0), Repeat("r2", "p1", 0.0)])
    assert await view.repeats_of(["p1", "p2"]) == [2, 0]


async def test_hostile_text_reaches_live_readers_as_data(view):
    alert = alert_for()
    nasty = msgspec.structs.replace(alert.post, text='"}},"x":{"</script><script>alert(1)</script>\u2028')
    await view.put_alerts([msgspec.structs.replace(alert, post=nasty)])
    assert (await view.recent_alerts())[0].post.text == nasty.text


async def test_two_writers_at_once_keep_the_newest_revision(view):
    versions = [msgspec.structs.replace(alert_for(), revision=n) for n in range(50)]
    await asyncio.gather(*(view.put_alerts([v]) for v in reversed(versions)))
    assert (await view.recent_alerts())[0].revision == 49


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
