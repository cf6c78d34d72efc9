"""What one worker makes of posts, live: all of these share a pipeline, each with posts of its own."""

import asyncio
import contextlib
import itertools
import json
from collections import Counter

import msgspec
import pytest
from kafka import KafkaProducer

from models.matching import READINGS
from models.queries import load_queries
from models.records import Frame, MatchedFrame
from streams.broker.queries import publish_queries
from streams.pipeline.frames import decode_frames
from tests.e2e.harness import newest
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.redis, pytest.mark.asyncio(loop_scope="module")]


def post(post_id: object, text: str, **fields) -> bytes:
    return json.dumps({"id": f"t-{post_id}", "text": text, "lang": "en", "source": "test", **fields}).encode()


WATER = "We have had no drinking water for two days, please send water"


async def test_a_new_query_matches_without_a_restart(live):
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


async def test_a_deleted_posts_alerts_are_withdrawn_and_an_edited_one_follows_its_new_text(live):
    await live.send([post("gone", WATER), post("edited", WATER + " for the children of the school")])
    await live.until(lambda c: c.get("alert", 0) + c.get("suggestion", 0) >= 2)
    await live.send([json.dumps({"id": "t-gone", "kind": "delete"}).encode()])
    await live.send([post("edited", "all good now, thank you everyone", kind="update")])
    await live.until_through(4)
    state = {(a["post"]["id"], a["status"], a.get("withdrawn_because")) for a in newest(live.alerts()).values()}
    assert state == {("t-gone", "withdrawn", "deleted"), ("t-edited", "withdrawn", "edited")}


async def test_the_last_posts_before_a_quiet_time_are_told_their_cluster_though_nobody_comes_after_them(live):
    places = ("the mill", "the school", "the harbour", "the old bakery")
    await live.send([post(f"q-{n}", f"We are trapped on the roof of {at}, send a boat") for n, at in enumerate(places)])

    async def clusters() -> set[str] | None:
        named = [a.get("cluster_id") for a in newest(live.alerts()).values()]
        return set(named) if len(named) == len(places) and all(named) else None

    assert len(await live.become(clusters)) == 1


async def test_repeats_are_counted_with_their_original_and_alert_once(live):
    await live.send([post(f"again-{n}", WATER + " to the old mill", author="one") for n in range(10)])
    counts = await live.until_through(10)
    assert counts["folded"] == 9
    alerted = {a["post"]["id"] for a in live.alerts()}
    assert len(alerted) == 1
    assert await live.view.repeats_of(sorted(alerted)) == [9]


async def test_bad_input_becomes_clear_rejects_and_the_worker_goes_on(live):
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
    before = await live.view.counts("reasons")
    await live.send(bad)
    await live.send([post("good", WATER + " to the harbour")])
    counts = await live.until_through(len(bad) + 1)
    assert counts["rejected"] == len(bad)
    assert counts.get("alert", 0) + counts.get("suggestion", 0) == 1
    rejects = [json.loads(r.value) for r in live.read("posts.rejected")]
    assert len(rejects) == len(bad)
    assert all(r["reason"] and r["detail"] for r in rejects)
    reasons = await live.view.counts("reasons")
    assert sum(reasons.values()) == sum(before.values()) + len(bad)


def frames(live, topic, kind):
    """Every frame of a topic; none may be beyond what the settings allow."""
    records = live.read(topic)
    assert max(len(r.value) for r in records) <= live.settings.worker.frame_bytes
    return [frame for r in records for frame in decode_frames(r.value, kind)]


async def test_posts_that_match_many_queries_are_read_once_each_and_clustered(live):
    """A post names every need there is; it has one alert and at most READINGS readings."""
    needs = " ".join(q.sentences["en"][0] for q in load_queries() if q.kind == "need")
    ids = [f"bsky:did:plc:{'x' * 24}/{number:013}" for number in range(300)]
    await live.send(json.dumps({"id": i, "text": f"{needs} {n}", "lang": "en"}).encode() for n, i in enumerate(ids))
    counts = await live.until_through(len(ids))
    assert counts["alert"] == len(ids)
    await live.until_placed()
    matched = frames(live, "posts.matched", MatchedFrame)
    assert [p.id for f in matched for p in f.posts] == ids
    readings = Counter(m.post_id for f in matched for m in f.matches)
    assert set(readings) == set(ids) and max(readings.values()) == READINGS


async def test_a_record_full_of_short_repeats_of_a_post_with_a_long_id_is_counted(live):
    """Each repeat names its original: 1 MB of posts.raw becomes 2 MB of posts.clean."""
    text, repeats = "we need water", 18_000
    record = b"\n".join(json.dumps({"id": f"a/{n}", "text": text, "author": "a"}).encode() for n in range(repeats))
    await live.send([json.dumps({"id": "a/" + "x" * 50, "text": text, "author": "a"}).encode()])
    await live.until_through(1)
    topic = live.settings.topics.name("posts.raw")
    with contextlib.closing(KafkaProducer(bootstrap_servers=live.settings.broker.bootstrap)) as producer:
        await asyncio.to_thread(producer.send(topic, record).get, PATIENCE_S)
    await live.send([json.dumps({"id": "after-it", "text": "nice weather for a walk today"}).encode()])
    counts = await live.until_through(repeats + 2)
    assert counts["folded"] == repeats
    assert await live.view.repeats_of(["a/" + "x" * 50]) == [repeats]
    await live.until_placed()
    clean = frames(live, "posts.clean", Frame)
    assert [r.id for f in clean for r in f.repeats] == [f"a/{n}" for n in range(repeats)]
    assert any(f.origin.item for f in clean), "no frame had to be cut: the test shows nothing"


async def test_a_large_record_that_is_no_frame_is_refused_and_the_worker_goes_on(live):
    """Somebody else's on our inner topic. Whole and as base64 it would be larger than the broker takes."""
    with contextlib.closing(KafkaProducer(bootstrap_servers=live.settings.broker.bootstrap)) as producer:
        sent = producer.send(live.settings.topics.name("posts.clean"), b"\xff" * 900_000, partition=0)
        await asyncio.to_thread(sent.get, PATIENCE_S)
    await live.send([json.dumps({"id": "after-that", "text": "the sun shines on the lake"}).encode()])
    await live.until_through(1)
    assert [json.loads(r.value)["reason"] for r in live.read("posts.rejected")] == ["bad_frame"]
