"""A topic that is made anew under a worker is read from its beginning: nothing of it is taken for read already."""

from __future__ import annotations

import asyncio
import json

import pytest
from kafka.admin import KafkaAdminClient

from models.records import Frame
from streams.broker.topics import make_topics

pytestmark = pytest.mark.redis


def said(numbers) -> list[bytes]:
    return [json.dumps({"id": f"r-{n}", "text": f"we need water at house {n}", "lang": "en"}).encode() for n in numbers]


async def test_posts_on_a_topic_that_was_deleted_and_made_anew_are_read_though_their_offsets_were_read_before(start):
    async with start(partitions=1) as live:
        await live.start_worker()
        # a record each: offsets go far beyond those of what comes after
        await live.send(said(range(30)), frame_posts=1)
        await live.until_through(30)
        name, client = (
            live.settings.topics.name("posts.clean"),
            KafkaAdminClient(bootstrap_servers=live.settings.broker.bootstrap),
        )
        client.delete_topics([name])

        async def gone() -> bool:
            return name not in await asyncio.to_thread(client.list_topics)

        await live.become(gone)
        await asyncio.to_thread(make_topics, live.settings)
        client.close()
        await live.send(said(range(100, 105)))
        await live.until_through(35)
        embedded = live.frames("posts.clean", Frame)
        assert {post.id for frame in embedded for post in frame.posts} == {f"r-{n}" for n in range(100, 105)}
