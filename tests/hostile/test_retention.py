"""What was promised to go goes: no topic keeps closed segments for a week, every key of Redis expires."""

import re
import time

import pytest
from redis.asyncio import Redis

from models.clusters.state import Changes
from models.moments import rfc3339
from models.pseudonyms import Link, Pseudonyms
from models.records import ClusterEvent, Origin, Repeat
from streams.broker.topics import COMPACTED, topic_configs
from streams.config import load_settings
from streams.pipeline.ports import Claim, Gone
from streams.view import live
from streams.view.attempts import Attempts
from streams.view.folder import RedisFolder
from streams.view.offsets_of import OffsetsOf
from streams.view.pseudonyms import check_key
from streams.view.scripts import script
from streams.view.snapshots import Snapshots
from streams.view.status import WorkerStatus
from streams.view.vault import Vault
from tests.dashboard.invented import invent

WORD = b"zebrafish77"


@pytest.mark.parametrize("hours", [0.25, 1.0, 72.0])
def test_a_slow_topic_drops_what_is_over_its_time_within_the_hour(hours):
    for name, topic in topic_configs(load_settings(topics={"retention_h": hours})).items():
        config = topic["configs"]
        if name not in COMPACTED:
            assert int(config["segment.ms"]) <= 3_600_000 and int(config["retention.ms"]) == hours * 3_600_000
        if name in ("labels", "alerts", "clusters"):
            assert "compact" in config["cleanup.policy"] and int(config["max.compaction.lag.ms"]) <= 3_600_000


NAMED = re.findall(r"^\| ([^|]+) \|", live.__doc__ or "", re.M)[1:]  # the table of keys, without its head
NO_KEY = {"live-alerts", "live-clusters"}  # channels
FOLDED = {"text", "of", "heads", "mine", "raised"}  # kinds of keys that claim.lua names as it asks for them


async def test_every_key_that_a_run_leaves_expires(redis_url):
    settings, text, now = load_settings(), WORD.decode(), time.time()
    async with Redis.from_url(redis_url) as redis:
        view = live.LiveView(redis, settings)
        await check_key(redis, settings, Pseudonyms(b"k" * 40))
        await view.put_worker("w", WorkerStatus())
        await view.put_source("http")
        counters = ["counts", "langs", "sources", "reasons", "queries", "matched-langs", "trial-7"]
        await view.count("match", Origin(0, 1), {n: {"x": 1} for n in (*counters, "put-by-langs", "put-by-sources")})
        await view.put_alerts([invent(1, at=now, text=text)])
        first, last = rfc3339(now - 10), rfc3339(now)
        for kind, into in (("grow", None), ("expire", None), ("merge", "c-grow")):
            await view.put_clusters([ClusterEvent(kind, f"c-{kind}", 1, 5, 4.0, first, last, text, "v1", into=into)])
        await view.put_proposals([])
        await view.repeat([Repeat("x/2", "x/1", now)])
        await view.mark_gone(["x/1"])
        await view.add_latencies([1.0])
        await Snapshots(redis, settings).save(Changes({"head": WORD}, [], True))
        await Attempts(redis, settings).begin([("embed", 0, 1)])
        await OffsetsOf(redis, settings).note({("posts.clean", 0): "an id"})
        said = [Claim(f"x/{n}", f"0:0:{n}", "f", None, post=WORD) for n in range(3)]
        others = [Claim(f"y{n}/1", f"0:1:{n}", f"f{n}", "x/0", post=WORD) for n in range(3)]
        folder = RedisFolder(redis, settings.key_prefix, 60, kept=1)
        await folder.claim([*said, *others, Gone("x/0", "0:2:0")])
        await Vault(redis, settings).keep([Link("~a/1", text, text)])
        await Vault(redis, settings).drop(["~a/2"])
        keys = [key.decode() async for key in redis.scan_iter()]
        assert not [key for key in keys if await redis.ttl(key) < 0]
    named = [re.sub(r"\bID$|\*$|\bN$", "", name) for row in NAMED for name in row.split(", ")]
    fold = {key.split(":")[2] for key in keys if key.startswith(f"{settings.key_prefix}fold:")}
    written = re.findall(r"(?:\bset\(|redis.call\('ZADD', )prefix \.\. '(\w+):", script("claim"))
    assert fold == set(written) | FOLDED
    assert len(named) > 20
    assert not [n for n in set(named) - NO_KEY if not any(k.startswith(settings.key_prefix + n) for k in keys)]
    short = [key.removeprefix(settings.key_prefix) for key in keys if not key.startswith("vault:")]
    assert not [key for key in short if not any(key == n or n[-1] in ":-" and key.startswith(n) for n in named)]
