"""A record's partition by its key is that of every other client of Kafka."""

from __future__ import annotations

from aiokafka.partitioner import DefaultPartitioner, murmur2
from hypothesis import given
from hypothesis import strategies as st

from streams.worker import partitioning

KEYS = st.lists(st.binary(max_size=40), max_size=20)


@given(KEYS)
def test_keys_of_any_length_have_the_hash_of_the_plain_one(keys):
    assert partitioning.murmur2(keys).tolist() == [murmur2(key) for key in keys]


@given(KEYS, st.lists(st.integers(0, 99), min_size=1, max_size=7, unique=True).map(sorted))
def test_each_lies_where_another_client_puts_it(keys, there):
    assert partitioning.places(keys, there) == [DefaultPartitioner()(key, there, there) for key in keys]


def test_what_has_no_key_goes_anywhere_and_takes_no_other_from_its_place():
    by_key = partitioning.places([b"a", b"b"], range(8))
    found = [partitioning.places([None, b"a", None, b"b"], range(8)) for _ in range(200)]
    assert {(mine[1], mine[3]) for mine in found} == {tuple(by_key)}
    assert {mine[0] for mine in found} == {mine[2] for mine in found} == set(range(8))
