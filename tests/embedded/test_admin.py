"""What administrators do to topics and groups: the same on both brokers."""

import contextlib

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition, errors
from kafka.admin import OffsetSpec
from kafka.protocol.metadata import ApiVersionsRequest
from kafka.structs import OffsetAndMetadata

from streams.embedded.wire import SERVED
from tests.embedded.wire import Wire


@pytest.fixture
def filled(broker, topic):
    """A topic with ten records."""
    with contextlib.closing(KafkaProducer(bootstrap_servers=broker)) as producer:
        for i in range(10):
            producer.send(topic, b"%d" % i)
        producer.flush()
    return topic


def test_a_topic_has_the_partitions_it_was_made_with(admin, make_topic):
    topic = make_topic(5)
    partitions = admin.describe_topics([topic])[0]["partitions"]
    assert sorted(p["partition_index"] for p in partitions) == [0, 1, 2, 3, 4]
    assert all(p["leader_id"] == p["replica_nodes"][0] for p in partitions)
    assert topic in admin.list_topics()


@pytest.mark.parametrize(
    ("partitions", "replicas", "configs", "error"),
    [
        (0, 1, {}, errors.InvalidPartitionsError),
        (1, 1, {"no.such.setting": "1"}, errors.InvalidConfigurationError),
        (1, 1, {"cleanup.policy": "forget"}, errors.InvalidConfigurationError),
        (1, 1, {"retention.bytes": "many"}, errors.InvalidConfigurationError),
    ],
)
def test_a_topic_that_cannot_be_is_refused_with_the_reason(admin, name, partitions, replicas, configs, error):
    with pytest.raises(error):
        admin.create_topics({name: {"num_partitions": partitions, "replication_factor": replicas, "configs": configs}})
    assert name not in admin.list_topics()


@pytest.mark.parametrize("bad", ["", ".", "..", "a b", "ä", "x" * 250])
def test_names_that_are_no_topic_names_are_refused(admin, bad):
    with pytest.raises(errors.InvalidTopicError):
        admin.create_topics({bad: {"num_partitions": 1, "replication_factor": 1}})


def test_a_topic_exists_once(admin, topic):
    with pytest.raises(errors.TopicAlreadyExistsError):
        admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 1}})


def test_a_deleted_topic_is_gone_with_its_records(admin, filled):
    admin.delete_topics([filled])
    assert filled not in admin.list_topics()
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        admin.delete_topics([filled])
    admin.create_topics({filled: {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
    at = TopicPartition(filled, 0)
    assert admin.list_partition_offsets({at: OffsetSpec.LATEST})[at].offset == 0


def test_a_group_shows_its_members_offsets_and_lag(admin, broker, filled, name):
    with contextlib.closing(
        KafkaConsumer(
            filled,
            bootstrap_servers=broker,
            group_id=name,
            auto_offset_reset="earliest",
            client_id="reader",
            enable_auto_commit=False,
            max_poll_records=4,
        )
    ) as consumer:
        while not (found := consumer.poll(timeout_ms=500)):
            pass
        assert sum(map(len, found.values())) == 4
        consumer.commit()
        group = admin.describe_groups([name])[name]
        assert group["group_state"] == "Stable"
        assert [m["client_id"] for m in group["members"]] == ["reader"]
        assigned = group["members"][0]["member_assignment"]["assigned_partitions"]
        assert assigned == [{"topic": filled, "partitions": [0]}]
        assert name in {g["group_id"] for g in admin.list_groups()}
    at = TopicPartition(filled, 0)
    committed = admin.list_group_offsets({name: None})[name]
    assert committed[at].offset == 4
    assert admin.list_partition_offsets({at: OffsetSpec.LATEST})[at].offset - committed[at].offset == 6  # the lag
    assert admin.describe_groups([name])[name]["group_state"] == "Empty"


def test_an_administrator_moves_an_idle_groups_offsets(admin, broker, filled, name):
    at = TopicPartition(filled, 0)
    admin.alter_group_offsets(name, {at: OffsetAndMetadata(7, "moved", -1)})
    assert admin.list_group_offsets({name: [at]})[name][at][:2] == (7, "moved")
    with contextlib.closing(
        KafkaConsumer(filled, bootstrap_servers=broker, group_id=name, auto_offset_reset="earliest")
    ) as consumer:
        assert next(consumer).offset == 7


def test_a_group_nobody_knows_is_dead(admin, name):
    assert admin.describe_groups([name])[name]["group_state"] == "Dead"


def test_the_cluster_is_one_node_that_controls_itself(admin, broker):
    cluster = admin.describe_cluster()
    assert [node["port"] for node in cluster["brokers"]] == [int(broker.split(":")[1])]
    assert cluster["controller_id"] == cluster["brokers"][0]["broker_id"]


@pytest.mark.kafka
async def test_every_version_the_embedded_broker_speaks_is_one_that_apache_speaks(apache_kafka):
    async with Wire(apache_kafka) as wire:
        answer = await wire.ask(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3)
    apache = {a.api_key: range(a.min_version, a.max_version + 1) for a in answer.api_keys}
    for key, (request, versions) in SERVED.items():
        assert set(versions) <= set(apache[key]), request
