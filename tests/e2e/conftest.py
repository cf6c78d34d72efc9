"""The end-to-end tests run against Apache Kafka, once, and Debian's Redis.

The embedded broker is held to Apache Kafka by tests/embedded, one suite on both, and carries `crisis demo`
(test_demo.py): running every pipeline on it too would show the same again.
"""

import pytest
import pytest_asyncio

from tests.conftest import needed
from tests.e2e.harness import pipeline
from tests.services.redis import running_redis


@pytest.fixture
def start(live_broker, redis_url, tmp_path):
    """start(partitions=…) → a Pipeline as an async context."""
    return lambda **options: pipeline(live_broker, redis_url, tmp_path / "logs", **options)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one_worker(live_broker, tmp_path_factory):
    """A pipeline of one partition with a worker, for a module of tests that are each about posts of their own."""
    with needed(running_redis()) as url:  # not the one that is emptied between tests
        async with pipeline(live_broker, url, tmp_path_factory.mktemp("logs"), partitions=1) as live:
            await live.start_worker()
            yield live


@pytest_asyncio.fixture(loop_scope="module")
async def live(one_worker):
    """It, where only what this test sends is counted and read."""
    await one_worker.anew()
    return one_worker
