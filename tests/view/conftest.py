"""A live view in a Redis of the test's own."""

import pytest
from redis.asyncio import Redis

from streams.config import Settings
from streams.view.live import LiveView


@pytest.fixture
async def view(redis_url):
    redis = Redis.from_url(redis_url)
    yield LiveView(redis, Settings(redis={"url": redis_url, "recent_alerts": 10}))
    await redis.aclose()
