"""The posts that two encoder versions are compared on: of a file, or of the stream."""

from __future__ import annotations

from pathlib import Path

from kafka import KafkaConsumer, TopicPartition

from models.errors import Rejected, ServiceError
from models.records import Frame, Origin, Post
from streams.broker.connect import client_options
from streams.config import Settings
from streams.ingest.lines import open_lines, read_frames
from streams.pipeline import stages
from streams.pipeline.frames import decode_frame
from streams.pipeline.memory import MemoryFolder
from streams.releases.diff import at_the_end


async def posts_of_file(path: Path) -> list[Post]:
    """The posts of a JSONL file as they stand at its end: repeats folded, edits applied, deletions gone."""
    folder, frames = MemoryFolder(), []
    with open_lines(path) as lines:
        for number, raw in enumerate(read_frames(iter(lines))):
            parsed = stages.parse(raw, Origin(0, number), path.stat().st_mtime, b"diff")
            frames.append(stages.fold(parsed, await folder.claim(parsed.claims)))
    return at_the_end(frames)


def posts_of_stream(settings: Settings, since_s: float) -> list[Post]:
    """The posts of posts.clean that were written since this time (epoch seconds), as they stand now."""
    topic = settings.topics.name("posts.clean")
    consumer = KafkaConsumer(
        **client_options(settings.broker), enable_auto_commit=False, allow_auto_create_topics=False
    )
    found: list[tuple[int, Frame]] = []
    try:
        parts = [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic) or ())]
        if not parts:
            raise ServiceError(f"no topic {topic} on {settings.broker.bootstrap}: run `crisis topics`")
        consumer.assign(parts)
        ends = consumer.end_offsets(parts)
        starts = consumer.offsets_for_times({p: int(since_s * 1000) for p in parts})
        for part in parts:
            consumer.seek(part, starts[part].offset if starts.get(part) else ends[part])
        while any(consumer.position(p) < ends[p] for p in parts):
            for records in consumer.poll(timeout_ms=500).values():
                for record in records:
                    if record.timestamp < since_s * 1000:  # brokers find a batch, not a record
                        continue
                    try:
                        found.append((record.timestamp, decode_frame(record.value or b"", Frame)))
                    except Rejected:  # the workers refuse and count it; nothing to compare here
                        continue
    finally:
        consumer.close()
    return at_the_end([frame for _, frame in sorted(found, key=lambda f: (f[0], f[1].origin))])
