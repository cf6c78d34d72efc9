"""A Redis that was emptied under a running worker: Kafka has what it held, and what was deleted since stays deleted."""

import json

import pytest
from rich.progress import Progress

from streams.commands.restore import restore_view
from streams.commands.status import ask
from tests.e2e.test_deletion import keys_that_hold, until_acknowledged

pytestmark = pytest.mark.redis

WORD = "zebrafish77"
POSTS = [
    {"id": f"x/{n}", "lang": "en", "text": f"{what}, house {n}: {WORD if n == 4 else 'hurry'}"}
    for n in range(40)
    for what in [("we are trapped under the rubble, send a rescue team", "no drinking water at the school")[n % 2]]
]


async def shown(live):
    return await live.view.recent_alerts(), await live.view.clusters()


async def test_after_redis_was_emptied_under_a_worker_the_page_shows_the_same_and_what_was_deleted_stays_away(start):
    async with start(partitions=2) as live:
        await live.start_worker()
        await live.send([json.dumps(post).encode() for post in POSTS])
        await live.until_through(len(POSTS))

        async def placed() -> bool:
            alerts, clusters = await shown(live)
            return len(alerts) == 40 and all(alert.cluster_id for alert in alerts) and bool(clusters)

        await live.become(placed)
        before = await shown(live)

        await live.redis.flushdb()
        assert await shown(live) == ([], [])
        done = await restore_view(live.settings, Progress(disable=True))
        assert await shown(live) == before and (done.alerts_put, done.left_out) == (40, 0)

        await live.redis.flushdb()  # and this time somebody takes a post back before it is restored
        await live.send([b'{"id": "x/4", "kind": "delete"}'])
        await until_acknowledged(live)
        done = await restore_view(live.settings, Progress(disable=True))
        assert (done.alerts_put, done.withdrawn) == (39, 1)
        assert {a.post.id for a in (await shown(live))[0] if a.status == "withdrawn"} == {"x/4"}
        assert await keys_that_hold(live.redis, (WORD.encode(),)) == []

        async def is_live() -> bool:
            return (await ask(live.settings)).level == "live"

        await live.become(is_live)
