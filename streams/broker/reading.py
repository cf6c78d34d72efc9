"""Reading a topic from outside, once: every record it holds now, or those of the last hours."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from models.errors import ServiceError
from streams.broker.connect import reaching, threaded_options
from streams.config import Settings

__all__ = ["kafka_ms", "open_topic", "read_values", "seek_to"]


@contextlib.contextmanager
def open_topic(
    settings: Settings, topic: str, client_id: str = "crisis-reading"
) -> Iterator[tuple[KafkaConsumer, list[TopicPartition]]]:
    """A consumer of all partitions of a topic, in no group.

    Raises ServiceError if the broker or the topic is not there, or where it cannot be read inside.
    """
    name = settings.topics.name(topic)
    with reaching(settings):
        consumer = KafkaConsumer(
            **threaded_options(settings.broker),
            enable_auto_commit=False,
            auto_offset_reset="earliest",  # where what it stands at expires: the client would go on at the end
            client_id=client_id,
            allow_auto_create_topics=False,
        )
    with contextlib.closing(consumer):
        if not (partitions := consumer.partitions_for_topic(name)):
            raise ServiceError(f"{settings.broker.bootstrap} has no topic {name}: make it with `crisis topics`")
        parts = [TopicPartition(name, partition) for partition in sorted(partitions)]
        consumer.assign(parts)
        try:
            yield consumer, parts
        except KafkaError as error:
            raise ServiceError(f"{name} at {settings.broker.bootstrap} cannot be read: {error}") from error


def kafka_ms(at: float) -> int:
    """A moment (epoch seconds) as Kafka's protocol has it."""
    return int(at * 1000)


def seek_to(consumer: KafkaConsumer, parts: Sequence[TopicPartition], at: float) -> None:
    """Stand at the first record written at this moment or later, where there is none at the end."""
    ends = consumer.end_offsets(parts)
    starts = consumer.offsets_for_times(dict.fromkeys(parts, kafka_ms(at)))
    for part in parts:
        consumer.seek(part, starts[part].offset if starts.get(part) else ends[part])


def read_values(settings: Settings, topic: str, last_s: float | None = None) -> Iterator[bytes]:
    """The values of a topic as it is now, oldest first in each partition. last_s: only those written since then.

    Raises ServiceError if the broker or the topic is not there.
    """
    with open_topic(settings, topic) as (consumer, parts):
        ends = consumer.end_offsets(parts)
        consumer.seek_to_beginning(*parts)
        if last_s is not None:
            seek_to(consumer, parts, time.time() - last_s)
        while any(consumer.position(part) < ends[part] for part in parts):
            for part, records in consumer.poll(timeout_ms=500).items():
                for record in records:
                    if record.offset < ends[part] and record.value:
                        yield record.value
