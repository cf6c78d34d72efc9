"""Partitions against a plain list of records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import errors
from kafka.record import MemoryRecords

from streams.embedded.log import Partition, read_config
from tests.embedded.wire import record_batch

KEEP_ALL, COMPACT, NO_LIMIT = {}, {"cleanup.policy": "compact"}, 1 << 30

batches = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.integers(1, 4), st.sampled_from([0, 1, 3])), max_size=12
)


def filled(sent: list, config: dict, retention_bytes: int = NO_LIMIT) -> tuple[Partition, list[tuple[int, bytes, bytes]]]:
    """The partition, and what is in it as (offset, key, value)."""
    partition, records = Partition(read_config(config), retention_bytes), []
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
    partition, records = filled(sent, KEEP_ALL)
    offset = data.draw(st.integers(0, partition.end))
    found = decoded(partition.read(offset, 1 << 30, first=True))
    assert [r for r in found if r[0] >= offset] == records[offset:]  # a batch may begin earlier


@given(batches, st.integers(0, 2000))
def test_reading_piece_by_piece_gives_everything_once_whatever_the_limit(sent, max_bytes):
    partition, records = filled(sent, KEEP_ALL)
    found = []
    while (offset := found[-1][0] + 1 if found else 0) < partition.end:
        found += decoded(partition.read(offset, max_bytes, first=True))
    assert found == records


@given(batches, st.data())
def test_records_deleted_up_to_an_offset_are_not_found_and_the_others_are(sent, data):
    partition, records = filled(sent, KEEP_ALL)
    offset = data.draw(st.integers(0, partition.end))
    assert partition.delete_before(offset) == offset
    assert [(r.offset, r.key, r.value) for r in partition.records()] == records[offset:]
    assert partition.size_bytes == sum(len(b.data) for b in partition.batches)
    if offset:
        with pytest.raises(errors.OffsetOutOfRangeError):
            partition.read(offset - 1, 1, first=True)


@given(batches)
def test_compaction_keeps_exactly_the_last_record_of_each_key_where_it_was(sent):
    partition, records = filled(sent, COMPACT)
    end = partition.end
    partition.compact()
    last = {key: (offset, key, value) for offset, key, value in records}
    assert decoded(partition.read(0, 1 << 30, first=True)) == sorted(last.values())
    assert (partition.start, partition.end) == (0, end)
    partition.compact()
    assert decoded(partition.read(0, 1 << 30, first=True)) == sorted(last.values())


@given(batches)
def test_a_compacted_log_is_read_to_its_end_piece_by_piece(sent):
    partition, _ = filled(sent, COMPACT)
    partition.compact()
    offset, found = 0, []
    while data := partition.read(offset, 1, first=True):
        found += decoded(data)
        offset = found[-1][0] + 1
    assert offset == partition.end
    assert found == decoded(partition.read(0, 1 << 30, first=True))


@given(batches, st.integers(100, 3000))
def test_retention_keeps_the_newest_batches_that_fit_and_always_the_last(sent, retention_bytes):
    partition, records = filled(sent, KEEP_ALL, retention_bytes)
    kept = [(r.offset, r.key, r.value) for r in partition.records()]
    assert kept == records[partition.start :]
    assert partition.size_bytes <= retention_bytes or len(partition.batches) == 1
    assert bool(kept) == bool(records)


def test_a_compacted_topic_does_not_grow_with_the_number_of_updates():
    partition = Partition(read_config(COMPACT), NO_LIMIT)
    for i in range(3000):
        partition.append(record_batch([b"%d" % i * 250], key=b"k%d" % (i % 10)))
    assert partition.size_bytes < 2 << 20
    assert {r.key for r in partition.records()} == {b"k%d" % i for i in range(10)}
