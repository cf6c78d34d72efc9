"""The newest state of each key of a topic of last states (`alerts`, `clusters`), as far as it is written now.

Read twice: first which state is the newest of each key, then those alone are given. An earlier one may hold a text that
was taken back since, and must be shown nobody, not even for the moment until the next is read.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from models.undecodable import UNDECODABLE
from streams.broker.reading import open_topic, read_to, seek_to
from streams.config import Settings

__all__ = ["Part", "Record", "State", "newest_states", "oldest_states"]

log = logging.getLogger(__name__)

T = TypeVar("T")


class Record(Protocol):
    """As the client gives it. timestamp: when it was written, epoch milliseconds."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int


class State(NamedTuple, Generic[T]):
    """What a record says. at: epoch seconds, when it was written."""

    value: T
    at: float
    last: bool  # does it stand last of its key? The broker keeps that in the end, whatever is newest


class Part(NamedTuple, Generic[T]):
    """How far both readings have come, of how many offsets, states that were read meanwhile, and how many records could
    not be until now."""

    done: int
    total: int
    states: list[State[T]]
    unread: int


class Newest(Generic[T]):
    """Told all records, then shown them again: gives of each key the state with the highest rank, once.

    States of one rank are one state, and a record without a value ends what came before it.
    """

    def __init__(self, decode: Callable[[bytes], T], rank: Callable[[T, Record], int]) -> None:
        self._decode, self._rank = decode, rank
        self._ranks: dict[bytes, int] = {}  # of each key that was not given yet
        self._overtaken: set[bytes] = set()  # keys of which an earlier state stands last
        self.unread = 0

    def told(self, records: Sequence[Record]) -> list[State[T]]:
        """Gives nothing yet."""
        for record in records:
            key = record.key or b""
            if not record.value:
                self._ranks.pop(key, None)
                continue
            try:
                rank = self._rank(self._decode(record.value), record)
            except UNDECODABLE as error:
                self.unread += 1
                where = record.topic, record.partition, record.offset
                log.error("ignored a record of %s, partition %d, offset %d: %s", *where, error)
                continue
            if rank < self._ranks.get(key, rank):
                self._overtaken.add(key)
            else:
                self._ranks[key] = rank
                self._overtaken.discard(key)
        return []

    def shown(self, records: Sequence[Record]) -> list[State[T]]:
        """Those that are the newest."""
        found = []
        for record in records:
            key = record.key or b""
            if not record.value or key not in self._ranks:
                continue
            with contextlib.suppress(*UNDECODABLE):
                value = self._decode(record.value)
                if self._rank(value, record) == self._ranks[key]:
                    del self._ranks[key]
                    found.append(State(value, record.timestamp / 1000, key not in self._overtaken))
        return found


def newest_states(
    settings: Settings, topic: str, decode: Callable[[bytes], T], rank: Callable[[T, Record], int]
) -> Iterator[Part[T]]:
    """The newest state of each key. Holds some 200 bytes a key, and no state.

    Raises ServiceError if broker or topic are not there, or go.
    """
    newest = Newest(decode, rank)
    with open_topic(settings, topic, "crisis-states") as (consumer, parts):
        begins, ends = consumer.beginning_offsets(parts), consumer.end_offsets(parts)
        length = sum(ends[part] - begins[part] for part in parts)
        for number, look in enumerate((newest.told, newest.shown), 1):
            consumer.seek_to_beginning(*parts)
            for left, records in read_to(consumer, ends):
                states = look(records)
                yield Part(number * length - left, 2 * length, states, newest.unread)


def oldest_states(settings: Settings, topic: str, decode: Callable[[bytes], T], since: float, until: float) -> list[T]:
    """What each partition's oldest record says of those that were written between these moments (epoch seconds).

    Nothing of a partition where that cannot be decoded. Raises as `newest_states`.
    """
    states = []
    with open_topic(settings, topic, "crisis-states") as (consumer, parts):
        ends = consumer.end_offsets(parts)
        seek_to(consumer, parts, since)
        firsts = {part: min(consumer.position(part) + 1, ends[part]) for part in parts}
        for _, records in read_to(consumer, firsts):
            for record in records:
                if record.value and record.timestamp <= until * 1000:
                    with contextlib.suppress(*UNDECODABLE):
                        states.append(decode(record.value))
    return states
