"""The end-to-end tests run against Apache Kafka, once, and Debian's Redis.

The embedded broker is held to Apache Kafka by tests/embedded, one suite on both, and carries `crisis demo`
(test_demo.py): running every pipeline on it too would show the same again.
"""

import pytest

from tests.e2e.harness import pipeline


@pytest.fixture
def start(live_broker, redis_url, tmp_path):
    """start(partitions=…) → a Pipeline as an async context."""
    return lambda **options: pipeline(live_broker, redis_url, tmp_path / "logs", **options)
