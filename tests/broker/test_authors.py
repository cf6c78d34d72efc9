"""Whose posts are on posts.raw, by the handle or the account."""

import json

import pytest
from aiokafka import AIOKafkaProducer
from kafka import KafkaConsumer
from kafka.errors import UnsupportedCodecError

from models.errors import ServiceError
from models.records import Origin, Reject
from streams.broker.authors import posts_of, same_name
from streams.broker.rejects import records_of
from streams.broker.topics import make_topics
from streams.config import load_settings
from streams.ingest.writer import open_writer
from tests.outputs.topics import fresh_prefix


def test_posts_of_an_author_are_found_however_the_handle_is_written_and_in_lines_that_are_no_post(embedded_broker):
    settings = load_settings(broker={"bootstrap": embedded_broker}, topics={"prefix": "authors."})
    make_topics(settings)
    lines = [
        {"id": "1", "author": " @Ayse", "text": "a"},
        {"id": "bsky:did:plc:x/1", "author": "other", "text": "b"},
        {"id": "2", "author": "ayse2", "text": "ayse"},
        {"id": 3, "author": "AYSE", "text": 7},
        {"id": "bsky:did:plc:x/2", "text": "c"},
    ]
    with open_writer(settings) as writer:
        for line in [*map(json.dumps, lines), "no json at all", "[1]"]:
            writer.write(line.encode())
    assert sorted(posts_of(settings, "ayse")) == ["1", "3"]
    assert sorted(posts_of(settings, "bsky:did:plc:x")) == ["bsky:did:plc:x/1", "bsky:did:plc:x/2"]
    assert posts_of(settings, "nobody") == []


@pytest.mark.parametrize("other", ["ayse", "@ayse", " AYSE "])
def test_handles_are_compared_as_pseudonyms_are_made(other):
    assert same_name("@Ayse", other) and not same_name("@Ayse", other + "2")


async def test_posts_are_found_whatever_a_partner_compresses_with_and_whether_it_writes_in_transactions(apache_kafka):
    settings = load_settings(broker={"bootstrap": apache_kafka}, topics={"prefix": fresh_prefix(), "partitions": 1})
    make_topics(settings)
    topic, rejects, values = settings.topics.name("posts.raw"), [], {}
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        options = {"bootstrap_servers": apache_kafka, "compression_type": codec, "max_request_size": 4_000_000}
        async with AIOKafkaProducer(**options, transactional_id=f"{topic}.{codec}") as partner:
            for wanted in (True, False):
                value = json.dumps({"id": codec, "author": "ayse", "text": "water " * 300_000 * wanted}).encode()
                await partner.begin_transaction()
                lies = await partner.send_and_wait(topic, value, partition=0)
                rejects.append(Reject("too_long", "", "normalise", Origin(0, lies.offset), 0, "", b""))
                values[lies.offset] = value
                await (partner.commit_transaction() if wanted else partner.abort_transaction())
    assert posts_of(settings, "ayse") == ["gzip", "snappy", "lz4", "zstd"]
    assert {reject.origin.offset: raw for reject, raw in records_of(settings, rejects)} == values


def test_what_cannot_be_read_is_told_in_a_sentence(embedded_broker, monkeypatch):
    settings = load_settings(broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix()})
    make_topics(settings)
    with open_writer(settings) as writer:
        writer.write(b"{}")

    def not_ours(*_: object, **__: object) -> None:
        raise UnsupportedCodecError("Libraries for brotli compression codec not found")

    monkeypatch.setattr(KafkaConsumer, "poll", not_ours)
    with pytest.raises(ServiceError, match=r"posts\.raw at 127\S+ cannot be read: .*brotli"):
        posts_of(settings, "ayse")
