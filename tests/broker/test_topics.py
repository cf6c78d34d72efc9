"""Topics are made by `crisis topics` alone, with the settings they need; brokers would make them on demand, with
others.
"""

from __future__ import annotations

import contextlib

import pytest
from click.testing import CliRunner
from kafka.admin import ConfigResource, KafkaAdminClient

from models.errors import ServiceError
from models.queries import load_queries
from streams.broker.queries import publish_queries, read_queries
from streams.broker.topics import make_topics, topic_configs
from streams.commands.doctor import check_topics
from streams.commands.topics import topics
from streams.config import Settings, load_settings
from streams.releases.topic import read_release
from streams.worker.runtime import Runtime
from tests.outputs.topics import fresh_prefix


@pytest.fixture
def settings(broker) -> Settings:
    return load_settings(broker={"bootstrap": broker}, topics={"prefix": fresh_prefix(), "partitions": 2})


def ours(settings: Settings) -> set[str]:
    """The topics with our prefix that are there."""
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=settings.broker.bootstrap)) as admin:
        return {name for name in admin.list_topics() if name.startswith(settings.topics.prefix)}


@pytest.mark.parametrize(
    "ask",
    [read_queries, read_release, lambda s: publish_queries(s, {load_queries()[0].id: None})],
    ids=["read the queries", "read the release", "publish a query"],
)
def test_a_command_that_comes_before_the_topics_is_refused_and_makes_none(settings, ask):
    with pytest.raises(ServiceError, match="no topic .* run `crisis topics`"):
        ask(settings)
    assert not ours(settings)


async def test_a_worker_that_comes_before_the_topics_does_not_start_and_makes_none(settings):
    runtime = Runtime(settings)
    with pytest.raises(ServiceError, match="no topic .*posts.raw.* run `crisis topics`"):
        await runtime.start()
    await runtime.stop()
    assert not ours(settings)


def test_topics_made_by_somebody_else_are_found_by_doctor_and_mended_by_crisis_topics(apache_kafka):
    settings = load_settings(broker={"bootstrap": apache_kafka}, topics={"prefix": fresh_prefix(), "partitions": 2})
    name, kept = settings.topics.name, {"retention.ms": "12345678"}
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=apache_kafka)) as admin:
        admin.create_topics(
            {
                name("queries"): {"num_partitions": 1, "replication_factor": 1},
                name("posts.raw"): {"num_partitions": 2, "replication_factor": 1, "configs": kept},
                name("posts.clean"): {"num_partitions": 1, "replication_factor": 1},  # as made on demand
            },
            wait_for_metadata=True,
        )
    make_topics(settings)
    found = check_topics(settings)
    assert not found.ok and "crisis topics" in found.fix
    assert f"{name('queries')} has cleanup.policy=delete" in found.found
    assert f"{name('posts.raw')} has message.timestamp.type=CreateTime" in found.found
    done = CliRunner().invoke(topics, obj=settings, catch_exceptions=False)
    assert f"mended the settings of {name('queries')}" in done.output
    assert f"gave {name('posts.clean')} the partitions it lacked" in done.output and done.output.count("gave ") == 1
    assert check_topics(settings).ok and ours(settings) == set(topic_configs(settings))
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=apache_kafka)) as admin:
        told = admin.describe_configs([ConfigResource("TOPIC", name("posts.raw"), configs=["retention.ms"])])
        assert told["topic"][name("posts.raw")]["retention.ms"]["value"] == kept["retention.ms"]
    assert "mended" not in CliRunner().invoke(topics, obj=settings, catch_exceptions=False).output
