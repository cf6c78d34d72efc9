"""The live path, end to end: real processes, a real broker (both of them), real Redis."""

import asyncio
import json
import time

import pytest

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
