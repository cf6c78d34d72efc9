"""Offsets that hold nothing to read: a partner that writes in transactions, and a backlog that expired unread."""

from __future__ import annotations

import json

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.structs import TopicPartition

pytestmark = pytest.mark.redis

STANDS_AT_REST = 3  # words, each a second apart


def post(name: str) -> bytes:
    return json.dumps({"id": name, "text": f"We are trapped under the rubble, house {name}", "lang": "en"}).encode()


async def test_a_worker_reads_what_was_committed_alone_and_does_not_wait_for_offsets_that_hold_nothing(
    start, apache_kafka
):
    async with start(partitions=2) as live:
        topic = live.settings.topics.name("posts.raw")
        async with AIOKafkaProducer(bootstrap_servers=apache_kafka) as plain:
            for n in range(50):
                await plain.send_and_wait(topic, post(f"old-{n}"), partition=0)
        admin = AIOKafkaAdminClient(bootstrap_servers=apache_kafka)
        await admin.start()
        await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(50)})
        await admin.close()
        async with AIOKafkaProducer(bootstrap_servers=apache_kafka, transactional_id=topic) as partner:
            for name in ("kept-1", "taken-back-1", "taken-back-2", "kept-2", "kept-3", "taken-back-3"):
                await partner.begin_transaction()
                await partner.send_and_wait(topic, post(name), partition=1)
                await (partner.commit_transaction() if "kept" in name else partner.abort_transaction())
        worker = await live.start_worker()
        await live.until_through(3)
        rested = []

        async def at_rest() -> bool:
            for word in await live.speaking():
                if word.at not in [known.at for known in rested]:
                    rested.append(word)
            told = rested[-STANDS_AT_REST:]
            return len(told) == STANDS_AT_REST and not any(word.lag["posts.raw"] or word.stands_s for word in told)

        await live.become(at_rest, lambda: f"its words: {rested[-3:]}")
        assert {alert["post"]["id"] for alert in live.alerts()} == {"kept-1", "kept-2", "kept-3"}
        assert (await live.counts())["read"] == 3 and worker in live.running
