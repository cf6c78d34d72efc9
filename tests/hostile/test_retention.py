"""What was promised to go goes: no topic keeps closed segments for a week, every key of Redis with a text expires."""

import time

import pytest
from redis.asyncio import Redis

from models.clusters.state import Changes
from models.pseudonyms import Link
from streams.broker.topics import COMPACTED, topic_configs
from streams.config import load_settings
from streams.pipeline.ports import Claim
from streams.view.folder import RedisFolder
from streams.view.live import LiveView
from streams.view.snapshots import Snapshots
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


async def test_no_key_that_holds_a_text_or_a_link_stays_for_ever(redis_url):
    settings, text = load_settings(), WORD.decode()
    async with Redis.from_url(redis_url) as redis:
        await LiveView(redis, settings).put_alerts([invent(1, at=time.time(), text=text)])
        await Snapshots(redis, settings).save(Changes({"head": WORD}, [], True))
        said = [Claim(f"x/{n}", f"0:0:{n}", "f", None, post=WORD) for n in range(3)]
        await RedisFolder(redis, settings.key_prefix, 60).claim(said)
        await Vault(redis, settings).keep([Link("~a/1", text, text)])
        keys = [key async for key in redis.scan_iter()]
        assert len(keys) > 8 and not [key for key in keys if await redis.ttl(key) < 0]
