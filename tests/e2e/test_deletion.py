"""Deletion deletes: what a person took back is in no store and in no record written afterwards."""

from __future__ import annotations

import asyncio
import json
import time

import msgspec
import pytest
from click.testing import CliRunner
from redis.asyncio import Redis

from models.feedback.records import Label
from models.records import account_of
from streams.broker.authors import posts_of
from streams.broker.labels import publish_labels, read_labels
from streams.broker.lag import LagReader
from streams.commands.forget import forget_posts
from streams.commands.why_not import why_not
from streams.view.connect import connect
from streams.view.pseudonyms import load_pseudonyms
from tests.e2e.harness import Pipeline, newest
from tests.e2e.readers import Readers
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.redis

WORD, STREET, PLACE = b"zebrafish77", b"Ataturk Cad", b"36.2021"
ACCOUNT_S = b"okapi88"  # a word of the account that is closed
STAGES = 4
SEARCH = "mother under the rubble"


async def keys_that_hold(redis: Redis, words: tuple[bytes, ...]) -> list[bytes]:
    """Every key that holds one of the words in its name or value, whatever its type."""
    found = []
    async for key in redis.scan_iter(count=1000):
        kind = (await redis.type(key)).decode()
        if kind == "string":
            values = [await redis.get(key) or b""]
        elif kind == "hash":
            values = [x for pair in (await redis.hgetall(key)).items() for x in pair]
        elif kind == "list":
            values = await redis.lrange(key, 0, -1)
        elif kind == "zset":
            values = await redis.zrange(key, 0, -1)
        else:
            values = list(await redis.smembers(key))
        if any(word in value for value in (key, *values) for word in words):
            found.append(key)
    return found


async def until_acknowledged(live: Pipeline) -> None:
    """Every stage has worked off, and acknowledged, what was sent so far: when nothing waits for the first time the
    first stage has, and what it made lies before the second; and so on.
    """
    reader, asked = LagReader(live.settings), list[dict[str, int]]()

    async def nothing_waits() -> bool:
        asked.append(await reader.read())
        return len(asked) >= STAGES and not any(n for lag in asked[-STAGES:] for n in lag.values())

    await live.become(nothing_waits, lambda: asked[-STAGES:])
    await reader.close()


async def that_stay(redis: Redis) -> list[bytes]:
    """Every key that never expires."""
    return [key async for key in redis.scan_iter(count=1000) if await redis.ttl(key) < 0]


async def all_links(live: Pipeline) -> dict[str, list[tuple[str, int]]]:
    """Every link of the server by database, and for how long it stays: once in seven runs hers were in none."""
    found = {}
    for settings in (live.settings.redis, live.settings.privacy.vault):
        async with connect(settings) as redis:
            keys = [key async for key in redis.scan_iter(match="*:link:*", count=1000)]
            found[settings.url.rpartition("/")[2]] = [(key.decode(), await redis.ttl(key)) for key in keys]
    return found


