"""A posts.raw topic of its own for each test, and what came to lie in it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient

from models.posts import split_lines
from streams.config import Settings
from streams.config.sections import WriterConfig
from streams.ingest.writer import FrameWriter


class Raw:
    """posts.raw on a real (embedded) broker."""

    def __init__(self, bootstrap: str) -> None:
        self.settings = Settings(broker={"bootstrap": bootstrap}, topics={"prefix": f"t{uuid.uuid4().hex[:8]}."})
        self.bootstrap, self.topic = bootstrap, self.settings.topics.name("posts.raw")
        admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        admin.create_topics({self.topic: {"num_partitions": 4, "replication_factor": 1}})
        admin.close()

    def writer(self, **config: object) -> FrameWriter:
        return FrameWriter(self.bootstrap, self.topic, WriterConfig(**config))

    def records(self) -> dict[int, list[bytes]]:
        """Every record, by partition and in its order."""
        consumer = KafkaConsumer(bootstrap_servers=self.bootstrap, fetch_max_wait_ms=50)
        try:
            parts = [TopicPartition(self.topic, p) for p in sorted(consumer.partitions_for_topic(self.topic))]
            consumer.assign(parts)
            ends = consumer.end_offsets(parts)
            consumer.seek_to_beginning(*parts)
            found: dict[int, list[bytes]] = {part.partition: [] for part in parts}
            while any(len(found[part.partition]) < end for part, end in ends.items()):
                for part, records in consumer.poll(timeout_ms=500).items():
                    found[part.partition] += [record.value for record in records]
            return found
        finally:
            consumer.close()

    def lines(self) -> list[bytes]:
        return [line for values in self.records().values() for value in values for line in split_lines(value)]

    def posts(self) -> list[dict]:
        return [json.loads(line) for line in self.lines()]

    def ids(self) -> list[str]:
        return sorted(str(post["id"]) for post in self.posts())


@pytest.fixture
def raw(embedded_broker: str) -> Iterator[Raw]:
    return Raw(embedded_broker)


def jsonl(path: Path, count: int, **fields: object) -> Path:
    """A file of `count` posts p0, p1, …"""
    posts = ({"id": f"p{i}", "text": f"Water needed at house {i}"} | fields for i in range(count))
    path.write_text("".join(json.dumps(post) + "\n" for post in posts))
    return path
