"""Partitions: record batches kept as the producer sent them, in memory, limited by bytes.

A batch (format v2) is opaque except for its 61-byte header; records are decoded only to look up a time and to refuse
records without a key on compacted topics.
"""

from __future__ import annotations

import asyncio
import bisect
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal
from weakref import WeakSet

import msgspec
from kafka import errors
from kafka.record.default_records import DefaultRecord, DefaultRecordBatch
from kafka.record.util import calc_crc32c

__all__ = ["Partition", "read_config"]

HEADER = DefaultRecordBatch.HEADER_STRUCT
CRC_AT, ATTRIBUTES_AT = DefaultRecordBatch.CRC_OFFSET, DefaultRecordBatch.ATTRIBUTES_OFFSET
MAX_TIMESTAMP_AT = 35
REMEMBERED_BATCHES = 5  # per producer, as Kafka: a client has at most 5 requests in flight


class TopicConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename=lambda name: name.replace("_", ".")):
    """A topic's settings under Kafka's names, and Kafka's defaults."""

    cleanup_policy: Literal["delete", "compact", "compact,delete", "delete,compact"] = "delete"
    message_timestamp_type: Literal["CreateTime", "LogAppendTime"] = "CreateTime"
    max_message_bytes: Annotated[int, msgspec.Meta(ge=0)] = 1_048_588
    retention_bytes: Annotated[int, msgspec.Meta(ge=-1)] = -1
    min_cleanable_dirty_ratio: float = 0.5  # the rest means something on disk only
    max_compaction_lag_ms: int = -1
    retention_ms: int = -1
    segment_bytes: int = 1 << 30
    segment_ms: int = -1


def read_config(given: dict[str, str]) -> TopicConfig:
    """Raises InvalidConfigurationError."""
    try:
        return msgspec.convert(given, TopicConfig, strict=False)
    except msgspec.ValidationError as error:
        raise errors.InvalidConfigurationError(f"not known to the embedded broker: {error}") from error


@dataclass
class Batch:
    """One record batch; `last` is its last offset, `data` starts with the base offset."""

    first: int
    last: int
    data: bytes


class Partition:
    """`start` and `end`: the first offset kept and the next to be written. `waiting`: long polls to wake up.

    retention_bytes: the limit where the topic sets none, for memory is all there is.
    """

    def __init__(self, config: TopicConfig, retention_bytes: int) -> None:
        self.config = config
        self.compacts, self.deletes = (policy in config.cleanup_policy for policy in ("compact", "delete"))
        self.retention_bytes = config.retention_bytes if config.retention_bytes >= 0 else retention_bytes
        self.batches: list[Batch] = []
        self.start = self.end = self.size_bytes = 0
        self.producers: dict[int, tuple[int, dict]] = {}  # idempotent ones: epoch, {(sequence, count): base offset}
        self.waiting: WeakSet[asyncio.Event] = WeakSet()  # of the fetches under way: they vanish with them

    def append(self, records: bytes) -> int:
        """Append one record batch; returns its base offset. Raises Kafka's error for a bad one."""
        data = bytearray(records)
        if len(data) < HEADER.size:
            raise errors.CorruptRecordError(f"{len(data)} bytes are no record batch")
        batch = DefaultRecordBatch(data)
        if batch.magic != 2 or batch.size_in_bytes != len(data) or not batch.validate_crc():
            raise errors.CorruptRecordError("format, length or checksum is wrong, or more than one batch")
        if len(data) > self.config.max_message_bytes:
            raise errors.MessageSizeTooLargeError(f"{len(data)} > {self.config.max_message_bytes} bytes")
        n = batch.records_count
        if batch.is_transactional or batch.is_control_batch or n < 1 or batch.last_offset_delta != n - 1:
            raise errors.InvalidRecordError("transactions are not supported by the embedded broker")
        if self.compacts and any(r.key is None for r in batch):
            raise errors.InvalidRecordError("a record of a compacted topic needs a key")
        if batch.has_producer_id() and (known := self._known(batch)) is not None:
            return known
        if self.config.message_timestamp_type == "LogAppendTime":
            struct.pack_into(">h", data, ATTRIBUTES_AT, batch.attributes | DefaultRecordBatch.TIMESTAMP_TYPE_MASK)
            struct.pack_into(">q", data, MAX_TIMESTAMP_AT, int(time.time() * 1000))
            struct.pack_into(">I", data, CRC_AT, calc_crc32c(memoryview(data)[ATTRIBUTES_AT:]))
        struct.pack_into(">q", data, 0, self.end)
        base, self.end = self.end, self.end + n
        self.batches.append(Batch(base, self.end - 1, bytes(data)))
        self.size_bytes += len(data)
        while self.deletes and self.size_bytes > self.retention_bytes and len(self.batches) > 1:
            self.size_bytes -= len(self.batches.pop(0).data)
            self.start = self.batches[0].first
        for event in self.waiting:
            event.set()
        return base

    def _known(self, batch: DefaultRecordBatch) -> int | None:
        """The base offset of a batch that was sent again; None if it is new and the next one in sequence."""
        epoch, numbers = batch.producer_epoch, (batch.base_sequence, batch.records_count)
        newest, sent = self.producers.get(batch.producer_id, (-1, {}))
        if epoch < newest:
            raise errors.InvalidProducerEpochError(f"{epoch} < {newest}")
        sent = sent if epoch == newest else {}
        if numbers in sent:
            return sent[numbers]
        if sent and batch.base_sequence != sum(list(sent)[-1]) % 2**31:
            raise errors.OutOfOrderSequenceNumberError(f"{batch.base_sequence} after {list(sent)[-1]}")
        self.producers[batch.producer_id] = epoch, dict([*sent.items(), (numbers, self.end)][-REMEMBERED_BATCHES:])
        return None

    def read(self, offset: int, max_bytes: int, first: bool) -> bytes:
        """Whole batches from the one that holds `offset`, b"" at the end of the log. Raises OffsetOutOfRangeError.

        `first`: nothing else is in the response, so one batch is given however large it is (KIP-74).
        """
        if not self.start <= offset <= self.end:
            raise errors.OffsetOutOfRangeError(f"{offset} not in {self.start}..{self.end}")
        found, size_bytes = [], 0
        for at in range(self._index(offset), len(self.batches)):
            size_bytes += len(self.batches[at].data)
            if size_bytes > max_bytes and (found or not first):
                break
            found.append(self.batches[at].data)
        return b"".join(found)

    def _index(self, offset: int) -> int:
        return bisect.bisect_left(self.batches, offset, key=lambda batch: batch.last)

    def records(self) -> Iterator[DefaultRecord]:
        """Every record that is kept."""
        return (r for batch in self.batches for r in DefaultRecordBatch(batch.data))
