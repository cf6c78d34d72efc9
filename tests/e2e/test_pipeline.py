"""The live path, end to end: real processes, a real broker (both of them), real Redis."""

import asyncio
import itertools
import json
import time

import msgspec
import pytest

from models.queries import load_queries
from streams.broker.queries import publish_queries
from streams.commands.replay import replay_file
from tests.e2e.harness import DEMO, gist, lines_of, newest

pytestmark = pytest.mark.redis


def post(number: int, text: str, **fields) -> bytes:
    return json.dumps({"id": f"t-{number}", "text": text, "lang": "en", "source": "test", **fields}).encode()


WATER = "We have had no drinking water for two days, please send water"


async def test_the_demo_stream_gives_the_replays_alerts_and_every_post_is_accounted_for(start, tmp_path):
    lines = lines_of(DEMO)
    async with start(partitions=1) as live:  # one partition: the order of the file is the order of the stream
        await live.start_worker()
        sent = await live.send(lines)
        counts = await live.until_through(sent)
        assert counts["read"] == sent == len(lines)
        await live.until_placed()
        alerts = newest(live.alerts())
        clusters = {json.loads(r.value)["cluster_id"] for r in live.read("clusters")}

        replayed = await asyncio.to_thread(replay_file, live.settings, DEMO, time.time())
        assert {k: counts.get(k, 0) for k in replayed.totals.counts} == dict(replayed.totals.counts)
        expected = {gist(a) for a in replayed.alerts.by_id.values()}
        assert {gist(a) for a in alerts.values()} == expected
        assert len(expected) > 50
        assert clusters
        in_view = await live.view.recent_alerts(2000)
        assert {gist(a) for a in in_view} == expected


async def test_one_worker_killed_half_way_loses_nothing_and_alerts_nothing_twice(start, tmp_path):
    texts = ["we are trapped on the roof, water is rising", "lovely weather for football today", WATER]
    lines = [post(n, f"{texts[n % 3]} number {n}") for n in range(6000)]
    async with start(partitions=4) as live:
        first = await live.start_worker()
        await live.start_worker()
        await live.send(lines[:2000])
        await live.until(lambda c: c.get("read", 0) >= 200)
        await live.kill(first)
        await live.send(lines[2000:])
        counts = await live.until_through(len(lines))
        assert counts["read"] == len(lines)
        published = live.alerts()
        told = {a["post"]["id"] for a in published}
        shown = await live.view.recent_alerts(100_000)
        assert len({a.alert_id for a in shown}) == len(shown)
        # Redelivery may publish a record again, never a different one: the same id and revision is the same alert.
        by_revision: dict[tuple, set] = {}
        for a in published:
            by_revision.setdefault((a["alert_id"], a["revision"]), set()).add(gist(a))
        assert all(len(contents) == 1 for contents in by_revision.values())
        file = tmp_path / "posts.jsonl"
        file.write_bytes(b"\n".join(lines))
        replayed = await asyncio.to_thread(replay_file, live.settings, file, time.time())
        assert told == {a.post.id for a in replayed.alerts.by_id.values()}
        assert len(told) > 1000


async def test_a_new_query_matches_without_a_restart(start):
    async with start(partitions=2) as live:
        await live.start_worker()
        await live.send([post(0, "nothing to see here")])
        await live.until_through(1)
        known = load_queries()
        boats = msgspec.structs.replace(
            known[0],
            id="need.beekeepers",
            kind="need",
            category="beekeepers",
            label="Beekeepers",
            sentences={"en": ["A swarm of bees sits in our kitchen, we need a beekeeper"]},
            threshold=0.3,
        )
        publish_queries(live.settings, {boats.id: boats})
        numbers = itertools.count(1)

        async def matches() -> bool:
            number = next(numbers)
            await live.send([post(number, f"a swarm of bees is in my kitchen, we need a beekeeper, case {number}")])
            await live.until_through(number + 1)
            return any(a["query_id"] == boats.id for a in live.alerts())

        await live.become(matches)
        publish_queries(live.settings, {boats.id: None})


async def test_a_deleted_posts_alerts_are_withdrawn_and_an_edited_one_follows_its_new_text(start):
    async with start(partitions=2) as live:
        await live.start_worker()
        await live.send([post(1, WATER), post(2, WATER + " for the children of the school")])
        await live.until(lambda c: c.get("alert", 0) + c.get("suggestion", 0) >= 2)
        await live.send([json.dumps({"id": "t-1", "kind": "delete"}).encode()])
        await live.send([post(2, "all good now, thank you everyone", kind="update")])
        await live.until_through(4)
        state = {(a["post"]["id"], a["status"], a.get("withdrawn_because")) for a in newest(live.alerts()).values()}
        assert state == {("t-1", "withdrawn", "deleted"), ("t-2", "withdrawn", "edited")}


async def test_repeats_are_counted_with_their_original_and_alert_once(start):
    async with start(partitions=2) as live:
        await live.start_worker()
        await live.send([post(n, WATER, author="one") for n in range(10)])
        counts = await live.until_through(10)
        assert counts["folded"] == 9
        alerted = {a["post"]["id"] for a in live.alerts()}
        assert len(alerted) == 1
        assert await live.view.repeats_of(sorted(alerted)) == [9]


async def test_bad_input_becomes_clear_rejects_and_the_worker_goes_on(start):
    bad = [
        b'{"id": "x", "text": "cut of',
        b'{"id": "x", "text": 7}',
        b"[" * 5000,
        b'{"id": "x", "id": "y", "text": "hello there"}',
        b'{"id": "x", "text": "hello there", "created_at": "9999-01-01T00:00:00Z"}',
        b'{"id": "x", "text": "\\ud800 hello"}',
        b"\x00\xff\xfe",
        b'{"id": "x", "text": "' + "😀".encode() * 100_000 + b'"}',
        b"A" * 10_000_000,
    ]
    async with start(partitions=1) as live:
        await live.start_worker()
        await live.send(bad)
        await live.send([post(1, WATER)])
        counts = await live.until_through(len(bad) + 1)
        assert counts["rejected"] == len(bad)
        assert counts.get("alert", 0) + counts.get("suggestion", 0) == 1
        rejects = [json.loads(r.value) for r in live.read("posts.rejected")]
        assert len(rejects) == len(bad)
        assert all(r["reason"] and r["detail"] for r in rejects)
        reasons = await live.view.counts("reasons")
        assert sum(reasons.values()) == len(bad)
