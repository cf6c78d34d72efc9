"""The topics: which there are, how they are made, and mended where somebody else made them."""

from __future__ import annotations

from collections.abc import Iterable

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from kafka import errors
from kafka.admin import ConfigResource, KafkaAdminClient

from models.errors import ServiceError
from streams.broker.connect import admin, client_options
from streams.config import Settings
from streams.config.sections import TOPICS

__all__ = [
    "AGENTS",
    "INPUTS",
    "TURNS",
    "inputs_of",
    "make_topics",
    "mend_topics",
    "partitions_of",
    "require_topics",
    "topic_configs",
    "widen_topics",
    "wrong_configs",
]

AGENTS = ("normalise", "embed", "match", "cluster")
INPUTS = dict(zip(AGENTS, ("posts.raw", "posts.clean", "posts.embedded", "posts.matched"), strict=True))
COMPACTED = ("queries", "encoders", "labels")
LAST_STATES = ("alerts", "clusters")  # keyed: a later record of the same key replaces the earlier ones
TURNS = 3  # that a post may wait for (streams/pipeline/triage.py); each has partitions of its own
ONE_PARTITION = ("posts.matched", "clusters", "queries", "encoders", "labels")
WITH_RAW = ("posts.clean", "posts.waiting", "posts.embedded")  # a frame lies in the partition it had in posts.raw
MENDED = (
    "cleanup.policy",
    "message.timestamp.type",
    "segment.ms",
)  # not retention.ms: that is the operator's to change


