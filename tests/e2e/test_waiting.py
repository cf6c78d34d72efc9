"""More posts than the reader reads: what was put by is read later, once, whatever happens to the worker meanwhile."""

import asyncio
import json
from collections import Counter

import pytest

from models.records import EmbeddedFrame, Frame
from streams.ingest.writer import WriterConfig, open_writer
from streams.pipeline.outcomes import MATCHED, put_by

pytestmark = pytest.mark.redis

TEXTS = (
    "we are trapped on the roof, the water is rising, house {n}",
    "lovely weather for football today, match {n}",
    "the bus number {n} was late again this morning",
    "bugün hava çok güzel, maç saat {n}",
)
LANGUAGES = ("en", "en", "en", "tr")


def lines(begin: int, end: int) -> list[tuple[str, bytes]]:
    found = []
    for n in range(begin, end):
        text, lang = TEXTS[n % 4].format(n=n), LANGUAGES[n % 4]
        post = {"id": f"w-{n}", "text": text, "lang": lang, "source": f"source-{n % 2}"}
        found.append((post["id"], json.dumps(post).encode()))
    return found


async def burst(live, posts: list[tuple[str, bytes]]) -> None:
    """In small frames, so that many wait."""
    ingest = live.settings.ingest.model_copy(update={"writer": WriterConfig(frame_posts=4)})
    settings = live.settings.model_copy(update={"ingest": ingest})

    def write() -> None:
        with open_writer(settings) as writer:
            for key, line in posts:
                writer.write(line, key=key)

    await asyncio.to_thread(write)


async def test_a_flood_is_skimmed_and_all_of_it_read_in_context_once_though_the_worker_is_killed(start, monkeypatch):
    monkeypatch.setenv("CRISIS_ENCODER__REF", "reader")
    monkeypatch.setenv("CRISIS_WORKER__CONTEXT_WITHIN_S", "0.1")
    async with start(partitions=2) as live:
        first = await live.start_worker()
        sent = 0

        async def some_waits() -> bool:  # the skim is loaded beside the first posts: they are read as they come
            nonlocal sent
            await burst(live, lines(sent, sent + 200))
            sent += 200
            await live.until(lambda counts: counts.get("read", 0) >= sent)
            return put_by(await live.view.counts()) > 0

        await live.become(some_waits)
        await live.kill(first)
        await live.start_worker()
        counts = await live.until_through(sent)
        await live.until(lambda counts: counts.get("taken_up", 0) >= counts["put_by"])

        assert counts["read"] == sent == sum(counts.get(k, 0) for k in MATCHED)
        waited = await asyncio.to_thread(live.frames, "posts.waiting", Frame)
        marks = {post.id: post.put_by for frame in waited for post in frame.posts}
        assert marks and all(mark is not None for mark in marks.values())
        assert {frame.origin.turn for frame in waited} <= {1, 2, 3}
        embedded = await asyncio.to_thread(live.frames, "posts.embedded", EmbeddedFrame)
        read = {post.id: post for frame in embedded for post in frame.posts}
        assert read.keys() == {f"w-{n}" for n in range(sent)}
        at_once = {p.id for f in embedded for p in f.posts if p.put_by is None}
        for lang in ("en", "tr"):
            for source in ("source-0", "source-1"):
                group = {i for i, p in read.items() if (p.lang, p.source) == (lang, source)}
                assert not group or group & at_once, f"all posts in {lang} of {source} had to wait"
        alerted = Counter(alert["post"]["id"] for alert in live.alerts() if alert["status"] == "active")
        assert {i for i in alerted if int(i[2:]) % 4 == 0} == {f"w-{n}" for n in range(0, sent, 4)}
        assert (await live.view.counts("put-by-sources")).keys() <= {"source-0", "source-1"}
