"""Offsets of a topic that was deleted are told from those of the one that has its name now."""

from redis.asyncio import Redis

from streams.config import load_settings
from streams.view.live import LiveView
from streams.view.offsets_of import OffsetsOf

FIRST, SECOND = ("posts.clean", 0), ("posts.clean", 1)


async def test_partitions_last_read_of_another_topic_are_told_until_they_are_noted_as_of_this_one(redis_url):
    settings, redis = load_settings(), Redis.from_url(redis_url)
    offsets = OffsetsOf(redis, settings)
    assert await offsets.others({FIRST: "old"}) == set(), "never read before is no other topic"
    await offsets.note({FIRST: "old", SECOND: "old"})
    assert await offsets.others({FIRST: "old", SECOND: "new"}) == {SECOND}
    await OffsetsOf(redis, settings).note({SECOND: "new"})
    assert await offsets.others({FIRST: "new", SECOND: "new"}) == {FIRST}
    assert 0 < await redis.ttl("crisis:offsets-of") <= settings.topics.retention_h * 3600
    await LiveView(redis, settings).clear()
    assert await offsets.others({FIRST: "new"}) == {FIRST}, "who starts over has new topics, and maybe old offsets"
    await redis.aclose()
