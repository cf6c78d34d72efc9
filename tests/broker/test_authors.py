"""Whose posts are on posts.raw, by the handle or the account."""

import json

import pytest

from streams.broker.authors import posts_of, same_name
from streams.broker.topics import make_topics
from streams.config import load_settings
from streams.ingest.writer import open_writer


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
