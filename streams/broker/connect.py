"""Connecting to Kafka: options, TLS and what is told where no broker answers.

Faust drives the workers (streams/worker/credentials.py); aiokafka follows topics from inside an event loop;
kafka-python is the admin and the plain subscriber.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError, UnknownTopicOrPartitionError

from models.errors import ConfigError, ServiceError
from streams.config import Settings
from streams.config.secrets import secret
from streams.config.sections import Broker

__all__ = [
    "METADATA_MS",
    "admin",
    "client_options",
    "is_loopback",
    "reach",
    "reaching",
    "ssl_context",
    "threaded_options",
]

# How old a client's view of topics may grow. Their default, five minutes, is how long partitions that a topic was given
# stood unread, and one made anew half read: measured, nothing of three of four partitions until it had passed.
METADATA_MS = 5_000
# kafka-python doubles its pauses up to 30 s: a source or a subscriber would wait so long for a broker that is back.
RECONNECT_MS = 2_000


def ssl_context(broker: Broker) -> ssl.SSLContext | None:
    """The TLS context the settings ask for, if they do. Raises ConfigError for files that cannot be used."""
    if broker.security not in ("SSL", "SASL_SSL"):
        return None
    try:
        context = ssl.create_default_context(cafile=str(broker.ca_file) if broker.ca_file else None)
        if broker.cert_file is not None:
            context.load_cert_chain(broker.cert_file, broker.key_file)
    except OSError as error:  # ssl.SSLError too
        files = ", ".join(str(f) for f in (broker.ca_file, broker.cert_file, broker.key_file) if f)
        raise ConfigError(f"TLS to Kafka: {files} cannot be used: {error}") from error
    return context


def is_loopback(host: str) -> bool:
    """Does what is sent there stay on this machine?"""
    return host.strip("[] ") in ("localhost", "::1") or host.startswith("127.")


def client_options(broker: Broker) -> dict:
    """Connection keyword arguments that kafka-python and aiokafka share."""
    options: dict = {
        "bootstrap_servers": broker.bootstrap.split(","),
        "security_protocol": broker.security,
        "metadata_max_age_ms": METADATA_MS,
    }
    if context := ssl_context(broker):
        options["ssl_context"] = context
    if broker.security.startswith("SASL"):
        options |= {
            "sasl_mechanism": broker.sasl_mechanism,
            "sasl_plain_username": broker.username,
            "sasl_plain_password": secret(broker.password_file),
        }
    return options


def threaded_options(broker: Broker) -> dict:
    """The same for kafka-python alone: after an outage it looks for the broker at least every RECONNECT_MS."""
    return client_options(broker) | {"reconnect_backoff_max_ms": RECONNECT_MS}


def reach(servers: list[str]) -> None:
    """Connect to one of the brokers and leave. KafkaProducer would try for 10 s and leave its sockets open.

    Raises OSError if none can be reached.
    """
    for number, server in enumerate(servers):
        host, _, port = server.rpartition(":")
        try:
            socket.create_connection((host.strip("[] "), int(port)), timeout=5).close()
            return
        except (OSError, ValueError):
            if number == len(servers) - 1:
                raise


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
        return KafkaAdminClient(
            **threaded_options(settings.broker), client_id="crisis-admin", request_timeout_ms=15_000
        )
