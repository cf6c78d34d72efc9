"""What is still held of a post is found whatever index names it, or none."""

import pytest

from models.records import Deletion, MatchedFrame, Origin
from streams.config import Settings
from streams.pipeline.stages import with_withdrawals
from streams.view.holdings import Holdings
from tests.view.samples import alert_for

pytestmark = pytest.mark.redis


async def test_an_alert_that_no_index_names_any_more_is_held_all_the_same(view):
    alert = alert_for("bsky:x/1")
    await view.put_alerts([alert, alert_for("bsky:y/1")])
    holdings = Holdings(view.redis, Settings())
    assert (await holdings.of(["bsky:x/1"]))["alerts"] == (await holdings.by_name(["bsky:x/1"]))["alerts"] == 1
    async for key in view.redis.scan_iter(match=view.key("alerts-of:*")):
        await view.redis.delete(key)
    assert (await holdings.by_name(["bsky:x/1"]))["alerts"] == 0
    assert (await holdings.of(["bsky:x/1"]))["alerts"] == 1
    assert (await holdings.of(["bsky:x/2"]))["alerts"] == (await holdings.of([]))["alerts"] == 0
    assert await holdings.posts_under(["bsky:x"]) == ["bsky:x/1"]


async def test_more_alerts_than_are_looked_through_at_once_are_all_looked_through(view):
    alerts = [alert_for(f"bsky:a{n}/1", author=f"a{n}") for n in range(1_100)]
    await view.put_alerts(alerts)
    posts = [alert.post.id for alert in alerts]
    assert (await Holdings(view.redis, Settings()).of(posts))["alerts"] == 1_100


async def test_a_withdrawn_alert_holds_nothing(view):
    alert = alert_for("bsky:x/1")
    await view.put_alerts([alert])
    deleted = [Deletion("bsky:x/1", 9e8)]
    frame = MatchedFrame(Origin(0, 9), [], deletions=deleted, encoder_version="v1", dim=1, vectors=b"")
    await view.put_alerts(await with_withdrawals(frame, [], view))
    assert (await Holdings(view.redis, Settings()).of(["bsky:x/1"]))["alerts"] == 0


async def test_what_somebody_judged_is_held_until_the_broker_has_dropped_it(view):
    judged = ["bsky:x/1", "bsky:x/2", "bsky:y/1"]
    holdings = Holdings(view.redis, Settings(), labelled=lambda: judged)
    assert (await holdings.of(["bsky:x/1", "bsky:x/9"]))["labels"] == 1
    assert await holdings.posts_under(["bsky:x"]) == ["bsky:x/1", "bsky:x/2"]


async def test_a_prefix_with_signs_of_a_pattern_is_taken_as_it_is(view):
    settings = Settings(redis={"prefix": "a*[b]?:"})
    other = type(view)(view.redis, settings)
    await other.put_alerts([alert_for("bsky:x/1")])
    await view.put_alerts([alert_for("bsky:x/2")])
    held = await Holdings(view.redis, settings).of(["bsky:x/1", "bsky:x/2"])
    assert held["alerts"] == 1
