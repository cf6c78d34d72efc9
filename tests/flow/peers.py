"""The same stage functions in somebody else's loop: `python -m tests.flow.peers bare|bytewax|quix POSTS PROGRESS`.

Each reads posts.raw, makes alerts and cluster events with the replay's wiring (streams/pipeline/replay.py: the same
stages, who folds into whom and which alerts were given in memory) and writes both to their topics. PROGRESS: a file it
appends to, posts done so far; the last line is written once the broker has everything.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from models.encoders.ready import load, ready
from streams.broker.queries import read_queries
from streams.config import load_settings
from streams.pipeline.replay import Replay
from streams.view.pseudonyms import load_pseudonyms
from streams.worker.garbage import keep_what_is_loaded
from streams.worker.threads import limit_native_threads
from tests.flow.warm import kept_clusters

_json = msgspec.json.Encoder().encode
AT_ONCE = 8  # records between two commits of the bare loop: as many as an agent takes


class Peer:
    """Everything but the loop."""

    def __init__(self, number: int, progress: Path) -> None:
        limit_native_threads(1)
        self.settings, self.number, self._progress = load_settings(), number, progress
        queries = list(read_queries(self.settings).values())
        self.group = f"{self.settings.topics.prefix}peer"
        self.brokers, self.raw = self.settings.broker.bootstrap, self.settings.topics.name("posts.raw")
        self.alerts, self.clusters = map(self.settings.topics.name, ("alerts", "clusters"))
        made = ready(load(self.settings.encoder.ref), queries, self.settings.match)
        self._replay = Replay(self.settings, time.time(), made, load_pseudonyms(self.settings))
        self._replay.clusters = kept_clusters(self.settings, made)
        self._loop, self._records, self.done = asyncio.new_event_loop(), 0, 0
        keep_what_is_loaded()

    def feed(self, raw: bytes) -> Iterable[tuple[str, bytes, bytes]]:
        """Topic, key and value of all that one record makes."""
        alerts, events = self._loop.run_until_complete(self._replay.feed(raw, self._records))
        self._records += 1
        self.done += raw.count(b"\n") + 1
        made = [(self.alerts, alert.alert_id.encode(), _json(alert)) for alert in alerts]
        return made + [(self.clusters, event.cluster_id.encode(), _json(event)) for event in events]

    def tell(self) -> None:
        """That all so far is with the broker."""
        with self._progress.open("a") as out:
            out.write(f"{self.done}\n")


def bare(peer: Peer) -> None:
    """confluent-kafka: poll, work, produce, flush, commit."""
    from confluent_kafka import Consumer, Producer

    consumer = Consumer(
        {
            "bootstrap.servers": peer.brokers,
            "group.id": peer.group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    producer = Producer({"bootstrap.servers": peer.brokers, "acks": "all", "compression.type": "lz4", "linger.ms": 0})
    consumer.subscribe([peer.raw])
    while peer.done < peer.number:
        records = consumer.consume(AT_ONCE, timeout=0.1)
        for record in records:
            for topic, key, value in peer.feed(record.value()):
                producer.produce(topic, value, key)
        producer.flush()
        if records:
            consumer.commit(asynchronous=False)
            peer.tell()
    consumer.close()


def bytewax(peer: Peer) -> None:
    """A dataflow of Bytewax with its Kafka connectors. It commits nothing: its recovery store is off."""
    import bytewax.operators as op
    from bytewax.connectors.kafka import KafkaSinkMessage, KafkaSource
    from bytewax.connectors.kafka import operators as kafka
    from bytewax.dataflow import Dataflow
    from bytewax.testing import run_main

    class Enough(Exception):
        pass

    def work(record: object) -> list:
        if peer.done >= peer.number:
            raise Enough
        made = [KafkaSinkMessage(key, value, topic=topic) for topic, key, value in peer.feed(record.value)]
        peer.tell()
        return made

    flow = Dataflow("peer")
    read = op.input("in", flow, KafkaSource([peer.brokers], [peer.raw], tail=True, batch_size=AT_ONCE))
    kafka.output("out", op.flat_map("work", read, work), brokers=[peer.brokers], topic=peer.alerts)
    run_main(flow)


def quix(peer: Peer) -> None:
    """A streaming data frame of Quix Streams: flush and commit at its own checkpoints."""
    from quixstreams import Application

    app = Application(
        peer.brokers,
        consumer_group=peer.group,
        auto_offset_reset="earliest",
        loglevel="ERROR",
        auto_create_topics=False,
    )
    given = app.topic(peer.raw, value_deserializer="bytes")
    topics = {
        name: app.topic(name, key_serializer="bytes", value_serializer="bytes") for name in (peer.alerts, peer.clusters)
    }

    def work(raw: bytes) -> list[tuple[str, bytes, bytes]]:
        made = list(peer.feed(raw))
        peer.tell()
        return made

    frame = app.dataframe(given).apply(work, expand=True)
    for name, topic in topics.items():
        mine = frame.filter(lambda made, name=name: made[0] == name)
        mine.apply(lambda made: made[2]).to_topic(topic, key=lambda value: value[:24])
    app.run()


if __name__ == "__main__":
    {"bare": bare, "bytewax": bytewax, "quix": quix}[sys.argv[1]](Peer(int(sys.argv[2]), Path(sys.argv[3])))
    signal.pause()  # until its CPU time was read
