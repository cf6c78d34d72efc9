"""A topic that is made anew under a worker is read from its beginning: nothing of it is taken for read already."""

from __future__ import annotations

import asyncio
import json
from zlib import crc32

import pytest
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import NoError
from kafka.structs import OffsetAndMetadata

from models.records import Frame, MatchedFrame
from streams.broker.topics import make_topics, widen_topics
from streams.pipeline.outcomes import through
from streams.worker.renewed import TopicIds

pytestmark = pytest.mark.redis

OLD, NEW = 4, 6  # records of the topic that was deleted and of its successor, which has more of them
DEFAULT_S = 300.0  # after which Kafka's clients ask anew which partitions there are


def said(numbers) -> list[bytes]:
    return [json.dumps({"id": f"r-{n}", "text": f"we need water at house {n}", "lang": "en"}).encode() for n in numbers]


async def posts_on(live, topic: str, kind: type) -> set[str]:
    return {post.id for frame in await asyncio.to_thread(live.frames, topic, kind) for post in frame.posts}


async def make_anew(live, client: KafkaAdminClient, name: str) -> None:
    client.delete_topics([name])
    await live.become(lambda: asyncio.to_thread(lambda: name not in client.list_topics()))
    await asyncio.to_thread(make_topics, live.settings)


async def commit(live, client: KafkaAdminClient, topic: str, offset: int) -> None:
    """What the group says it has read; takes until it has seen that its worker is gone."""
    group, at = f"{live.settings.topics.prefix}crisis", OffsetAndMetadata(offset, "", -1)

    async def committed() -> bool:
        told = await asyncio.to_thread(client.alter_group_offsets, group, {TopicPartition(topic, 0): at})
        return not any(code is not NoError for code in told.values())

    await live.become(committed)


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
        ids = TopicIds(live.settings)
        assert not await asyncio.to_thread(ids.renewed)
        client.delete_topics([name])

        async def gone() -> bool:  # or there again: a broker may make a topic anew for whoever asks for it
            return name in await asyncio.to_thread(ids.renewed) or name not in await asyncio.to_thread(
                client.list_topics
            )

        await live.become(gone)
        ids.close()
        await asyncio.to_thread(make_topics, live.settings)
        client.close()
        await live.send(said(range(100, 105)))
        await live.until_through(35)

        # a worker that the deletion sent back to its last commit may have told the first ones again: at least once
        async def new_ones() -> bool:
            return await posts_on(live, "posts.clean", Frame) >= {f"r-{n}" for n in range(100, 105)}

        await live.become(new_ones)


async def test_partitions_that_a_topic_lacks_are_told_waited_for_and_read_long_before_clients_look_by_themselves(start):
    async with start() as live:
        name, client = (
            live.settings.topics.name("posts.clean"),
            KafkaAdminClient(bootstrap_servers=live.settings.broker.bootstrap),
        )
        client.delete_topics([name])
        await live.become(lambda: asyncio.to_thread(lambda: name not in client.list_topics()))
        client.create_topics({name: {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
        await live.start_worker()
        first = [n for n in range(60) if crc32(b"r-%d" % n) % 4 == 0]
        await live.send(said(first))  # its clients have seen the topic as it is
        await live.until_through(len(first))
        await live.send(said(range(100, 160)))

        async def told() -> bool:
            return any("run `crisis topics`" in worker.message for worker in await live.speaking())

        await live.become(told)
        assert await asyncio.to_thread(widen_topics, live.settings) == [name]
        client.close()
        async with asyncio.timeout(DEFAULT_S - 60):
            await live.until_through(len(first) + 60)


async def test_offsets_of_a_deleted_topic_that_were_committed_once_more_hide_nothing_of_the_new_one(start):
    async with start(partitions=1) as live:
        worker = await live.start_worker()
        await live.send(said(range(OLD)), frame_posts=1)
        await live.until_through(OLD)
        await live.kill(worker)
        name, client = (
            live.settings.topics.name("posts.clean"),
            KafkaAdminClient(bootstrap_servers=live.settings.broker.bootstrap),
        )
        await make_anew(live, client, name)
        await commit(live, client, name, OLD)
        client.close()
        alone = await live.start_worker("--agents", "normalise")
        for n in range(NEW):  # one after the other: what comes together shares a record

            async def there(post: str = f"r-{100 + n}") -> bool:  # beside what the killed worker had not committed
                return post in await posts_on(live, "posts.clean", Frame)

            await live.send(said([100 + n]))
            await live.become(there)
        await live.kill(alone)
        await live.start_worker()
        await live.until_through(OLD + NEW)


async def test_posts_that_are_told_again_on_a_topic_that_was_made_anew_are_counted_once(start):
    async with start(partitions=1) as live:
        worker = await live.start_worker()
        await live.send(said(range(OLD)), frame_posts=1)
        await live.until_through(OLD)
        await live.kill(worker)
        client = KafkaAdminClient(bootstrap_servers=live.settings.broker.bootstrap)
        await make_anew(live, client, live.settings.topics.name("posts.clean"))
        await commit(live, client, live.settings.topics.name("posts.raw"), 0)
        client.close()
        await live.start_worker()
        await live.send(said([100]))  # what comes before it on the one partition is counted before it

        async def matched() -> bool:
            return "r-100" in await posts_on(live, "posts.matched", MatchedFrame)

        await live.become(matched)
        counts = await live.until_through(OLD + 1)
        assert await posts_on(live, "posts.clean", Frame) == {f"r-{n}" for n in [*range(OLD), 100]}, "told again"
        assert (counts["read"], through(counts)) == (OLD + 1, OLD + 1)
