"""What is put into a view again: nothing that was deleted, nothing for longer than it would have been kept."""

from __future__ import annotations

import time

import msgspec
import pytest

from models.alerts import withdraw
from models.moments import rfc3339
from models.records import ClusterEvent, Deletion, Example
from streams.config import Settings
from streams.view.restoring import Restoring, lacks
from tests.view.samples import alert_for

WORDS = "we need water"
HOURS = 3600.0


@pytest.fixture
def settings(view):
    return Settings(redis={"url": "redis://unused"})


def cluster(cluster_id, event="grow", version=3, post_id="p1", at=None):
    shown = Example(post_id, WORDS, "en")
    first = rfc3339(at or time.time())
    return ClusterEvent(event, cluster_id, version, 5, 4.0, first, first, "water", "v1", medoid=shown)


async def keys_holding(view, word):
    found = []
    async for key in view.redis.scan_iter():
        if await view.redis.type(key) == b"string" and word.encode() in await view.redis.get(key):
            found.append(key)
    return found


async def test_an_alert_is_put_and_expires_when_it_would_have(view, settings):
    now = time.time()
    old, new, over = (alert_for(name, now) for name in ("~a/old", "~a/new", "~a/over"))
    written = [(old, now - 70 * HOURS), (new, now), (over, now - 73 * HOURS)]
    put, withdrawn = await Restoring(view, settings, None).alerts(written)
    assert (put, withdrawn) == ([old, new], [])
    assert await view.alerts_of(["~a"]) == sorted([old, new], key=lambda alert: alert.alert_id)
    assert {a.post.id for a in await view.recent_alerts()} == {"~a/old", "~a/new"}
    left_s = {a.post.id: await view.redis.ttl(view.key(f"alert:{a.alert_id}")) for a in (old, new)}
    assert 2 * HOURS - 60 < left_s["~a/old"] <= 2 * HOURS and 72 * HOURS - 60 < left_s["~a/new"] <= 72 * HOURS


async def test_what_the_view_has_as_new_or_newer_stays(view, settings):
    now = time.time()
    alert = alert_for("p1", now)
    newer = msgspec.structs.replace(alert, revision=alert.revision + 2, cluster_id="c1")
    await view.put_alerts([newer])
    for one in (alert, newer):
        assert await Restoring(view, settings, None).alerts([(one, now - 70 * HOURS)]) == ([], [])
    assert await view.alerts_of(["p1"]) == [newer]
    assert await view.redis.ttl(view.key(f"alert:{alert.alert_id}")) > 71 * HOURS


@pytest.mark.parametrize("marked", ["~a", "~a/1"], ids=["its account", "the post"])
async def test_a_post_that_was_deleted_since_the_loss_is_withdrawn_and_its_words_are_never_put(view, settings, marked):
    now = time.time()
    await view.mark_gone([marked])
    alert = alert_for("~a/1", now, text="at the red house")
    put, withdrawn = await Restoring(view, settings, None).alerts([(alert, now)])
    assert put == [] and await keys_holding(view, "red house") == []
    (due,) = withdrawn
    assert (due.status, due.withdrawn_because, due.post.text) == ("withdrawn", "deleted", "")
    assert due.alert_id == alert.alert_id and due.revision > alert.revision


async def test_a_deletion_that_looks_for_alerts_just_before_they_are_put_is_found_after(view, settings):
    now, really = time.time(), view.put_alerts

    async def put_too_late(alerts):
        await view.mark_gone(["~a/1"])
        assert await view.alerts_of(["~a/1"]) == []  # as the matcher asks: there is nothing to withdraw yet
        return await really(alerts)

    view.put_alerts = put_too_late
    alert = alert_for("~a/1", now)
    put, (due,) = await Restoring(view, settings, None).alerts([(alert, now)])
    assert put == [alert] and due.status == "withdrawn" and due.revision > alert.revision


async def test_a_withdrawn_alert_stays_withdrawn_and_its_post_is_known_as_gone_again(view, settings):
    now = time.time()
    deleted, edited = alert_for("~a/1", now), alert_for("~b/1", now)
    gone = withdraw(deleted, Deletion("~a/1", now))
    other = msgspec.structs.replace(edited, status="withdrawn", withdrawn_because="edited")
    put, withdrawn = await Restoring(view, settings, None).alerts([(gone, now), (other, now)])
    assert (put, withdrawn) == ([gone, other], [])
    assert await view.gone(["~a/1", "~a/2", "~b/1"]) == {"~a/1"}


async def test_clusters_that_nobody_goes_on_with_and_those_that_show_what_was_deleted_are_left_out(view, settings):
    now = time.time()
    lives, orphan, shows = cluster("lives"), cluster("orphan"), cluster("shows", post_id="~a/1")
    await view.mark_gone(["~a/1"])
    written = [(event, now) for event in (lives, orphan, shows)]
    assert await Restoring(view, settings, {"lives", "shows"}).clusters(written) == ([lives], 2)
    assert await view.clusters() == [lives]
    assert await Restoring(view, settings, {"lives"}).clusters([(lives, now)]) == ([], 0)
    assert await Restoring(view, settings, None).clusters(written) == ([orphan], 1)


async def test_a_merged_or_expired_cluster_comes_back_by_no_late_word(view, settings):
    now = time.time()
    ended = cluster("c1", "expire", version=9)
    assert await Restoring(view, settings, set()).clusters([(ended, now)]) == ([ended], 0)
    await view.put_clusters([cluster("c1", version=8)])
    assert await view.clusters() == []


async def test_who_goes_on_with_clusters_is_told_by_the_saved_state(view, settings):
    now, key = time.time(), view.key("snapshot-parts")
    mine, other = (cluster("mine"), now), (cluster("other"), now)
    await view.redis.hset(key, "owner", "a worker that has loaded nothing, and saved nothing yet")
    assert await (await Restoring.into(view, settings)).clusters([mine, other]) == ([], 2)
    await view.redis.hset(key, mapping={"cluster/mine": b"1", "examples/mine": b"2", "save": b"3"})
    assert await (await Restoring.into(view, settings)).clusters([mine, other]) == ([mine[0]], 1)
    await view.redis.delete(key)  # lost, and the worker that still holds it all has not saved it anew
    assert await (await Restoring.into(view, settings)).clusters([mine, other]) == ([other[0]], 0)


async def test_a_view_lacks_what_it_does_not_hold(view):
    alert = alert_for("p1", time.time())
    assert await lacks(view, [alert.alert_id]) and not await lacks(view, [])
    await view.put_alerts([alert])
    assert not await lacks(view, [alert.alert_id, alert.alert_id])
    assert await lacks(view, [alert.alert_id, "another"])
