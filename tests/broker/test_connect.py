"""How clients of kafka-python connect."""

import contextlib

from streams.broker.compacted import open_compacted
from streams.broker.connect import admin
from streams.broker.reading import open_topic
from streams.broker.topics import make_topics
from streams.config import load_settings
from streams.ingest.writer import open_writer
from streams.outputs import follow


def test_sources_and_subscribers_look_for_a_broker_that_was_away_every_two_seconds_at_least(embedded_broker):
    """kafka-python doubles its pauses up to 30 s, which posts and alerts would then wait though the broker is back."""
    settings = load_settings(broker={"bootstrap": embedded_broker}, topics={"prefix": "away."})
    make_topics(settings)
    with (
        open_writer(settings) as writer,
        open_topic(settings, "posts.rejected") as (reader, _),
        contextlib.closing(follow._connect(settings, settings.topics.name("alerts"), None, True)) as follower,
        contextlib.closing(admin(settings)) as asked,
        open_compacted(settings, "queries") as compacted,
    ):
        clients = (writer._producer, reader, follower, asked, compacted._consumer, compacted._producer)
        assert {client.config["reconnect_backoff_max_ms"] for client in clients} == {2_000}
