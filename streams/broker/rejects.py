"""The dead letters: what `posts.rejected` holds, what each was made from, and sending it once more."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from msgspec import Struct

from models.posts import split_lines
from models.records import Origin, Reject
from models.undecodable import UNDECODABLE
from streams.broker.connect import reaching, threaded_options
from streams.broker.reading import open_topic, read_records, read_to
from streams.broker.topics import INPUTS, TURNS
from streams.config import Settings

__all__ = [
    "READS",
    "RETRIED",
    "DeadLetter",
    "ends_of",
    "lines_of",
    "mark_retried",
    "read_rejects",
    "read_retried",
    "records_of",
    "send_again",
]

READS = INPUTS | {"waiting": "posts.waiting"}  # stage that refuses → the topic it reads
# The turn of frames that were refused and are sent again: a lane of their own with offsets of its own, or they would be
# taken for what was done long ago. A multiple of TURNS: what is put by of them waits in the partitions of turns 1 to 3.
RETRIED = 3 * TURNS
SENT_S = 30.0
MARKED = 10_000  # places in one record: a tenth of what a broker takes


class DeadLetter(Struct, frozen=True):
    """A reject and where it lies: `place` is "partition:offset" of posts.rejected."""

    place: str
    reject: Reject


class Retried(Struct, frozen=True):
    """What lies on posts.rejected beside the rejects: the places of those that were sent again. Behind them in their
    partition, so that it is kept as long as they are.
    """

    retried: list[str]


_decode = msgspec.json.Decoder(Reject).decode
_retried = msgspec.json.Decoder(Retried).decode


def read_rejects(settings: Settings, reason: str | None = None) -> Iterator[DeadLetter]:
    """Every record of posts.rejected as it is now, oldest first in each partition; of one reason, if one is given.

    Raises ServiceError if the broker or the topic is not there.
    """
    for place, value in _records(settings):
        with contextlib.suppress(*UNDECODABLE):  # somebody else wrote to our topic
            found = _decode(value)
            if reason in (None, found.reason):
                yield DeadLetter(place, found)


def read_retried(settings: Settings) -> set[str]:
    """The places of the rejects that were sent again already. Raises ServiceError as `read_rejects` does."""
    places: set[str] = set()
    for _, value in _records(settings):
        if value.startswith(b'{"retried":'):
            with contextlib.suppress(*UNDECODABLE):
                places.update(_retried(value).retried)
    return places


def mark_retried(settings: Settings, places: Iterable[str]) -> None:
    """Note on the broker that the rejects at these places were sent again. Raises ServiceError without a broker."""
    by_partition: dict[int, list[str]] = defaultdict(list)
    for place in places:
        by_partition[int(place.partition(":")[0])].append(place)
    marks = (
        (partition, msgspec.json.encode(Retried(mine[at : at + MARKED])))
        for partition, mine in by_partition.items()
        for at in range(0, len(mine), MARKED)
    )
    send_again(settings, "posts.rejected", marks)


def _records(settings: Settings) -> Iterator[tuple[str, bytes]]:
    """(place, value) of all that posts.rejected holds now."""
    for record in read_records(settings, "posts.rejected", client_id="crisis-rejected"):
        yield f"{record.partition}:{record.offset}", record.value or b""


def records_of(settings: Settings, rejects: Iterable[Reject]) -> Iterator[tuple[Reject, bytes | None]]:
    """Each with the record that its stage read, whole; None where that is no longer on the broker."""
    by_topic: dict[str, list[Reject]] = defaultdict(list)
    for reject in rejects:
        by_topic[READS[reject.stage]].append(reject)
    for topic, mine in by_topic.items():
        with open_topic(settings, topic, "crisis-rejected") as (consumer, _):
            for reject in mine:
                yield reject, _record(consumer, reject.origin)


def lines_of(settings: Settings, rejects: Iterable[Reject]) -> Iterator[tuple[Reject, bytes | None]]:
    """The lines of posts.raw that each was made from, whole; None where they are no longer on the broker.

    Of a record that workers died on every line by itself: the one that they died on stops no other a second time.
    """
    for reject, raw in records_of(settings, rejects):
        lines = split_lines(raw or b"")
        if lines and reject.reason == "worker_died":
            yield from ((reject, line) for line in lines)
        else:
            for number in (reject.line, *reject.also):
                yield reject, lines[number] if number < len(lines) else None


def ends_of(settings: Settings, topic: str) -> dict[int, int]:
    """Where each partition of a topic ends now. Raises ServiceError if the broker or the topic is not there."""
    with open_topic(settings, topic, "crisis-rejected") as (consumer, parts):
        return {part.partition: end for part, end in consumer.end_offsets(parts).items()}


def send_again(settings: Settings, topic: str, values: Iterable[tuple[int, bytes]]) -> int:
    """Send records to partitions of a topic, in order; returns how many the broker has acknowledged.

    Raises ServiceError without a broker.
    """
    with reaching(settings):
        producer = KafkaProducer(**threaded_options(settings.broker), acks="all", client_id="crisis-rejected")
        with contextlib.closing(producer):
            name = settings.topics.name(topic)
            known = len(producer.partitions_for(name) or ()) or 1
            sent = [producer.send(name, value=value, partition=partition % known) for partition, value in values]
            producer.flush(SENT_S)
            for future in sent:
                future.get(SENT_S)
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
    for _, records in read_to(consumer, {part: origin.offset + 1}, max_records=1):
        if records:
            return records[0].value if records[0].offset == origin.offset else None
    return None
