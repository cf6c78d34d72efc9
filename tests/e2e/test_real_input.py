"""Real posts, end to end through Apache Kafka: every one accounted for. Totals go to the README."""

import json

import pytest

from streams.pipeline.outcomes import OUTCOMES, through
from tests.e2e.harness import lines_of, pipeline

# Tens of thousands of posts: more than any other test.
pytestmark = [pytest.mark.redis, pytest.mark.kafka, pytest.mark.data, pytest.mark.timeout(3600)]


@pytest.mark.parametrize(
    ("name", "posts"),
    [
        ("stream-crisis-t26/stream.jsonl.gz", 27_923),
        ("disaster-messages-multilingual/messages.jsonl.gz", 15_850),
    ],
)
async def test_every_post_of_a_real_stream_is_accounted_for(
    name, posts, apache_kafka, redis_url, data_dir, tmp_path, record_property, capsys
):
    lines = lines_of(data_dir / name)
    assert len(lines) == posts
    async with pipeline(apache_kafka, redis_url, tmp_path / "logs", partitions=4) as live:
        for _ in range(2):
            await live.start_worker()
        assert await live.send(lines) == posts
        counts = await live.until_through(posts)
        assert counts["read"] == posts == through(counts)
        alerted = {a["post"]["id"] for a in live.alerts() if a["status"] == "active"}
        assert len(alerted) == counts["alert"] + counts["suggestion"]
        record_property("totals", json.dumps(counts))
        with capsys.disabled():
            print(f"\n{name}: " + ", ".join(f"{k} {counts.get(k, 0):,}" for k in ("read", *OUTCOMES)))
