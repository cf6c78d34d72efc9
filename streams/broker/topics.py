"""The topics: which there are, how they are made, and mended where somebody else made them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping

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
    "LAST_STATES",
    "TURNS",
    "dropped_within_s",
    "inputs_of",
    "kept_otherwise",
    "make_topics",
    "mend_topics",
    "partitions_of",
    "require_topics",
    "topic_configs",
    "widen_topics",
    "wrong_configs",
    "wrong_partitions",
]

AGENTS = ("normalise", "embed", "match", "cluster")
INPUTS = dict(zip(AGENTS, ("posts.raw", "posts.clean", "posts.embedded", "posts.matched"), strict=True))
COMPACTED = ("queries", "encoders", "labels")
LAST_STATES = ("alerts", "clusters")  # keyed: a later record of the same key replaces the earlier ones
TURNS = 3  # that a post may wait for (streams/pipeline/triage.py); each has partitions of its own
ONE_PARTITION = ("posts.matched", "clusters", "queries", "encoders", "labels")
WITH_RAW = ("posts.clean", "posts.embedded")  # a frame lies in the partition it had in posts.raw
ANY_NUMBER = ("posts.rejected", "alerts")  # of partitions: nothing goes by theirs
MENDED = ("cleanup.policy", "message.timestamp.type", "segment.ms", "max.compaction.lag.ms")
RETENTION = "retention.ms"  # told, not mended: it is the operator's to change, and less of it drops records


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


def wrong_configs(
    client: KafkaAdminClient, settings: Settings, keys: tuple[str, ...] = MENDED
) -> dict[str, dict[str, str]]:
    """Of the topics that are there, those of these settings that are not as ours say, as they are.

    Empty where the broker does not tell (the embedded one).
    """
    wanted = {name: options["configs"] for name, options in topic_configs(settings).items()}
    wrong = {
        name: {key: value for key, value in found.items() if value != wanted[name].get(key, value)}
        for name, found in _told(client, wanted, keys).items()
    }
    return {name: found for name, found in wrong.items() if found}


def _told(client: KafkaAdminClient, names: Iterable[str], keys: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """These settings of those of the topics that are there, by the broker's word; empty where it does not say."""
    there = sorted(set(names) & set(client.list_topics()))
    asked = [ConfigResource("TOPIC", name, configs=list(keys)) for name in there]
    try:
        told = client.describe_configs(asked, config_filter="all").get("topic", {}) if asked else {}
    except errors.UnsupportedVersionError:
        return {}
    return {name: {key: entry["value"] for key, entry in found.items()} for name, found in told.items()}


def wrong_partitions(settings: Settings, have: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Of these topics, all of them there with so many partitions, those that should have others: (there, should be).

    More than posts.raw has do no harm between the stages.
    """
    wrong = {}
    for topic in TOPICS:
        there, said = have[settings.topics.name(topic)], _partitions(topic, settings)
        more_is_fine = topic in (*WITH_RAW, "posts.waiting")
        if topic not in ANY_NUMBER and (there < said or there > said and not more_is_fine):
            wrong[settings.topics.name(topic)] = (there, said)
    return wrong


def kept_otherwise(settings: Settings) -> str:
    """Which topics keep their records longer or shorter than the settings say, and how to change it; empty where none
    does, or where the broker does not tell."""
    with contextlib.closing(admin(settings)) as client:
        found = wrong_configs(client, settings, (RETENTION,))
    names: dict[int, list[str]] = {}
    for name, keys in found.items():
        names.setdefault(int(keys[RETENTION]), []).append(name)
    if not names:
        return ""
    told = [f"{', '.join(of)}: {f'{ms / 3_600_000:g} h' if ms >= 0 else 'for ever'}" for ms, of in names.items()]
    hours, ms = settings.topics.retention_h, int(settings.topics.retention_h * 3_600_000)
    return (
        f"how long records are kept is not what the settings say ({hours:g} h): {'; '.join(told)}. Change it with "
        "`kafka-configs.sh --bootstrap-server HOST:9092 --alter --entity-type topics --entity-name TOPIC --add-config "
        f"{RETENTION}={ms}`, or set CRISIS_TOPICS__RETENTION_H to what is there"
    )


def dropped_within_s(settings: Settings, topics: Iterable[str]) -> float | None:
    """In how many seconds the broker drops what these topics hold now, by its own settings where it tells them, else by
    ours. None where it keeps something without end. Whole segments go, each so long after the last record in it."""
    names = [settings.topics.name(topic) for topic in topics]
    with contextlib.closing(admin(settings)) as client:
        told = _told(client, names, (RETENTION, "segment.ms"))
    wanted, longest_ms = topic_configs(settings), 0
    for name in names:
        here = wanted[name]["configs"] | told.get(name, {})
        if int(here[RETENTION]) < 0:
            return None
        longest_ms = max(longest_ms, int(here[RETENTION]) + max(3_600_000, int(here["segment.ms"])))
    return longest_ms / 1000


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
    demand makes such ones, when one was deleted under a worker. Where a post waits goes by the settings' partitions.
    The others keep theirs, keys would move in them, unless one starts over: a broker that came back empty makes
    posts.raw anew, with one partition, for the first source. Raises ServiceError if the broker refuses.
    """
    client = admin(settings)
    try:
        ours = {settings.topics.name(topic): topic for topic in TOPICS}
        there = sorted(set(ours) & set(client.list_topics()))
        have = {told["name"]: len(told["partitions"]) for told in (client.describe_topics(there) if there else [])}
        of_raw = have.get(settings.topics.name("posts.raw"), settings.topics.partitions)
        wanted = {settings.topics.name("posts.waiting"): _partitions("posts.waiting", settings)}
        wanted |= {settings.topics.name(topic): of_raw for topic in WITH_RAW}
        if starting_over:
            wanted = {name: max(_partitions(topic, settings), wanted.get(name, 0)) for name, topic in ours.items()}
        few = {name: wanted[name] for name, partitions in have.items() if partitions < wanted.get(name, 0)}
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