async def test_a_post_goes_by_a_pseudonym_everywhere_and_its_deletion_leaves_every_store(start, record_property):
    cry = "my mother is trapped under the rubble, send a rescue team"
    url = "https://bsky.app/profile/did:plc:victim42/post/1"
    post = {
        "id": "bsky:did:plc:victim42/1",
        "text": f"URGENT {WORD.decode()} {cry} to {STREET.decode()} 12 @mehmet_k",
        "lang": "en",
    }
    post |= {"source": "bluesky", "author": "victim42.bsky.social", "url": url}
    post |= {"geo": {"lat": 36.2021, "lon": 36.1601}}
    closed = {"source": "bluesky", "author": "second7.bsky.social", "lang": "en", "geo": {"lat": 36.3131, "lon": 36.1}}
    closed |= {"text": f"{ACCOUNT_S.decode()} {cry} to the school"}
    theirs = [{"id": f"bsky:did:plc:second7/{n}"} | closed for n in range(3)]  # the later two are folded into the first
    theirs += [{"id": "bsky:did:plc:second7/9", "repost_of": "bsky:did:plc:o0/1"} | closed | {"text": f"{ACCOUNT_S}!"}]
    words = (WORD, STREET, PLACE, ACCOUNT_S, b"36.3131")
    names = (b"victim42", b"mehmet_k", b"bsky.app/profile", b"second7")
    async with start(partitions=2, keep_ids=False) as live:
        key, vault = load_pseudonyms(live.settings), connect(live.settings.privacy.vault)
        mine = key.id(post["id"])
        said = Label(mine, "need.search_rescue", "right", "Ada", time.time(), post["text"], "en")
        await asyncio.to_thread(publish_labels, live.settings, [said])
        await live.start_worker()
        readers = Readers(live, search=SEARCH)
        await readers.start()
        around = [{"id": f"bsky:did:plc:o{n}/1", "author": f"o{n}", "text": f"house {n}: {cry}"} for n in range(12)]
        await live.send([json.dumps(p).encode() for p in (post, *around)])
        await live.until_through(13)
        assert await keys_that_hold(live.redis, words), "it was in no store: the test shows nothing"
        await live.send([json.dumps(p).encode() for p in theirs])
        await live.until_through(17)
        kept = [k for k in await keys_that_hold(live.redis, (ACCOUNT_S,)) if b"fold:kept:" in k]
        assert len(kept) == 3, "no repeat was kept: the test shows nothing"
        assert not await keys_that_hold(live.redis, names) and await keys_that_hold(vault, names)
        topics = ("posts.clean", "posts.embedded", "posts.matched", "alerts", "clusters")
        assert not [
            t for t in topics for r in live.read(t) for name in names if name in (r.value or b"") + (r.key or b"")
        ]
        everywhere = ["/", "/api/alerts?n=1000", f"/api/search?text={SEARCH}&k=50", "json", "cap", "geojson"]

        async def told_everywhere() -> bool:
            held[:] = await readers.that_hold(words)
            return {*everywhere, "/events, from the beginning"} <= set(held)

        held: list[str] = []
        await live.become(told_everywhere, lambda: f"it was told by {held} only: the test would show nothing")
        told = len(live.alerts())
        trace = await asyncio.to_thread(CliRunner().invoke, why_not, [post["id"]], obj=live.settings)
        assert "It gave an alert" in trace.output, trace.output
        began = time.monotonic()
        gone = [post["id"], "bsky:did:plc:second7"]  # a post, and an account
        await live.send([json.dumps({"id": i, "kind": "delete"}).encode() for i in gone])
        await live.until_through(19)
        await until_acknowledged(live)
        left: list = []

        async def nowhere() -> bool:
            left[:] = await readers.that_hold((*words, *names))
            return not left

        # Stores hold nothing once the deletion is acknowledged, and no later; who reads hears of it in his own time.
        assert not await keys_that_hold(live.redis, words) and not await keys_that_hold(vault, names)
        assert not await asyncio.to_thread(read_labels, live.settings)
        await live.become(nowhere, lambda: left)
        record_property(
            "seconds_until_clean", round(time.monotonic() - began, 1)
        )  # promised: 10, where nothing else runs
        assert [line for line in readers.lines("cap") if "<msgType>Cancel</msgType>" in line]
        assert [line for line in readers.lines("text") if "withdrawn" in line]
        assert not await that_stay(live.redis) and not await that_stay(vault)
        await vault.aclose()
        now, account = newest(live.alerts()), key.id("bsky:did:plc:second7")
        withdrawn = [a for a in now.values() if a["post"]["id"] == mine or account_of(a["post"]["id"]) == account]
        assert {account_of(a["post"]["id"]) for a in withdrawn} == {account_of(mine), account}
        assert len(live.alerts()) > told and {a["status"] for a in withdrawn} == {"withdrawn"}
        assert not [word for a in withdrawn for word in (*words, *names) if word in json.dumps(a).encode()]
        for topic in ("alerts", "clusters", "labels"):  # what compaction leaves: the last record of each key
            last = {record.key: record.value or b"" for record in live.read(topic)}
            assert not [word for value in last.values() for word in words if word in value], topic
        assert all([await live.redis.ttl(f"{live.view.prefix}alert:{a['alert_id']}") > 0 for a in now.values()])


async def test_a_forgotten_author_is_in_no_store_and_the_receipt_names_nobody(start):
    cry = "we are trapped under the rubble, send a rescue team"
    words = (WORD, b"@Ayse_K", b"a.example/77")
    hers = [
        {
            "id": f"web:{n}",
            "author": "@Ayse_K ",
            "text": f"{WORD.decode()} {cry}, house {n}",
            "url": "https://a.example/77",
        }
        for n in range(3)
    ]
    others = [{"id": f"web:o{n}", "author": f"o{n}", "text": f"house {n}: {cry}"} for n in range(12)]
    async with start(partitions=2, keep_ids=False) as live:
        mine = load_pseudonyms(live.settings).id(hers[0]["id"])
        said = Label(mine, "need.search_rescue", "right", "Ada", time.time(), hers[0]["text"], "en")
        await asyncio.to_thread(publish_labels, live.settings, [said])
        await live.start_worker()
        await live.send([json.dumps(p).encode() for p in (*hers, *others)])
        await live.until_through(15)
        await live.until_placed()
        assert await keys_that_hold(live.redis, words), "she was in no store: the test shows nothing"
        ids = await asyncio.to_thread(posts_of, live.settings, "ayse_k")
        assert sorted(ids) == [p["id"] for p in hers]
        before = await all_links(live)
        receipt = await forget_posts(live.settings, ids, None, within_s=PATIENCE_S)
        assert (receipt.clean, receipt.posts) == (True, 3), receipt
        held = {store: receipt.before[store] for store in ("alerts", "snapshot", "labels", "links")}
        assert all(held.values()), f"she was in no such store: {held}\n{before}\n{await all_links(live)}\n{live.logs()}"
        assert not await keys_that_hold(live.redis, words)
        assert not await asyncio.to_thread(read_labels, live.settings)
        for topic in ("alerts", "clusters"):  # what compaction leaves: the last record of each key
            last = {record.key: record.value for record in live.read(topic)}
            assert (last or topic == "clusters") and not [
                value for value in last.values() for word in words if word in value
            ], topic
        told = msgspec.json.encode(receipt)
        assert not [word for word in (*words, b"web:") if word in told]
        again = await forget_posts(live.settings, ids, None, within_s=PATIENCE_S)
        assert again.clean and not any(again.before.values())
        assert len([a for a in newest(live.alerts()).values() if a["status"] == "active"]) >= 12
