"""Two versions of equal quality, a steady load, and what must hold of every post and alert of a take-over."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterable

import msgspec
import pytest

from models.encoders.registry import encoder_of
from models.queries import Query
from models.records import EmbeddedFrame, MatchedFrame
from streams.ingest.lines import head_of, key_of
from streams.ingest.writer import open_writer
from streams.pipeline.outcomes import through
from streams.releases.topic import change_release
from streams.releases.versions import load_version, make_ready
from tests.e2e.harness import Pipeline
from tests.releases.tiny import in_ek

PLACES = [f"district{n}" for n in range(24)]
NEEDS = [
    "we have no drinking water, please send water",
    "people are trapped on the roof, please send a boat",
    "we need doctors and medicine, many are hurt",
]
TALK = ["lovely weather for football today", "the cat sat on the old wall", "new song out tomorrow listen"]
HAPPENINGS = [
    f"{in_ek(NEEDS[n % 3])} {p} millers{n} canals{n} squares{n} towers{n} chapel{n}" for n, p in enumerate(PLACES)
]
QUERIES = [
    Query(id=f"need.{c}", kind="need", category=c, label=c, sentences={"en": [text]}, threshold=0.35)
    for c, text in zip(("tkwater", "tkroof", "tkdoctor"), NEEDS, strict=True)
]


def post(number: int) -> bytes:
    text = HAPPENINGS[(number // 4 * 3 + number % 4 - 1) % 24] if number % 4 else TALK[number // 4 % 3]
    return json.dumps(
        {"id": f"t-{number}", "text": f"{text} note{number % 60} no {number}", "lang": "en", "source": "test"}
    ).encode()


class Load:
    """Posts at a steady rate until told to stop, from a thread and a producer of its own. make: a post's number → its
    line.
    """

    def __init__(self, live: Pipeline, per_s: int = 60, make: Callable[[int], bytes] = post) -> None:
        self.live, self.per_s, self.make, self.sent = live, per_s, make, 0
        self._stop = threading.Event()

    async def __aenter__(self) -> Load:
        self._task = asyncio.create_task(asyncio.to_thread(self._run))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        await self._task

    def _run(self) -> None:
        started, every_s = time.monotonic(), 0.1
        with open_writer(self.live.settings) as writer:  # leaves when the broker has all of it
            while not self._stop.wait(every_s):
                due = int((time.monotonic() - started) * self.per_s)
                for line in map(self.make, range(self.sent, due)):
                    writer.write(line, key=key_of(head_of(line)))
                self.sent = due


def use(live: Pipeline, version: str) -> None:
    change_release(live.settings, lambda r: r.use(version, time.time()))


async def all_on(live: Pipeline, version: str, workers: int) -> None:
    """Every living worker says that this version serves."""

    async def are() -> bool:
        said = await live.speaking()
        return len(said) == workers and {w.encoder_version for w in said} == {encoder_of(version)}

    await live.become(are)


def frames(live: Pipeline) -> list[MatchedFrame]:
    return live.frames("posts.matched", MatchedFrame)


def check_every_post_once_and_every_frame_by_one_version(live: Pipeline, sent: int, counts: dict[str, int]) -> None:
    assert counts["read"] == sent
    assert through(counts) == sent
    matched = frames(live)
    assert len({p.id for f in matched for p in f.posts}) == sent - counts.get("folded", 0)
    made_by = {post.id: set() for f in matched for post in f.posts}
    for f in matched:
        for p in f.posts:
            made_by[p.id].add(f.encoder_version)
    published = live.alerts()
    # What a post was matched by is what its alerts say; a redelivered frame may have met the next version.
    assert all(a["encoder_version"] in made_by[a["post"]["id"]] for a in published)
    by_origin: dict[tuple, set[str]] = {}
    for f in matched:
        by_origin.setdefault(tuple(msgspec.structs.astuple(f.origin)), set()).add(f.encoder_version)
    assert all(len(v) == 1 for v in by_origin.values())
    contents: dict[tuple, set] = {}
    for a in published:
        contents.setdefault((a["alert_id"], a["revision"]), set()).add((a["score"], a["encoder_version"], a["status"]))
    assert all(len(v) == 1 for v in contents.values())


def check_every_alert_says_what_its_version_gives(live: Pipeline, names: Iterable[str]) -> None:
    """Scored again here by the version an alert names: never by the queries of one and the vectors of another."""
    for name in names:
        ready = make_ready(live.settings, load_version(live.settings, name), QUERIES)
        mine = [a for a in live.alerts() if a["encoder_version"] == ready.encoder.version]
        assert mine
        scores = ready.matcher.scores(ready.encoder.encode([a["post"]["text"] for a in mine]))
        place = {q.id: i for i, q in enumerate(ready.matcher.queries)}
        expected = [float(scores[row, place[a["query_id"]]]) for row, a in enumerate(mine)]
        assert [a["score"] for a in mine] == pytest.approx(expected, abs=2e-3)  # frames carry float16


async def clusters(live: Pipeline) -> dict[str, int]:
    """Clusters of at least 5 posts, by id."""
    return {c.cluster_id: c.posts for c in await live.view.clusters() if c.posts >= 5}


async def many_clusters(live: Pipeline, least: int) -> dict[str, int]:
    """Clusters, as soon as there are that many."""

    async def enough() -> dict[str, int]:
        found = await clusters(live)
        return found if len(found) >= least else {}

    return await live.become(enough)


def kept(before: dict[str, int], after: dict[str, int]) -> float:
    return len(before.keys() & after.keys()) / len(before)


async def first_frame_of(live: Pipeline, version: str) -> None:
    """A frame was embedded by this version."""

    async def there_is() -> bool:
        embedded = await asyncio.to_thread(live.frames, "posts.embedded", EmbeddedFrame)
        return any(frame.encoder_version == encoder_of(version) for frame in embedded)

    await live.become(there_is)
