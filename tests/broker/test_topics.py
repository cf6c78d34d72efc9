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
from streams.broker.topics import TOPICS, kept_otherwise, make_topics, topic_configs
from streams.commands.doctor import check_topics
from streams.commands.forget import on_the_broker_s
from streams.commands.topics import topics
from streams.config import Settings, load_settings
from streams.releases.topic import read_release
from streams.worker.runtime import Runtime
from tests.outputs.topics import fresh_prefix
from tests.waiting import wait_until


@pytest.fixture
def settings(broker) -> Settings:
    return load_settings(broker={"bootstrap": broker}, topics={"prefix": fresh_prefix(), "partitions": 2})


def ours(settings: Settings) -> set[str]:
    """The topics with our prefix that are there."""
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=settings.broker.bootstrap)) as admin:
        return {name for name in admin.list_topics() if name.startswith(settings.topics.prefix)}


def setting(settings: Settings, topic: str, key: str) -> str:
    """One setting of a topic, by the broker's word."""
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=settings.broker.bootstrap)) as admin:
        name = settings.topics.name(topic)
        told = admin.describe_configs([ConfigResource("TOPIC", name, configs=[key])], config_filter="all")
        return told["topic"][name][key]["value"]


def change(settings: Settings, keys: dict[str, str], *topics: str) -> None:
    """As the operator would with kafka-configs.sh; returns once the broker says so too."""
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=settings.broker.bootstrap)) as admin:
        admin.alter_configs([ConfigResource("TOPIC", settings.topics.name(topic), configs=keys) for topic in topics])
    wait_until(lambda: all(setting(settings, t, key) == value for t in topics for key, value in keys.items()))


def partitions(settings: Settings) -> dict[str, int]:
    """Of each of our topics."""
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=settings.broker.bootstrap)) as admin:
        told = admin.describe_topics(sorted(ours(settings)))
    return {t["name"].removeprefix(settings.topics.prefix): len(t["partitions"]) for t in told}


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
                name("alerts"): {"num_partitions": 1, "replication_factor": 1},
                name("labels"): {"num_partitions": 1, "replication_factor": 1},
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
    assert setting(settings, "posts.raw", "retention.ms") == kept["retention.ms"]
    for topic in ("alerts", "labels"):  # deploy/privacy.md: what was taken back goes within the hour
        assert setting(settings, topic, "max.compaction.lag.ms") == "3600000"
    assert "mended" not in CliRunner().invoke(topics, obj=settings, catch_exceptions=False).output


def with_topics(settings: Settings, **changes: object) -> Settings:
    return settings.model_copy(update={"topics": settings.topics.model_copy(update=changes)})


def test_topics_that_keep_records_otherwise_than_the_settings_say_are_told_and_left(apache_kafka):
    made = load_settings(broker={"bootstrap": apache_kafka}, topics={"prefix": fresh_prefix(), "partitions": 2})
    make_topics(made)
    assert not kept_otherwise(made)
    settings = with_topics(made, retention_h=24.0)
    said = CliRunner().invoke(topics, obj=settings, catch_exceptions=False).output
    found = check_topics(settings)
    for told in (said, found.found):
        assert (
            f"(24 h): {made.topics.name('alerts')}, " in told and f"{made.topics.name('posts.waiting')}: 72 h" in told
        )
        assert "--add-config retention.ms=86400000" in told
    assert found.ok and setting(settings, "posts.raw", "retention.ms") == str(72 * 3_600_000)
    change(settings, {"retention.ms": "86400000"}, *[t for t in TOPICS if t not in ("queries", "encoders", "labels")])
    assert not kept_otherwise(settings) and "keep" not in check_topics(settings).found


def test_what_a_receipt_promises_is_what_the_broker_keeps(apache_kafka):
    made = load_settings(broker={"bootstrap": apache_kafka}, topics={"prefix": fresh_prefix(), "partitions": 2})
    make_topics(made)
    settings = with_topics(made, retention_h=24.0)
    assert on_the_broker_s(settings) == on_the_broker_s(made) == (73 * 3600, 2 * 3600)
    change(settings, {"segment.ms": "18000000"}, "posts.rejected")  # five hours
    assert on_the_broker_s(settings) == (77 * 3600, 2 * 3600)
    change(settings, {"retention.ms": "-1"}, "posts.waiting")
    change(settings, {"max.compaction.lag.ms": str(2**63 - 1)}, "clusters")
    assert on_the_broker_s(settings) == (None, None)
    assert "posts.waiting: for ever" in kept_otherwise(settings)


def test_more_partitions_than_posts_raw_has_are_the_operators_to_give_and_the_doctor_says_how(apache_kafka):
    made = load_settings(broker={"bootstrap": apache_kafka}, topics={"prefix": fresh_prefix(), "partitions": 2})
    make_topics(made)
    settings, before = with_topics(made, partitions=4), partitions(made)
    CliRunner().invoke(topics, obj=settings, catch_exceptions=False)
    # Where a post waits goes by the settings; the others have a frame's partition in posts.raw, or are nobody's concern
    wait_until(lambda: partitions(settings) == before | {"posts.waiting": 12})
    raw = made.topics.name("posts.raw")
    found = check_topics(settings)
    assert check_topics(made).ok, "what waits may have more partitions than it needs"
    assert not found.ok and f"kafka-topics.sh --alter --topic {raw} --partitions 4" in found.fix
    assert "delete" not in found.fix and "CRISIS_TOPICS__PARTITIONS to 2" in found.fix
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=apache_kafka)) as admin:
        admin.create_partitions({raw: 4})
    wait_until(lambda: partitions(settings)["posts.raw"] == 4)
    assert check_topics(settings).fix == "run `crisis topics`: it adds them"
    CliRunner().invoke(topics, obj=settings, catch_exceptions=False)
    widened = dict.fromkeys(("posts.raw", "posts.clean", "posts.embedded"), 4) | {"posts.waiting": 12}
    wait_until(lambda: partitions(settings) == before | widened)
    assert check_topics(settings).ok
    assert "CRISIS_TOPICS__PARTITIONS to 4" in check_topics(made).fix
