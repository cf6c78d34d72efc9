"""The Redis users of deploy/security.md can do what their processes do, and nothing beyond."""

import re
import time
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError

from models.clusters.state import Changes
from models.pseudonyms import Link, Pseudonyms
from models.records import Origin
from streams.config import load_settings
from streams.pipeline.ports import Claim, Gone
from streams.view.attempts import Attempts
from streams.view.folder import RedisFolder
from streams.view.live import LiveView
from streams.view.offsets_of import OffsetsOf
from streams.view.pseudonyms import key_trouble
from streams.view.snapshots import Kept, Snapshots
from streams.view.status import WorkerStatus
from streams.view.vault import Vault
from tests.dashboard.invented import invent

GUIDE = (Path(__file__).parents[2] / "deploy" / "security.md").read_text(encoding="utf-8")
USERS = dict(re.findall(r"^user ([\w-]+) (.+)$", GUIDE, re.M))


@pytest.fixture
async def as_user(redis_url):
    opened = []

    async def open_as(name):
        admin, user = Redis.from_url(redis_url), f"{name}-of-the-guide"
        rules = re.findall(r"\([^)]*\)|\S+", USERS[name].replace("SECRET", "secret"))  # a selector is one rule
        await admin.execute_command("ACL", "SETUSER", user, "reset", *rules)
        client = Redis.from_url(redis_url, username=user, password="secret")
        opened.extend((admin, client))
        return client

    yield open_as
    for client in opened:
        await client.aclose()


async def test_a_worker_can_do_all_it_does_and_touch_nothing_else(as_user):
    settings, redis = load_settings(), await as_user("worker")
    view, snapshots = LiveView(redis, settings), Snapshots(redis, settings)
    assert await Attempts(redis, settings).begin([("embed", 0, 1)]) == [1]
    await OffsetsOf(redis, settings).note({("posts.clean", 0): "an id"})
    assert await OffsetsOf(redis, settings).others({("posts.clean", 0): "another"}) == {("posts.clean", 0)}
    await RedisFolder(redis, settings.key_prefix, 60).claim([Claim("1", "0:0:0", "f", None), Gone("2", "0:0:1")])
    assert await view.put_alerts([invent(1, at=time.time())])
    assert await view.count("match", Origin(0, 1), {"counts": {"alert": 1}})
    await view.mark_gone(["x"])
    await view.put_worker("w", WorkerStatus(time.time()))
    assert await key_trouble(redis, settings, Pseudonyms(b"k" * 40)) == ""
    await view.add_latencies([1.0])
    await snapshots.load()
    assert await snapshots.save(Changes({"head": b"state"}, [], True)) is Kept.SAVED
    assert await view.clear()
    for forbidden in (redis.flushall(), redis.config_get("*"), redis.set("others", 1), redis.keys("*")):
        with pytest.raises(NoPermissionError):
            await forbidden


async def test_a_dashboard_can_read_and_follow_and_write_nothing(as_user):
    settings, redis = load_settings(), await as_user("dashboard")
    view = LiveView(redis, settings)
    assert await view.recent_alerts() == [] and await view.workers() == {} and await view.counts() == {}
    async with redis.pubsub() as channel:
        await channel.subscribe(view.key("live-alerts"), view.key("live-clusters"))
    await redis.ping()
    assert await view.sources() == {} and await view.now() > 0
    with pytest.raises(NoPermissionError):
        await view.put_worker("w", WorkerStatus(time.time()))


async def test_a_source_can_say_that_it_lives_and_read_nothing(as_user):
    settings = load_settings()
    view, everybody = LiveView(await as_user("ingest"), settings), LiveView(await as_user("dashboard"), settings)
    await view.put_source("http", "slow")
    told = (await everybody.sources())["http"]
    assert told.message == "slow" and abs(told.at - await everybody.now()) < 60
    await view.drop_source("http")
    assert await everybody.sources() == {}
    for forbidden in (view.workers(), view.sources(), view.counts(), view.put_worker("w", WorkerStatus())):
        with pytest.raises(NoPermissionError):
            await forbidden


async def test_a_worker_can_put_links_into_the_vault_and_never_read_one(as_user, redis_url):
    link = Link("~a/1", "bsky:did:plc:a/1", "https://a.example/1")
    writer, reader = await as_user("vault-writer"), await as_user("vault-reader")
    written, read = Vault(writer, load_settings()), Vault(reader, load_settings())
    await written.check()
    await written.keep([link])
    await written.prolong([link.post_id])
    assert await read.open(link.post_id, "ada") == link and len(await read.openings()) == 1
    async with Redis.from_url(redis_url) as admin:
        assert 0 < await admin.ttl("vault:log") <= load_settings().privacy.log_days * 86_400
    hastened = reader.pexpire("vault:link:~a/1", 1)
    for forbidden in (writer.get("vault:link:~a/1"), writer.xrange("vault:log"), reader.delete("vault:log"), hastened):
        with pytest.raises(NoPermissionError):
            await forbidden
    with pytest.raises(NoPermissionError):
        await written.open(link.post_id, "a worker")
    await written.drop(["~a"])
    assert await read.held([link.post_id]) == 0
