"""The dead letters: what `posts.rejected` holds, and sending them once more."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import msgspec
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from msgspec import Struct

from models.records import Origin, Reject
from streams.broker.connect import client_options, reaching
from streams.broker.reading import open_topic
from streams.config import Settings

__all__ = ["lines_of", "read_rejects", "send_raw"]

READ_S = 30.0
_decode = msgspec.json.Decoder(Reject).decode


class DeadLetter(Struct, frozen=True):
    """A reject and where it lies: `place` is "partition:offset" of posts.rejected."""

    place: str
    reject: Reject


def read_rejects(settings: Settings, reason: str | None = None) -> Iterator[DeadLetter]:
    """Every record of posts.rejected as it is now, oldest first in each partition; of one reason, if one is given.

    Raises ServiceError if the broker or the topic is not there.
    """
    with open_topic(settings, "posts.rejected", "crisis-rejected") as (consumer, parts):
        consumer.seek_to_beginning(*parts)
        ends = consumer.end_offsets(parts)
        while any(consumer.position(part) < ends[part] for part in parts):
            for records in consumer.poll(timeout_ms=500).values():
                for record in records:
                    with contextlib.suppress(msgspec.MsgspecError):  # somebody else wrote to our topic
                        found = _decode(record.value or b"")
                        if reason in (None, found.reason):
                            yield DeadLetter(f"{record.partition}:{record.offset}", found)


def lines_of(settings: Settings, rejects: Iterable[Reject]) -> Iterator[tuple[Reject, bytes | None]]:
    """The lines of posts.raw that each was made from, whole; None where it is no longer on the broker.

    What was refused after it had been read (`stage` is not "normalise") is a post that was claimed: sent again it would
    be a repeat of itself.
    """
    with open_topic(settings, "posts.raw", "crisis-rejected") as (consumer, _):
        for reject in rejects:
            raw = _record(consumer, reject.origin) if reject.stage == "normalise" else None
            if raw is None or reject.reason == "worker_died":
                yield from ((reject, raw) for _ in (reject.line, *reject.also))
            else:
                lines = [line for piece in raw.split(b"\n") if (line := piece.strip(b" \t\r"))]
                for number in (reject.line, *reject.also):
                    yield reject, lines[number] if number < len(lines) else None


def send_raw(settings: Settings, values: Iterable[bytes]) -> int:
    """Send records to posts.raw; returns how many the broker has acknowledged. Raises ServiceError without a broker."""
    with reaching(settings):
        producer = KafkaProducer(**client_options(settings.broker), acks="all", client_id="crisis-rejected")
        with contextlib.closing(producer):
            sent = [producer.send(settings.topics.name("posts.raw"), value=value) for value in values]
            producer.flush(READ_S)
            for future in sent:
                future.get(READ_S)
    return len(sent)


def _record(consumer: KafkaConsumer, origin: Origin) -> bytes | None:
    part = TopicPartition(next(iter(consumer.assignment())).topic, origin.partition)
    if part not in consumer.assignment() or consumer.beginning_offsets([part])[part] > origin.offset:
        return None
    if origin.offset >= consumer.end_offsets([part])[part]:
        return None
    consumer.pause(*consumer.assignment())
    consumer.resume(part)
    consumer.seek(part, origin.offset)
    for _ in range(int(READ_S)):
        if records := consumer.poll(timeout_ms=1000, max_records=1).get(part):
            return records[0].value if records[0].offset == origin.offset else None
    return None
