"""Reading the alerts topic with a plain subscriber (kafka-python): from where, until when, each revision once."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator

import msgspec
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError
from msgspec import Struct

from models.areas import Area, lies_there
from models.errors import ServiceError
from models.records import Alert
from models.undecodable import UNDECODABLE
from streams.broker.connect import reaching, threaded_options
from streams.broker.reading import seek_to
from streams.config import Settings

__all__ = ["Teller", "Wanted", "read_alerts"]

log = logging.getLogger(__name__)

CLOSE_MS = 2_000  # to leave the group in: a broker that does not answer held up whoever wants to stop for 30 s

_decode = msgspec.json.Decoder(Alert).decode


class Wanted(Struct, frozen=True):
    """Which alerts to tell. None = all."""

    level: str | None = None
    kind: str | None = None
    query: str | None = None
    lang: str | None = None
    area: Area | None = None

    def accepts(self, alert: Alert) -> bool:
        """Is this one wanted?"""
        found = (alert.level, alert.kind, alert.query_id, alert.post.lang)
        wanted = (self.level, self.kind, self.query, self.lang)
        return all(w is None or w == f for w, f in zip(wanted, found, strict=True)) and (
            self.area is None or lies_there(self.area, alert.post)
        )


class Teller:
    """Decides what to tell: each (alert_id, revision) once, never an older revision, and of a told alert every change.

    An alert that was told and then leaves the filter (edited, withdrawn) is told once more: who saw it must hear.
    """

    def __init__(self, wanted: Wanted, remembered: int = 100_000) -> None:
        self.wanted, self._remembered = wanted, remembered
        self._last: dict[str, tuple[Alert, bool]] = {}  # alert id → (newest state, was it told)

    def news(self, alert: Alert) -> tuple[Alert | None] | None:
        """(the state told before, or None) if this one is to be told; None if not."""
        before, told = self._last.get(alert.alert_id, (None, False))
        if before is not None and before.revision >= alert.revision:
            return None
        tell = told or self.wanted.accepts(alert)
        self._last.pop(alert.alert_id, None)
        self._last[alert.alert_id] = (alert, tell)
        if len(self._last) > self._remembered:
            del self._last[next(iter(self._last))]
        return (before if told else None,) if tell else None


def read_alerts(
    settings: Settings,
    *,
    follow: bool,
    group: str | None = None,
    last_s: float | None = None,
    beginning: bool = False,
) -> Iterator[Alert]:
    """Every record of the alerts topic, withdrawn and updated ones too, in the order of each partition.

    Without `follow` it ends where the topic ended when it was called. `last_s` starts that many seconds ago; without
    it a follower starts at the end (or with `beginning` at the start) and a reader at the start. With `group` Kafka
    keeps the place: a record counts as read once the next one is asked for.
    Raises ServiceError if the broker or the topic is not there.
    """
    topic = settings.topics.name("alerts")
    consumer = _connect(settings, topic, group, from_start=beginning or not follow)
    with contextlib.ExitStack() as stack:
        stack.callback(consumer.close, timeout_ms=CLOSE_MS)
        _place(consumer, topic, group, last_s, beginning or not follow)
        ends = None if follow else consumer.end_offsets(_parts(consumer, topic))
        bad = 0
        while ends is None or _before(consumer, ends):
            for records in consumer.poll(timeout_ms=500).values():
                for record in records:
                    try:
                        alert = _decode(record.value or b"")
                    except UNDECODABLE as error:
                        bad += 1
                        log.error("%d records of %s are no alerts; the last: %s", bad, topic, error)
                        continue
                    yield alert
            if group is not None and consumer.assignment():
                _keep_place(consumer, group, follow)


def _keep_place(consumer: KafkaConsumer, group: str, follow: bool) -> None:
    """So that the group goes on from here. A follower outlives a broker that is away: it tells a few alerts again."""
    try:
        consumer.commit()
    except KafkaError as error:
        if not follow:
            raise
        log.warning("how far %s has read could not be kept, some alerts may be told again: %s", group, error)


def _connect(settings: Settings, topic: str, group: str | None, from_start: bool) -> KafkaConsumer:
    with reaching(settings):
        consumer = KafkaConsumer(
            **threaded_options(settings.broker),
            group_id=group,
            enable_auto_commit=False,
            client_id="crisis-alerts",
            auto_offset_reset="earliest" if from_start else "latest",
            allow_auto_create_topics=False,
        )
    with contextlib.ExitStack() as stack:
        stack.callback(consumer.close, timeout_ms=CLOSE_MS)
        if not consumer.partitions_for_topic(topic):  # raises where the broker went away meanwhile
            raise ServiceError(f"{settings.broker.bootstrap} has no topic {topic}: make it with `crisis topics`")
        stack.pop_all()
    return consumer


def _parts(consumer: KafkaConsumer, topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic))]


def _place(consumer: KafkaConsumer, topic: str, group: str | None, last_s: float | None, from_start: bool) -> None:
    """Stand where reading starts. With a group, wait for the partitions first: others may share them."""
    if group is None:
        consumer.assign(_parts(consumer, topic))
    else:
        consumer.subscribe([topic])
        until = time.monotonic() + 30
        while not consumer.assignment() and time.monotonic() < until:
            held = consumer.poll(timeout_ms=200, max_records=1)
            for part in held:  # what came along with the assignment is read again below
                consumer.seek(part, held[part][0].offset)
    parts = list(consumer.assignment())
    if last_s is not None and parts:
        seek_to(consumer, parts, time.time() - last_s)
    elif group is None and parts:
        (consumer.seek_to_beginning if from_start else consumer.seek_to_end)(*parts)
        for part in parts:  # seek_to_end is lazy: settle it now, or what is sent meanwhile is missed
            consumer.position(part)


def _before(consumer: KafkaConsumer, ends: dict[TopicPartition, int]) -> bool:
    return any(consumer.position(p) < ends[p] for p in consumer.assignment() if p in ends)
