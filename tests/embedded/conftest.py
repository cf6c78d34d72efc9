"""Topics of their own for the broker suite, and an administrator."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator

import pytest
from kafka.admin import KafkaAdminClient


@pytest.fixture(scope="session")
def admin(broker: str) -> Iterator[KafkaAdminClient]:
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=broker)) as client:
        yield client


@pytest.fixture
def name() -> str:
    """For a topic or a group that no other test knows."""
    return f"t-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def make_topic(admin: KafkaAdminClient) -> Callable[..., str]:
    """make_topic(partitions, **settings with _ for .) → the name of a new topic, ready to use."""

    def make(partitions: int = 1, **config: object) -> str:
        topic = f"t-{uuid.uuid4().hex[:10]}"
        configs = {key.replace("_", "."): str(value) for key, value in config.items()}
        admin.create_topics(
            {topic: {"num_partitions": partitions, "replication_factor": 1, "configs": configs}}, wait_for_metadata=True
        )
        return topic

    return make


@pytest.fixture
def topic(make_topic: Callable[..., str]) -> str:
    """A topic with one partition."""
    return make_topic()
