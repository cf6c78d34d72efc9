"""Alerts in Redis: the newest revision counts, a flood gives way to itself, what was deleted is withdrawn."""

import asyncio
import random
from collections import Counter

import msgspec
import pytest

from models.alerts import crowd_of, place_in_cluster, withdraw
from models.moments import epoch_s, rfc3339
from models.records import Alert, ClusterEvent, Deletion, MatchedFrame, Origin, account_of
from streams.config import Settings
from streams.dashboard.crowds import Crowds
from streams.pipeline.clusters import place_alerts
from streams.pipeline.memory import MemoryAlerts
from streams.pipeline.stages import with_withdrawals
from streams.view.live import LiveView
from streams.worker.match import WithBatch
from tests.view.samples import alert_for

pytestmark = pytest.mark.redis
FLOODS = {
    "one author": lambda n: {"author": "loud"},
    "one account": lambda n: {"post_id": f"bsky:loud/{n}"},
    "many authors, one text": lambda n: {"author": f"bot{n}", "text": f"Free hay for everybody, call number {n}!"},
    "many authors, one cluster": lambda n: {"author": f"bot{n}", "cluster": "c9"},
    "many authors of another source": lambda n: {"author": f"bot{n}", "source": "loud"},
    "suggestions of many authors": lambda n: {"author": f"bot{n}", "level": "suggestion"},
    "many authors, the cluster of a real one": lambda n: {"author": f"bot{n}", "cluster": "c3"},
    "another category": lambda n: {"author": f"bot{n}", "category": "money"},
}


def place_of(alert):
    named = "x" if alert.post.id.startswith("x/") else ""
    return [f"{alert.level}/{alert.category}", alert.post.source, crowd_of(alert), alert.post.author or named]


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


@pytest.mark.parametrize("newer", ["given", "known"])
async def test_of_an_alert_in_the_view_and_in_the_batch_the_newer_counts(view, newer):
    """A batch that is read again is older than what the view knows of it."""
    alert = alert_for("p1")
    later = msgspec.structs.replace(alert, revision=alert.revision + 1, cluster_id="c1")
    known, given = (later, alert) if newer == "known" else (alert, later)
    await view.put_alerts([known])
    assert await WithBatch(view, [given]).alerts_of(["p1"]) == [later]


async def test_the_oldest_alerts_leave_the_list_when_there_are_too_many(view):
    await view.put_alerts([alert_for(f"p{n}", 1000.0 + n) for n in range(15)])
    assert [a.post.id for a in await view.recent_alerts()] == [f"p{n}" for n in range(14, 4, -1)]
    assert await view.redis.zcard(view.key("alerts")) == 10


@pytest.mark.parametrize("flood", FLOODS)
async def test_a_flood_pushes_out_itself_and_not_the_real_alerts_that_came_before(view, flood):
    real = [alert_for(f"real{n}", 1000.0 + n, author=f"a{n}", cluster=f"c{n}") for n in range(4)]
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


async def test_a_full_list_makes_room_for_many_and_gives_way_as_the_board_does(view):
    draw, roomy = random.Random(5), LiveView(view.redis, Settings(redis={"recent_alerts": 320}))
    crowds, told = Crowds(), []
    for n in range(321):
        fields = {"author": f"a{draw.randrange(40)}", "source": draw.choice(["sms", "web"]), "cluster": f"c{n}"}
        told.append(alert_for(f"p{n}", 1000.0 + n, category=draw.choice(["water", "food"]), **fields))
        crowds.add(told[-1], n)
    await roomy.put_alerts(told)
    left, rank = {a.alert_id: a for a in told}, {a.alert_id: n for n, a in enumerate(told)}
    for _ in range(81):
        crowds.remove(left.pop(gone := crowds.next_to_go()), rank[gone])
    kept = {a.alert_id: a for a in await roomy.recent_alerts(1_000)}
    assert len(kept) == len(left) == 240 and gone not in left

    def sizes(alerts):
        rooms = Counter((a.category, a.post.source) for a in alerts.values())
        return rooms, Counter(Counter((a.category, a.post.source, a.post.author) for a in alerts.values()).values())

    assert sizes(kept) == sizes(left)  # of crowds of one size another one may have given way


