"""Encoder versions taken over live: by real workers, under load, back again, and with kills in the middle."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import pytest

from models.clusters.config import ClusterConfig
from models.encoders.bundle import CLUSTERS, add_file, read_bundle
from models.encoders.cluster_thresholds import TunedClusters
from models.encoders.load import FLOOD
from models.encoders.registry import Registry, encoder_of
from models.queries import Query
from models.records import EmbeddedFrame, MatchedFrame, Reject
from streams.broker.queries import publish_queries
from streams.ingest.lines import head_of, key_of
from streams.ingest.writer import open_writer
from streams.releases.release import Release
from streams.releases.topic import change_release, read_release
from streams.releases.versions import load_version, make_ready
from tests.e2e.harness import DEMO, OUTCOMES, Pipeline, lines_of
from tests.releases.tiny import in_ek, rotated_bundle, shuffled_rows, tiny_bundle, words_of

pytestmark = pytest.mark.redis

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


@pytest.fixture
def versions(tmp_path, monkeypatch) -> dict[str, str]:
    """A registry with v1 and v2 (v1 turned: equal quality); workers start with v1 as their own."""
    words = words_of([*NEEDS, *HAPPENINGS, *TALK, *(f"note{n}" for n in range(60))])
    ids = {
        "v1": tiny_bundle(tmp_path / "v1", words=words),
        "v2": rotated_bundle(tmp_path / "v2", tmp_path / "v1"),
    }
    for name, version in ids.items():  # as of every version that was measured: its own thresholds of clusters
        tuned = TunedClusters(version, t_attach=0.6, t_merge=0.6, lexical=ClusterConfig().lexical)
        add_file(tmp_path / name, CLUSTERS, msgspec.json.encode(tuned))
    registry = Registry(tmp_path / "registry")
    monkeypatch.setenv("CRISIS_ENCODER__REF", str(tmp_path / "v1"))
    monkeypatch.setenv("CRISIS_ENCODER__REGISTRY", str(tmp_path / "registry"))
    monkeypatch.setenv("CRISIS_CACHE", str(tmp_path / "cache"))
    return {name: registry.publish(tmp_path / name) for name in ("v1", "v2")}


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
    assert sum(counts.get(k, 0) for k in OUTCOMES) == sent
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
        assert sum(counts.get(k, 0) for k in OUTCOMES) == load.sent
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
    """Ids of the posts of records that both kills met."""
    rejects = [msgspec.json.decode(record.value, type=Reject) for record in live.read("posts.rejected")]
    assert {reject.reason for reject in rejects} <= {"worker_died"}
    return {json.loads(line)["id"] for reject in rejects for line in reject.raw.splitlines()}


async def first_frame_of(live: Pipeline, version: str) -> None:
    """A frame was embedded by this version."""

    async def there_is() -> bool:
        embedded = await asyncio.to_thread(live.frames, "posts.embedded", EmbeddedFrame)
        return any(frame.encoder_version == encoder_of(version) for frame in embedded)

    await live.become(there_is)


def english_texts() -> list[str]:
    found = []
    for line in lines_of(DEMO):
        with contextlib.suppress(ValueError):  # the demo holds lines that must be rejected
            said = json.loads(line)
            found += [said["text"]] if said.get("lang") == "en" else []
    return found


ENGLISH = english_texts()


def english(number: int) -> bytes:
    """An English post of the demo stream, again and again with another ending."""
    said = f"{ENGLISH[number % len(ENGLISH)]} {number}"
    return json.dumps({"id": f"e-{number}", "text": said, "lang": "en", "source": "test"}).encode()


async def test_a_bad_version_is_seen_in_the_shadow_and_as_canary_rolled_back_by_itself(
    start, tmp_path, monkeypatch, capsys
):
    """The bundled encoder with its rows shuffled, through the shadow to the canary and out."""
    good = read_bundle(FLOOD).id
    registry = Registry(tmp_path / "registry")
    monkeypatch.setenv("CRISIS_ENCODER__REGISTRY", registry.url)
    monkeypatch.setenv("CRISIS_CACHE", str(tmp_path / "cache"))
    shuffled_rows(tmp_path / "bad", FLOOD)
    bad = registry.publish(tmp_path / "bad")  # as if forced: test_publish.py shows that the gates refuse it
    async with start(partitions=4) as live:
        await live.start_worker()
        await all_on(live, good, 1)
        async with Load(live, per_s=150, make=english) as load:
            await live.until(lambda c: c.get("alert", 0) > 50)

            def stage(shadow: float, canary: float) -> int:
                changed = change_release(
                    live.settings, lambda r: r.stage(bad, time.time(), shadow=shadow, canary=canary)
                )
                return changed.revision

            revision = await asyncio.to_thread(stage, 1.0, 0.0)

            async def seen_enough() -> dict[str, int]:
                found = await live.view.counts(f"trial-{revision}")
                return found if found.get("shadow:posts", 0) >= 300 else {}

            seen = await live.become(seen_enough)
            assert seen["shadow:lost"] > 10 * seen.get("shadow:gained", 0)
            assert seen["beside:alerts:en"] > 10 * seen.get("shadow:alerts:en", 0)
            assert {f.encoder_version for f in frames(live)} == {good}  # the shadow publishes nothing
            revision = await asyncio.to_thread(stage, 0.0, 0.5)

            async def rolled_back() -> Release | None:
                found = await asyncio.to_thread(read_release, live.settings)
                return found if found.staged is None else None

            release = await live.become(rolled_back)
            assert (release.refused.version, release.revision) == (bad, revision + 1)
            assert "alerts on" in release.refused.reason
            await first_frame_of(live, bad)
        counts = await live.until_through(load.sent)
        check_every_post_once_and_every_frame_by_one_version(live, load.sent, counts)
        await all_on(live, good, 1)
    with capsys.disabled():
        print(f"\n{release.change}")


async def test_a_worker_that_cannot_load_a_version_keeps_the_old_one_and_says_so(start, versions, tmp_path):
    model = Path(tmp_path / "registry" / versions["v2"] / "model.safetensors")
    whole = model.read_bytes()
    model.write_bytes(whole[:-1])
    async with start(partitions=4) as live:
        await asyncio.to_thread(publish_queries, live.settings, {q.id: q for q in QUERIES})
        await live.start_worker()
        await all_on(live, versions["v1"], 1)
        await asyncio.to_thread(use, live, versions["v2"])

        async def messages() -> list[str]:
            return [w.message for w in (await live.view.workers()).values() if w.message]

        said = await live.become(messages)
        assert said[0].startswith(f"keeps own: cannot load {versions['v2']}: ")
        assert "model.safetensors of " in said[0] and " was changed: " in said[0]
        sent = await live.send([post(n) for n in range(100)])
        assert (await live.until_through(sent))["alert"] > 20
        model.write_bytes(whole)
        await all_on(live, versions["v2"], 1)
        assert [w.message for w in (await live.view.workers()).values()] == [""]
