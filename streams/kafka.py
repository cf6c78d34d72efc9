"""Connecting to Kafka from the three clients, and making the topics.

Faust drives the workers; aiokafka follows compacted topics from inside an event loop; kafka-python is the admin and
the plain subscriber.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterable, Iterator

import faust
from aiokafka import AIOKafkaConsumer
from kafka.admin import ConfigResource, KafkaAdminClient
from kafka.errors import KafkaError, TopicAlreadyExistsError, UnknownTopicOrPartitionError, UnsupportedVersionError

from models.errors import ServiceError
from streams.config import TOPICS, Broker, Settings, secret
from streams.ingest.writer import reach

COMPACTED = ("queries", "encoders")
ONE_PARTITION = ("posts.matched", "clusters", "queries", "encoders")
MENDED = ("cleanup.policy", "message.timestamp.type")  # not retention.ms: that is the operator's to change


def _ssl_context(broker: Broker) -> ssl.SSLContext | None:
    if broker.security not in ("SSL", "SASL_SSL"):
        return None
    return ssl.create_default_context(cafile=str(broker.ca_file) if broker.ca_file else None)


def client_options(broker: Broker) -> dict:
    """Connection keyword arguments that kafka-python and aiokafka share."""
    options: dict = {"bootstrap_servers": broker.bootstrap.split(","), "security_protocol": broker.security}
    if context := _ssl_context(broker):
        options["ssl_context"] = context
    if broker.security.startswith("SASL"):
        options |= {
            "sasl_mechanism": broker.sasl_mechanism,
            "sasl_plain_username": broker.username,
            "sasl_plain_password": secret(broker.password_file),
        }
    return options


def faust_credentials(broker: Broker) -> faust.SSLCredentials | faust.SASLCredentials | None:
    """The same as Faust wants it."""
    context = _ssl_context(broker)
    if broker.security.startswith("SASL"):
        return faust.SASLCredentials(
            username=broker.username, password=secret(broker.password_file), ssl_context=context,
            mechanism=broker.sasl_mechanism,
        )  # fmt: skip
    return faust.SSLCredentials(context=context) if context else None


@contextlib.contextmanager
def reaching(settings: Settings) -> Iterator[None]:
    """Turn what kafka-python raises inside into a ServiceError that says what to do; at once if no broker answers."""
    try:
        reach(settings.broker.bootstrap.split(","))
        yield
    except UnknownTopicOrPartitionError as error:
        raise ServiceError(f"a topic is missing at {settings.broker.bootstrap}: run `crisis topics`") from error
    except (KafkaError, OSError, ValueError) as error:
        raise ServiceError(
            f"no Kafka broker at {settings.broker.bootstrap} ({error}): start one (`make demo` brings its own, "
            "deploy/compose.yaml a real one) or set CRISIS_BROKER__BOOTSTRAP"
        ) from error


def admin(settings: Settings) -> KafkaAdminClient:
    """An admin client. Raises ServiceError if no broker answers."""
    with reaching(settings):
        return KafkaAdminClient(**client_options(settings.broker), client_id="crisis-admin", request_timeout_ms=15_000)


def topic_configs(settings: Settings) -> dict[str, dict]:
    """Every topic with its partitions, replication and settings, by full name."""
    configs = {}
    for topic in TOPICS:
        if topic in COMPACTED:
            config = {"cleanup.policy": "compact"}
        else:
            config = {"cleanup.policy": "delete", "retention.ms": str(int(settings.topics.retention_h * 3_600_000))}
        if topic == "posts.raw":  # when a post was seen is the broker's word, not the sender's
            config["message.timestamp.type"] = "LogAppendTime"
        configs[settings.topics.name(topic)] = {
            "num_partitions": 1 if topic in ONE_PARTITION else settings.topics.partitions,
            "replication_factor": settings.topics.replication,
            "configs": config,
        }
    return configs


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
    asked = [ConfigResource("TOPIC", name, configs=list(MENDED)) for name in sorted(set(wanted) & set(client.list_topics()))]
    try:
        told = client.describe_configs(asked, config_filter="all").get("topic", {}) if asked else {}
    except UnsupportedVersionError:
        return {}
    wrong = {
        name: {key: entry["value"] for key, entry in found.items() if entry["value"] != wanted[name].get(key, entry["value"])}
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
        changes = [ConfigResource("TOPIC", name, configs={key: wanted[name]["configs"][key] for key in keys})
                   for name, keys in wrong.items()]  # fmt: skip
        answers = client.alter_configs(changes).get("topic", {}) if changes else {}
    except KafkaError as error:
        raise ServiceError(f"the settings of the topics could not be changed: {error}") from error
    finally:
        client.close()
    if refused := [f"{name}: {answer}" for name, answer in answers.items() if answer != "OK"]:
        raise ServiceError(f"the settings of topics could not be changed: {'; '.join(refused)}")
    return sorted(answers)


def make_topics(settings: Settings) -> list[str]:
    """Create the topics that are missing; returns their names. Raises ServiceError if the broker refuses."""
    client = admin(settings)
    made = []
    try:
        known = set(client.list_topics())
        for name, options in topic_configs(settings).items():
            if name in known:
                continue
            try:
                client.create_topics({name: options}, wait_for_metadata=True)
                made.append(name)
            except TopicAlreadyExistsError:  # somebody else was faster
                continue
            except KafkaError as error:
                raise ServiceError(f"topic {name} could not be made: {error}") from error
    finally:
        client.close()
    return made


async def read_to_end(consumer: AIOKafkaConsumer) -> Iterable:
    """Every record from the start of the assigned partitions to their end at the time of the call."""
    parts = list(consumer.assignment())
    await consumer.seek_to_beginning(*parts)
    ends = await consumer.end_offsets(parts)
    found = []
    while any([await consumer.position(p) < ends[p] for p in parts]):
        for records in (await consumer.getmany(timeout_ms=500)).values():
            found += records
    return found
