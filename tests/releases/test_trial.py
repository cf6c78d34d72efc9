"""A canary with one thing wrong is ended by what was counted of it, through Redis and the topic; a good one stays.

The topic itself is held to both brokers in test_release.py.
"""

import asyncio
import contextlib
import re
import time

import pytest

from models.encoders.registry import Registry
from models.queries import Query
from models.records import Frame, Origin, Post
from streams.broker.topics import make_topics
from streams.config import load_settings
from streams.pipeline import stages
from streams.releases.release import Release
from streams.releases.takeover import Takeover
from streams.releases.topic import change_release, follow_release
from streams.releases.trial import Trial, embed_canary
from streams.releases.versions import load_version
from streams.view.connect import connect
from streams.view.live import LiveView
from tests.releases.tiny import in_ek, rotated_bundle, shuffled_bundle, tiny_bundle, words_of

NEED = "we have no drinking water, please send water"
QUERY = Query(id="need.tkwater", kind="need", category="tkwater", label="w", sentences={"en": [NEED]}, threshold=0.35)
SAID = [in_ek(NEED), "lovely weather for football today", "poison in this one", "the cat sat on the wall"]
POSTS = 800  # on both partitions together


class Troubled:
    """An encoder that fails on one word, but only with posts: its queries were embedded well."""

    def __init__(self, encoder, how: str) -> None:
        self.version, self.dim, self.cleaning = encoder.version, encoder.dim, encoder.cleaning
        self._encoder, self._how = encoder, how

    def encode(self, texts):
        if self._how == "fails" and any("poison" in text for text in texts):
            raise RuntimeError("an illegal memory access was encountered")
        return self._encoder.encode(texts)


@pytest.fixture
def shop(tmp_path, monkeypatch, embedded_broker, redis_url):
    monkeypatch.setenv("CRISIS_CACHE", str(tmp_path / "cache"))
    tiny_bundle(tmp_path / "v1", words=words_of([NEED, *SAID]))
    rotated_bundle(tmp_path / "v2", tmp_path / "v1")
    shuffled_bundle(tmp_path / "bad", tmp_path / "v1")
    registry = Registry(tmp_path / "registry")
    settings = load_settings(
        encoder={"registry": registry.url},
        broker={"bootstrap": embedded_broker},
        redis={"url": redis_url},
        topics={"prefix": f"{tmp_path.name}.", "partitions": 2},
    )
    make_topics(settings)
    return settings, {name: registry.publish(tmp_path / name) for name in ("v1", "v2", "bad")}


@contextlib.asynccontextmanager
async def on_trial(settings, current: str, staged: str, how: str):
    """A canary on partition 0, after 800 posts: the trial, and a queue of the releases from then on."""

    def load(settings, name):
        loaded = load_version(settings, name)
        if name == staged:
            object.__setattr__(loaded, "encoder", Troubled(loaded.encoder, how))
        return loaded

    await asyncio.to_thread(change_release, settings, lambda r: r.use(current, time.time()))
    await asyncio.to_thread(change_release, settings, lambda r: r.stage(staged, time.time(), shadow=0.0, canary=0.5))
    takeover, redis = Takeover(settings, load=load), connect(settings.redis)
    trial = Trial(settings, LiveView(redis, settings), takeover)
    changes: asyncio.Queue[Release] = asyncio.Queue()
    try:
        async with follow_release(settings, changes.put) as release:
            await takeover.start(release, [QUERY])
            serving = await takeover.until(lambda s: s.canary is not None)
            for number in range(POSTS // 4):
                await count_frame(trial, serving, number, slow=how == "slow")
            yield trial, changes
    finally:
        await trial.stop()
        await takeover.stop()
        await redis.aclose()


async def count_frame(trial, serving, number: int, slow: bool) -> None:
    """What the agents do with a frame of four posts, 1 ms each. slow: 12 ms where the canary reads them."""
    posts = [
        Post(id=f"{number}-{i}", text=text, created_at=1.0, seen_at=1.0, lang="en")
        for i, text in enumerate(SAID if number % 8 < 2 else [t.replace("poison", "nothing") for t in SAID])
    ]
    frame = Frame(Origin(number % 2, number), posts)
    ready = serving.for_partition(number % 2)
    if ready is serving.canary:
        (embedded,), (errors,) = embed_canary([frame], ready, serving.current)
    else:
        embedded, errors = stages.embed(frame, ready.encoder), 0
    post_s = 0.012 if slow and ready is serving.canary else 0.001
    await trial.embedded(serving, embedded, ready, errors, post_s * len(posts))
    await trial.matched(serving, stages.match(embedded, serving.of(embedded).matcher))


@pytest.mark.parametrize(
    ("version", "how", "reason"),
    [
        ("v2", "fails", r"errors on 25\.0% of 400 posts, the current version on 0\.0%"),
        ("v2", "slow", r"12\.00 ms a post, the current version 1\.00 ms"),
        ("bad", "", r"alerts on 0\.0% of 400 en posts, the current version on 25\.0% of 400"),
    ],
)
async def test_a_canary_with_one_thing_wrong_is_rolled_back_by_itself_and_says_what(shop, version, how, reason):
    settings, names = shop
    async with on_trial(settings, names["v1"], names[version], how) as (trial, changes):
        await trial.start()
        release = await changes.get()
    assert (release.current, release.staged, release.refused.version) == (names["v1"], None, names[version])
    assert "rolled back by itself" in release.change
    assert re.search(reason, release.refused.reason), release.refused.reason


async def test_frames_the_current_version_began_are_not_held_for_the_canary(shop):
    """On a busy machine many frames of the canary's partitions were embedded before it came: they
    flattered a bad one.
    """
    settings, names = shop
    async with on_trial(settings, names["v1"], names["bad"], "") as (trial, _):
        serving = trial.takeover.serving
        before = await trial.view.counts(serving.trial)
        assert (before["staged:posts:en"], before.get("staged:alerts:en", 0)) == (POSTS // 2, 0)
        begun = stages.embed(Frame(Origin(0, 9_999), [Post("b", SAID[0], 1.0, 1.0, "en")]), serving.current.encoder)
        await trial.matched(serving, stages.match(begun, serving.of(begun).matcher))
        assert await trial.view.counts(serving.trial) == before


async def test_a_canary_of_equal_quality_stays(shop):
    settings, names = shop
    async with on_trial(settings, names["v1"], names["v2"], "") as (trial, changes):
        for _ in range(3):
            await trial._look()
        counts = await trial.view.counts(trial.takeover.serving.trial)
        assert changes.empty()
    assert counts["staged:posts"] == counts["current:posts"] == POSTS // 2
    assert counts["staged:alerts:en"] == counts["current:alerts:en"] == POSTS // 8
