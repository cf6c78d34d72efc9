"""The end-to-end tests run against both brokers, and Debian's Redis."""

import pytest

from tests.e2e.harness import pipeline


@pytest.fixture
def start(broker, redis_url, tmp_path):
    """start(partitions=…) → a Pipeline as an async context."""
    return lambda **options: pipeline(broker, redis_url, tmp_path / "logs", **options)