async def test_of_many_rooms_the_fullest_give_way_down_to_one_size(view):
    draw, roomy = random.Random(8), LiveView(view.redis, Settings(redis={"recent_alerts": 320}))
    told = [alert_for(f"p{n}", 1000.0 + n, category=f"room{int(draw.expovariate(0.05))}") for n in range(321)]
    await roomy.put_alerts(told)
    left = Counter(alert.category for alert in told)
    for _ in range(81):
        left[max(left, key=left.__getitem__)] -= 1
    kept = Counter(alert.category for alert in await roomy.recent_alerts(1_000))
    assert len(kept) > 30 and sorted(kept.values()) == sorted((+left).values())


@pytest.mark.parametrize("merged", [False, True])  # some of it in a cluster that went into that one
async def test_of_a_flood_in_the_cluster_of_a_real_call_the_same_alerts_give_way_in_redis_as_on_the_board(view, merged):
    """Some of it by an account that says other things too."""
    roomy, crowds = LiveView(view.redis, Settings(redis={"recent_alerts": 320})), Crowds()
    told = [alert_for("call", 1000.0, author="victim", cluster="c-real")]
    told += [alert_for(f"other{n}", 1000.0 + n, author=f"a{n}", cluster=f"c{n}") for n in range(1, 100)]
    for n in range(100, 321):
        cluster = f"c{n}" if n % 10 == 0 else "c-gone" if merged and n % 3 else "c-real"
        told.append(alert_for(f"copy{n}", 1000.0 + n, author="loud" if n % 5 == 0 else f"bot{n}", cluster=cluster))
    await roomy.put_clusters([merge("c-older", "c-real"), merge("c-gone", "c-older")])
    await roomy.put_alerts(told)
    left = {}
    for n, alert in enumerate(told):
        now = place_in_cluster(alert, "c-real") if alert.cluster_id == "c-gone" else alert
        left[alert.alert_id] = n, now
        crowds.add(now, n)
    for _ in range(81):
        n, gone = left.pop(crowds.next_to_go())
        crowds.remove(gone, n)
    kept = {a.alert_id for a in await roomy.recent_alerts(1_000)}
    assert kept == set(left) and {a.alert_id for a in told[:100]} <= kept


def merge(gone, into):
    return ClusterEvent("merge", gone, 9, 1, 1.0, rfc3339(1000.0), rfc3339(1000.0), "x", "v1", into=into)


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


async def test_an_alert_and_all_that_finds_it_are_kept_as_long_as_on_the_broker_listed_or_not(view):
    listed, unlisted = (alert_for(f"bsky:x/{n}", 1000.0 + n) for n in (20, 15))  # of an account the first stay listed
    await view.put_alerts([*(alert_for(f"bsky:x/{n}", 1000.0 + n) for n in range(10, 20) if n != 15), unlisted, listed])
    await view.put_alerts([place_in_cluster(unlisted, "c1")])
    await view.put_alerts([withdraw(listed, Deletion(listed.post.id, 2000.0))])
    await view.mark_gone([listed.post.id])
    assert unlisted.alert_id not in {a.alert_id for a in await view.recent_alerts()}
    keys = [f"alert:{listed.alert_id}", f"alert:{unlisted.alert_id}", f"gone:{listed.post.id}", "alerts-of:bsky:x"]
    keys += [f"alerts-of:{alert.post.id}" for alert in (listed, unlisted)]
    ttls = [await view.redis.ttl(view.key(key)) for key in keys]
    assert ttls == [pytest.approx(72 * 3600, abs=3600)] * len(keys)


async def as_if_put_before(view, alert, hours):
    """Everything that Redis holds of an alert becomes so much older; the index of its account is one key for many."""
    of_post, of_account = (view.key(f"alerts-of:{owner}") for owner in (alert.post.id, account_of(alert.post.id)))
    for index in (of_post, of_account):
        await view.redis.zincrby(index, -hours * 3600, alert.alert_id)
    for key in (view.key(f"alert:{alert.alert_id}"), of_post):
        await view.redis.expire(key, round(await view.redis.ttl(key) - hours * 3600))


