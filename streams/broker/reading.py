"""Reading a topic from outside, once: every record it holds now, or those of the last hours."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import KafkaError

from models.errors import ServiceError
from streams.broker.connect import reaching, threaded_options
from streams.config import Settings

__all__ = ["kafka_ms", "open_topic", "read_records", "read_to", "read_values", "seek_to"]

SILENT_S = 30.0  # nothing came for so long, and there should be more


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


def read_to(
    consumer: KafkaConsumer, ends: Mapping[TopicPartition, int], max_records: int | None = None
) -> Iterator[tuple[int, list[ConsumerRecord]]]:
    """What lies from where a consumer stands to these offsets, some records at a time, and how many offsets are left.

    Raises ServiceError if the broker gives nothing for SILENT_S. What the caller takes over the records is not counted.
    """

    def left() -> int:  # a position that the broker could not tell is None
        return sum(max(0, end - (consumer.position(part) or 0)) for part, end in ends.items())

    ahead, silent_s = left(), 0.0
    while ahead:
        asked = time.monotonic()
        found = consumer.poll(timeout_ms=500, max_records=max_records)
        before, ahead = ahead, left()
        silent_s = 0.0 if ahead != before else silent_s + time.monotonic() - asked
        if silent_s > SILENT_S:
            raise ServiceError(
                f"{','.join(consumer.config['bootstrap_servers'])} has given nothing for {SILENT_S:.0f} s, and "
                f"{next(iter(ends)).topic} is not read to its end: see whether the broker runs, then try again"
            )
        yield ahead, [record for part, some in found.items() for record in some if record.offset < ends[part]]


def read_records(
    settings: Settings, topic: str, since: float | None = None, client_id: str = "crisis-reading"
) -> Iterator[ConsumerRecord]:
    """A topic as it is now, oldest first in each partition. since: only what was written then or later, epoch seconds.

    Raises ServiceError if the broker or the topic is not there, or goes.
    """
    with open_topic(settings, topic, client_id) as (consumer, parts):
        ends = consumer.end_offsets(parts)
        if since is None:
            consumer.seek_to_beginning(*parts)
        else:
            seek_to(consumer, parts, since)
        for _, records in read_to(consumer, ends):
            yield from records


def read_values(settings: Settings, topic: str, last_s: float | None = None) -> Iterator[bytes]:
    """What those records hold, where they hold something. last_s: only those written since then. Raises the same."""
    since = None if last_s is None else time.time() - last_s
    return (record.value for record in read_records(settings, topic, since) if record.value)
