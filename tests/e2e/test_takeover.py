"""Encoder versions taken over live: by real workers, under load, back again, and with kills in the middle."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter

import msgspec
import pytest

from models.encoders.registry import encoder_of
from models.records import EmbeddedFrame, Reject
from streams.broker.queries import publish_queries
from streams.commands.rejected_posts import taken_out
from streams.pipeline.outcomes import through
from streams.releases.topic import change_release
from tests.e2e.harness import Pipeline
from tests.e2e.takeovers import (
    QUERIES,
    Load,
    all_on,
    check_every_alert_says_what_its_version_gives,
    check_every_post_once_and_every_frame_by_one_version,
    clusters,
    first_frame_of,
    frames,
    kept,
    many_clusters,
    use,
)

pytestmark = pytest.mark.redis


async def test_a_swap_and_a_rollback_under_load_lose_and_repeat_nothing(start, versions, record_property, capsys):
    async with start(partitions=4) as live:
        await asyncio.to_thread(publish_queries, live.settings, {q.id: q for q in QUERIES})
        for _ in range(2):
            await live.start_worker()
        v1, v2 = versions["v1"], versions["v2"]
        await all_on(live, v1, 2)
        async with Load(live) as load:
            before = await many_clusters(live, 27)
            from_s = time.time()
            await asyncio.to_thread(use, live, v2)
            await all_on(live, v2, 2)
            await live.until_more(120)
            between = await clusters(live)
            await asyncio.to_thread(change_release, live.settings, lambda r: r.rollback(time.time()))
            await all_on(live, v1, 2)
            await live.until_more(120)
            until_s = time.time()
        counts = await live.until_through(load.sent)
        await live.until_placed()
        after = await clusters(live)
        check_every_post_once_and_every_frame_by_one_version(live, load.sent, counts)
        served = Counter(f.encoder_version for f in frames(live))
        assert set(served) == {encoder_of(v1), encoder_of(v2)}
        check_every_alert_says_what_its_version_gives(live, (v1, v2))
        shares = [kept(before, between), kept(between, after)]
        assert min(shares) >= 0.95
        fed = max(gaps_s(live, "posts.raw", from_s, until_s))  # tells a slow machine from a slow take-over
        pauses = [gap for topic in ("alerts", "posts.matched") for gap in gaps_s(live, topic, from_s, until_s)]
        record_property("longest pause, s", max(pauses))
        with capsys.disabled():
            print(
                f"\n{load.sent} posts, frames {dict(served)}, longest pause {max(pauses):.2f} s (input {fed:.2f}), "
                f"clusters kept {shares}"
            )


def gaps_s(live: Pipeline, topic: str, from_s: float, until_s: float) -> list[float]:
    """Seconds between one record and the next, by the broker's clock."""
    at = sorted(r.timestamp / 1000 for r in live.read(topic))
    at = [from_s, *(t for t in at if from_s <= t <= until_s), until_s]
    return [b - a for a, b in zip(at, at[1:], strict=False)]


async def test_workers_killed_in_the_middle_of_a_take_over_end_on_the_right_version_with_nothing_lost(start, versions):
    async with start(partitions=4) as live:
        await asyncio.to_thread(publish_queries, live.settings, {q.id: q for q in QUERIES})
        first = await live.start_worker()
        second = await live.start_worker()
        await all_on(live, versions["v1"], 2)
        async with Load(live) as load:
            await live.until(lambda c: c.get("alert", 0) > 50)
            before = await many_clusters(live, 24)
            await asyncio.to_thread(use, live, versions["v2"])
            await live.kill(first)  # while it fetches and loads
            await live.start_worker()
            await first_frame_of(live, versions["v2"])
            await live.kill(second)  # it has switched: frames of both versions are under way, clusters are moving
            await live.start_worker()
            await all_on(live, versions["v2"], 2)
            await live.until_more(60)
        counts = await live.until_through(load.sent)
        await live.until_placed()
        lines = [line for record in live.read("posts.raw") for line in record.value.splitlines()]
        assert len(lines) == load.sent, f"the load wrote {len(lines)} lines: nothing is said of the workers"
        assert counts["read"] == load.sent
        assert through(counts) == load.sent
        refused = refused_after_two_deaths(live)  # as promised: two kills may meet the same record
        assert len({p.id for f in frames(live) for p in f.posts} | refused) == load.sent
        assert counts.get("rejected", 0) == len(refused)
        shown = await live.view.recent_alerts(100_000)
        assert len({a.alert_id for a in shown}) == len(shown)
        check_every_alert_says_what_its_version_gives(live, versions.values())
        assert kept(before, await clusters(live)) >= 0.95
        last = live.frames("posts.embedded", EmbeddedFrame)[-1]
        assert last.encoder_version == encoder_of(versions["v2"])


def refused_after_two_deaths(live: Pipeline) -> set[str]:
    """Ids of the posts of records that both kills met: lines where they were read first, frames of ours behind that."""
    rejects = [msgspec.json.decode(record.value, type=Reject) for record in live.read("posts.rejected")]
    assert {reject.reason for reject in rejects} <= {"worker_died"}
    first, later = ([r for r in rejects if (r.stage == "normalise") == raw] for raw in (True, False))
    untold: Counter[str] = Counter()
    posts = {post.id for frame in taken_out(live.settings, later, untold) for post in frame.posts}
    assert not untold
    return posts | {json.loads(line)["id"] for reject in first for line in reject.raw.splitlines()}