@pytest.mark.parametrize(("before_s", "anew"), [(30, False), (30 * 3600, True)])
async def test_what_finds_an_alert_is_written_anew_by_a_change_but_not_by_one_within_a_minute(view, before_s, anew):
    """As when its cluster is known, a moment after it was told."""
    alert = alert_for("bsky:x/1")
    await view.put_alerts([alert])
    await as_if_put_before(view, alert, before_s / 3600)
    index = view.key("alerts-of:bsky:x/1")
    noted_s = await view.redis.zscore(index, alert.alert_id)
    await view.put_alerts([place_in_cluster(alert, "c1")])
    assert (await view.redis.zscore(index, alert.alert_id) > noted_s) == anew
    ttls = [await view.redis.ttl(key) for key in (view.key(f"alert:{alert.alert_id}"), index)]
    assert ttls == [pytest.approx(72 * 3600, abs=60)] * 2
    assert [a.cluster_id for a in await view.alerts_of(["bsky:x/1"])] == ["c1"]


@pytest.mark.parametrize("deleted", ["bsky:x/1", "bsky:x"], ids=["the post", "its account"])
async def test_a_deletion_finds_an_alert_for_as_long_as_the_broker_keeps_it(view, deleted):
    late = alert_for("bsky:x/1", 1000.0)
    await view.put_alerts([late])
    await as_if_put_before(view, late, hours=71)
    await view.put_alerts([alert_for(f"bsky:x/{n}", 1000.0 + 3600 * 71) for n in range(2, 5)])
    gone = MatchedFrame(Origin(0, 9), [], deletions=[Deletion(deleted, 9e8)], encoder_version="v1", dim=1, vectors=b"")
    withdrawn = await view.put_alerts(await with_withdrawals(gone, [], view))
    assert late.alert_id in {a.alert_id for a in withdrawn} and {a.status for a in withdrawn} == {"withdrawn"}
    kept = [await view.redis.get(key) async for key in view.redis.scan_iter(match=view.key("alert:*"))]
    posts = [msgspec.json.decode(alert, type=Alert).post for alert in kept]
    assert [post.text for post in posts if deleted in (post.id, account_of(post.id))] == [""] * len(withdrawn)


async def test_an_account_that_alerts_for_ever_is_indexed_by_what_is_still_kept_of_it_only(view):
    """So its index is bounded as its alerts are: no entry stays longer than the alert it names."""
    told = [alert_for(f"bsky:x/{day}", 86_400.0 * (day + 1)) for day in range(6)]
    for alert in told:
        await view.put_alerts([alert])
    assert {a.post.id for a in await view.alerts_of(["bsky:x"])} == {a.post.id for a in told}
    for day, alert in enumerate(told[:-1]):
        await as_if_put_before(view, alert, hours=24 * (len(told) - 1 - day) - 1)
    await view.put_alerts([alert_for("bsky:x/9", 9e5)])
    indexed = await view.redis.zrange(view.key("alerts-of:bsky:x"), 0, -1)
    assert {i.decode() for i in indexed} == {alert_for(f"bsky:x/{n}").alert_id for n in (2, 3, 4, 5, 9)}
    held = {key.decode() async for key in view.redis.scan_iter(match=view.key("alert:*"))}
    assert held == {view.key(f"alert:{i.decode()}") for i in indexed}


async def test_the_list_of_a_slow_stream_names_nothing_that_is_no_longer_kept(view):
    old, new = alert_for("p1", 1000.0), alert_for("p2", 2000.0)
    await view.put_alerts([old])
    await view.redis.delete(view.key(f"alert:{old.alert_id}"))  # it expired
    await view.put_alerts([new])
    assert await view.redis.zrange(view.key("alerts"), 0, -1) == [new.alert_id.encode()]
    assert await view.redis.hkeys(view.key("alert-places")) == [new.alert_id.encode()]


async def test_an_alert_asked_for_by_its_post_and_its_account_is_told_once(view):
    for known in (view, MemoryAlerts()):
        await known.put_alerts([alert_for("bsky:x/1")])
        assert len(await known.alerts_of(["bsky:x", "bsky:x/1"])) == 1


async def test_two_writers_at_once_keep_the_newest_revision(view):
    versions = [msgspec.structs.replace(alert_for(), revision=n) for n in range(50)]
    await asyncio.gather(*(view.put_alerts([v]) for v in reversed(versions)))
    assert (await view.recent_alerts())[0].revision == 49
