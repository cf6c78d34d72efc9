"""Partitions against a plain list of records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import errors
from kafka.record import MemoryRecords

from streams.embedded.log import Partition, read_config
from tests.embedded.wire import record_batch

batches = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.integers(1, 4), st.sampled_from([0, 1, 3])), max_size=12
)


def filled(sent: list, retention_bytes: int = 1 << 30) -> tuple[Partition, list[tuple[int, bytes, bytes]]]:
    """The partition, and what is in it as (offset, key, value)."""
    partition, records = Partition(read_config({}), retention_bytes), []
    for number, (key, n, codec) in enumerate(sent):
        values = [b"%d-%d" % (number, i) * 20 for i in range(n)]
        assert partition.append(record_batch(values, key=key, codec=codec)) == len(records)
        records += [(len(records) + i, key, value) for i, value in enumerate(values)]
    return partition, records


def decoded(data: bytes) -> list[tuple[int, bytes, bytes]]:
    found, records = [], MemoryRecords(data)
    while batch := records.next_batch():
        assert batch.validate_crc()
        found += [(r.offset, r.key, r.value) for r in batch]
    return found


@given(batches, st.data())
def test_what_was_appended_is_read_from_any_offset(sent, data):
    partition, records = filled(sent)
    offset = data.draw(st.integers(0, partition.end))
    found = decoded(partition.read(offset, 1 << 30, first=True))
    assert [r for r in found if r[0] >= offset] == records[offset:]  # a batch may begin earlier


@given(batches, st.integers(0, 2000))
def test_reading_piece_by_piece_gives_everything_once_whatever_the_limit(sent, max_bytes):
    partition, records = filled(sent)
    found = []
    while (offset := found[-1][0] + 1 if found else 0) < partition.end:
        found += decoded(partition.read(offset, max_bytes, first=True))
    assert found == records


@given(batches, st.integers(100, 3000))
def test_retention_keeps_the_newest_batches_that_fit_and_always_the_last(sent, retention_bytes):
    partition, records = filled(sent, retention_bytes)
    kept = [(r.offset, r.key, r.value) for r in partition.records()]
    assert kept == records[partition.start :]
    if partition.start:
        with pytest.raises(errors.OffsetOutOfRangeError):
            partition.read(partition.start - 1, 1, first=True)
    assert partition.size_bytes == sum(len(batch.data) for batch in partition.batches)
    assert partition.size_bytes <= retention_bytes or len(partition.batches) == 1
    assert bool(kept) == bool(records)
