"""Frames that outgrow a record on their way: sent in pieces. A record the broker refuses would be
read again for ever.
"""

import asyncio
import contextlib
import json
from collections import Counter

import pytest
from kafka import KafkaProducer

from models.matching import READINGS
from models.queries import load_queries
from models.records import Frame, MatchedFrame
from streams.pipeline.frames import decode_frames
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.redis


def frames(live, topic, kind):
    """Every frame of a topic; none may be beyond what the settings allow."""
    records = live.read(topic)
    assert max(len(r.value) for r in records) <= live.settings.worker.frame_bytes
    return [frame for r in records for frame in decode_frames(r.value, kind)]


async def test_posts_that_match_many_queries_are_read_once_each_and_clustered(start):
    """A post names every need there is; it has one alert and at most READINGS readings."""
    needs = " ".join(q.sentences["en"][0] for q in load_queries() if q.kind == "need")
    ids = [f"bsky:did:plc:{'x' * 24}/{number:013}" for number in range(300)]
    async with start(partitions=1) as live:
        await live.start_worker()
        await live.send(json.dumps({"id": i, "text": f"{needs} {n}", "lang": "en"}).encode() for n, i in enumerate(ids))
        counts = await live.until_through(len(ids))
        assert counts["alert"] == len(ids)
        await live.until_placed()
        matched = frames(live, "posts.matched", MatchedFrame)
        assert [p.id for f in matched for p in f.posts] == ids
        readings = Counter(m.post_id for f in matched for m in f.matches)
        assert set(readings) == set(ids) and max(readings.values()) == READINGS


async def test_a_record_full_of_short_repeats_of_a_post_with_a_long_id_is_counted(start):
    """Each repeat names its original: 1 MB of posts.raw becomes 2 MB of posts.clean."""
    text, repeats = "we need water", 18_000
    record = b"\n".join(json.dumps({"id": n, "text": text, "author": "a"}).encode() for n in range(repeats))
    async with start(partitions=1) as live:
        await live.start_worker()
        await live.send([json.dumps({"id": "x" * 52, "text": text, "author": "a"}).encode()])
        await live.until_through(1)
        topic = live.settings.topics.name("posts.raw")
        with contextlib.closing(KafkaProducer(bootstrap_servers=live.settings.broker.bootstrap)) as producer:
            await asyncio.to_thread(producer.send(topic, record).get, PATIENCE_S)
        await live.send([json.dumps({"id": "after", "text": "nice weather for a walk today"}).encode()])
        counts = await live.until_through(repeats + 2)
        assert counts["folded"] == repeats
        assert await live.view.repeats_of(["x" * 52]) == [repeats]
        await live.until_placed()
        clean = frames(live, "posts.clean", Frame)
        assert [r.id for f in clean for r in f.repeats] == [str(n) for n in range(repeats)]
        assert any(f.origin.item for f in clean), "no frame had to be cut: the test shows nothing"


async def test_a_large_record_that_is_no_frame_is_refused_and_the_worker_goes_on(start):
    """Somebody else's on our inner topic. Whole and as base64 it would be larger than the broker takes."""
    async with start(partitions=1) as live:
        await live.start_worker()
        with contextlib.closing(KafkaProducer(bootstrap_servers=live.settings.broker.bootstrap)) as producer:
            sent = producer.send(live.settings.topics.name("posts.clean"), b"\xff" * 900_000, partition=0)
            await asyncio.to_thread(sent.get, PATIENCE_S)
        await live.send([json.dumps({"id": "after", "text": "nice weather for a walk today"}).encode()])
        await live.until_through(1)
        assert [json.loads(r.value)["reason"] for r in live.read("posts.rejected")] == ["bad_frame"]