def topic_configs(settings: Settings) -> dict[str, dict]:
    """Every topic with its partitions, replication and settings, by full name."""
    configs = {}
    for topic in TOPICS:
        if topic in COMPACTED:
            config = {"cleanup.policy": "compact"}
        else:
            retention_ms = int(settings.topics.retention_h * 3_600_000)
            # Only closed segments are deleted: with the broker's seven days for one, 72 hours can be ten days.
            segment_ms = max(60_000, min(3_600_000, retention_ms // 4))
            config = {"cleanup.policy": "delete", "retention.ms": str(retention_ms), "segment.ms": str(segment_ms)}
        if topic == "labels":  # what was taken back holds a text: it goes within the hour
            config |= {"max.compaction.lag.ms": "3600000"}
        if topic in LAST_STATES:  # what was taken back goes within the hour: the last state says nothing of the post
            config |= {"cleanup.policy": "compact,delete", "max.compaction.lag.ms": "3600000"}
        if topic == "posts.raw":  # when a post was seen is the broker's word, not the sender's
            config["message.timestamp.type"] = "LogAppendTime"
        configs[settings.topics.name(topic)] = {
            "num_partitions": _partitions(topic, settings),
            "replication_factor": settings.topics.replication,
            "configs": config,
        }
    return configs


def _partitions(topic: str, settings: Settings) -> int:
    if topic in ONE_PARTITION:
        return 1
    return settings.topics.partitions * (TURNS if topic == "posts.waiting" else 1)


def inputs_of(settings: Settings) -> dict[str, tuple[str, int]]:
    """Each agent → the topic that it reads, and its partitions."""
    return {agent: (topic, _partitions(topic, settings)) for agent, topic in INPUTS.items()}


def require_topics(settings: Settings, *topics: str) -> None:
    """Raise ServiceError unless these topics (all, if none is named) are there; asking makes none.

    To be called before a client asks for a topic by name: a broker may then make it, with settings that lose data.
    """
    client = admin(settings)
    try:
        known = set(client.list_topics())
    finally:
        client.close()
    if missing := [name for name in map(settings.topics.name, topics or TOPICS) if name not in known]:
        raise ServiceError(f"no topic {', '.join(missing)} at {settings.broker.bootstrap}: run `crisis topics`")


def wrong_configs(client: KafkaAdminClient, settings: Settings) -> dict[str, dict[str, str]]:
    """Of the topics that are there, the settings in MENDED that are not as they should be, as they are.

    Empty where the broker does not tell (the embedded one).
    """
    wanted = {name: options["configs"] for name, options in topic_configs(settings).items()}
    asked = [
        ConfigResource("TOPIC", name, configs=list(MENDED)) for name in sorted(set(wanted) & set(client.list_topics()))
    ]
    try:
        told = client.describe_configs(asked, config_filter="all").get("topic", {}) if asked else {}
    except errors.UnsupportedVersionError:
        return {}
    wrong = {
        name: {
            key: entry["value"]
            for key, entry in found.items()
            if entry["value"] != wanted[name].get(key, entry["value"])
        }
        for name, found in told.items()
    }
    return {name: keys for name, keys in wrong.items() if keys}


def mend_topics(settings: Settings) -> list[str]:
    """Give topics that somebody else made the settings in MENDED; returns their names. Partitions stay as they are.

    Raises ServiceError if the broker refuses.
    """
    client = admin(settings)
    try:
        wrong, wanted = wrong_configs(client, settings), topic_configs(settings)
        changes = [
            ConfigResource("TOPIC", name, configs={key: wanted[name]["configs"][key] for key in keys})
            for name, keys in wrong.items()
        ]
        answers = client.alter_configs(changes).get("topic", {}) if changes else {}
    except errors.KafkaError as error:
        raise ServiceError(f"the settings of the topics could not be changed: {error}") from error
    finally:
        client.close()
    if refused := [f"{name}: {answer}" for name, answer in answers.items() if answer != "OK"]:
        raise ServiceError(f"the settings of topics could not be changed: {'; '.join(refused)}")
    return sorted(answers)


def widen_topics(settings: Settings, starting_over: bool = False) -> list[str]:
    """Give the topics between the stages as many partitions as posts.raw has; returns the names of those with fewer.

    A frame keeps its partition from stage to stage: without it no frame of it goes on. A broker that makes topics on
    demand makes such ones, when one was deleted under a worker. The others keep theirs, keys would move in them, unless
    one starts over: a broker that came back empty makes posts.raw anew, with one partition, for the first source.
    Raises ServiceError if the broker refuses.
    """
    client = admin(settings)
    try:
        wanted = {
            settings.topics.name(topic): _partitions(topic, settings)
            for topic in (TOPICS if starting_over else WITH_RAW)
        }
        there = sorted(set(wanted) & set(client.list_topics()))
        have = {told["name"]: len(told["partitions"]) for told in (client.describe_topics(there) if there else [])}
        few = {name: wanted[name] for name, partitions in have.items() if partitions < wanted[name]}
        if few:
            client.create_partitions(few)
    except errors.KafkaError as error:
        raise ServiceError(f"the topics could not be given more partitions: {error}") from error
    finally:
        client.close()
    return sorted(few)


def make_topics(settings: Settings) -> list[str]:
    """Create the topics that are missing; returns their names. Raises ServiceError if the broker refuses."""
    client = admin(settings)
    try:
        known = set(client.list_topics())
        missing = {name: options for name, options in topic_configs(settings).items() if name not in known}
        if not missing:
            return []
        answers = client.create_topics(missing, raise_errors=False)["topics"]
        codes = {answer["name"]: errors.for_code(answer["error_code"]) for answer in answers}
        made = [name for name in missing if codes[name] is errors.NoError]
        for name, error in codes.items():
            if error not in (errors.NoError, errors.TopicAlreadyExistsError):  # somebody else was faster: as good
                raise ServiceError(f"topic {name} could not be made: {error.__name__}")
        client.wait_for_topics(list(missing))
        return made
    except errors.KafkaError as error:
        raise ServiceError(f"topics could not be made: {error}") from error
    finally:
        client.close()


async def partitions_of(settings: Settings, topics: Iterable[str]) -> list[TopicPartition]:
    """The partitions of those of our topics that exist. (A consumer only learns of topics it is assigned.)"""
    client = AIOKafkaAdminClient(
        **client_options(settings.broker), client_id="crisis-dashboard", request_timeout_ms=10_000
    )
    try:
        await client.start()
        names = set(await client.list_topics()) & {settings.topics.name(topic) for topic in topics}
        found = await client.describe_topics(sorted(names)) if names else []
    finally:
        await client.close()
    return sorted(TopicPartition(t["topic"], p["partition"]) for t in found for p in t["partitions"])
