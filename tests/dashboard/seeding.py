"""Fills Redis with invented alerts and clusters, hostile ones too. To look at the page while working on it:

    CRISIS_REDIS__URL=redis://127.0.0.1:6379/9 python -m tests.dashboard.seeding [--posts streams/data/demo.jsonl]

serves it on port 8080 and lets a new alert in now and then.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from models.moments import rfc3339
from models.records import Alert, Origin, Repeat
from streams.broker.topics import AGENTS
from streams.view.live import LiveView
from streams.view.status import WorkerStatus
from tests.dashboard.invented import LABELS, clusters_of, hostile, one_alert, several

SPEAKS_S = 3600.0  # a worker whose word is so far ahead counts as speaking, however slow the machine of the test


async def fill(
    view: LiveView, alerts: list[Alert], now: float, *, hostile_too: bool = False, posts: Iterable[tuple[str, str]] = ()
) -> None:
    """Alerts, clusters, counters, latencies and workers, as a running pipeline would leave them."""
    events, placed = clusters_of(alerts, now, hostile_too=hostile_too)
    await view.put_alerts(alerts + (hostile(now) if hostile_too else []))
    await view.put_clusters(events)
    await view.put_alerts(placed)
    seen = list(posts) or [(a.post.lang, a.post.source) for a in alerts for _ in range(4)]
    sure = sum(a.level == "alert" for a in alerts)
    counts = {
        "read": len(seen) + 31,
        "accepted": len(seen),
        "alert": sure,
        "suggestion": len(alerts) - sure,
        "no_match": len(seen) - len(alerts),
        "folded": 24,
        "rejected": 7,
    }
    await view.count(
        "normalise",
        Origin(0, 1),
        {
            "counts": counts,
            "langs": Counter(lang for lang, _ in seen),
            "sources": Counter(s for _, s in seen),
            "reasons": {"bad_json": 5, "no_text": 2},
        },
    )
    dice = random.Random(3)
    await view.add_latencies([max(60.0, dice.gauss(410, 140)) for _ in range(300)])
    await view.repeat([Repeat(f"r{i}", a.post.id, now) for a in alerts[-4::3] for i in range(11)])
    for i in (1, 2):
        await view.put_worker(
            f"worker-{i}",
            WorkerStatus(now + SPEAKS_S, list(AGENTS[: 4 if i == 1 else 3]), "static-1", {"posts.raw": 0}),
        )


def _demo(path: Path, now: float) -> tuple[list[Alert], list[tuple[str, str]]]:
    rows = []
    for line in path.read_bytes().splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:  # the file holds broken lines on purpose
            continue
    rows = [r for r in rows if isinstance(r, dict) and r.get("gold_lang")]
    dice, alerts = random.Random(5), []
    for n, row in enumerate(rows):
        if "." in row["gold"]:
            source = str(row.get("source", "demo"))
            alert = one_alert(dice, n, row["gold"], row["gold_lang"], row["text"], now - (len(rows) - n) * 3.1, source)
            alerts.append(alert)
    return alerts, [(r["gold_lang"], str(r.get("source", "demo"))) for r in rows]


async def main() -> None:
    from models.queries import load_queries
    from streams.config import load_settings
    from streams.dashboard import serve
    from streams.view.connect import connect

    parser = argparse.ArgumentParser()
    parser.add_argument("--posts", type=Path)
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--every", type=float, default=2.0, help="seconds between new alerts; 0 = none")
    asked = parser.parse_args()
    LABELS.update({q.category: q.label for q in load_queries()})
    settings, now = load_settings(), time.time()
    redis = connect(settings.redis)
    view = LiveView(redis, settings)
    await view.clear()
    alerts, posts = _demo(asked.posts, now) if asked.posts else (several(60, now), [])
    later = alerts[-40:] if asked.every else []
    await fill(view, alerts[: len(alerts) - len(later)], now, hostile_too=asked.hostile, posts=posts)

    async def trickle() -> None:
        for number, alert in enumerate(later):
            await asyncio.sleep(asked.every)
            at = time.time()
            await view.put_alerts([msgspec.structs.replace(alert, revision=int(at * 1000), seen_at=rfc3339(at))])
            await view.count("normalise", Origin(0, 2 + number), {"counts": {"read": 25, "no_match": 24, "alert": 1}})

    async def beat() -> None:
        while True:
            for i in (1, 2):
                await view.redis.hset(
                    view.key("workers"),
                    f"worker-{i}",
                    json.dumps(
                        {
                            "at": time.time(),
                            "agents": ["normalise", "embed", "match", "cluster"][: 4 if i == 1 else 3],
                            "encoder_version": "static-1",
                            "state": "ready",
                            "message": "",
                        }
                    ),
                )
            await asyncio.sleep(1)

    tasks = [asyncio.create_task(trickle()), asyncio.create_task(beat())]
    await serve(settings, search=False)
    for task in tasks:
        task.cancel()
    await redis.aclose()


if __name__ == "__main__":
    asyncio.run(main())
