"""What a Redis that is away, and one that refuses, is called."""

import pytest
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, OutOfMemoryError

from models.errors import ServiceError
from streams.config import load_settings
from streams.view.connect import connect, reaching_redis


async def test_a_redis_that_answers_with_a_refusal_is_not_called_missing(redis_url):
    settings = load_settings(redis={"url": redis_url}).redis
    async with connect(settings) as redis:
        with pytest.raises(ServiceError, match="refuses what it is asked .*expire") as told, reaching_redis(settings):
            await redis.set("key", "value", ex=10**18)
    assert redis_url.partition("://")[2] in str(told.value) and "no Redis" not in str(told.value)


@pytest.mark.parametrize(
    "refusal, points",
    [
        (NoPermissionError("this user has no permissions to run the 'set' command"), True),
        (OutOfMemoryError("command not allowed when used memory > 'maxmemory'."), False),
    ],
)
def test_what_a_redis_refuses_points_to_its_users_where_one_may_not(refusal, points):
    with pytest.raises(ServiceError, match="refuses what it is asked") as told, reaching_redis(load_settings().redis):
        raise refusal
    assert ("deploy/security.md" in str(told.value)) is points


async def test_a_redis_that_is_away_is_called_missing_with_the_way_out():
    settings = load_settings(redis={"url": "redis://:hunter2@127.0.0.1:1/0"}).redis
    with pytest.raises(ServiceError, match="no Redis at 127.0.0.1:1/0 .*CRISIS_REDIS__URL") as told:
        with reaching_redis(settings):
            async with Redis.from_url(settings.url) as redis:
                await redis.ping()
    assert "hunter2" not in str(told.value)
