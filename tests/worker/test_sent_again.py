"""What was refused and is sent again is read as a new post is, but for what was taken back meanwhile; and counted."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from redis.asyncio import Redis

from models.posts import words_of
from models.records import Frame, MatchedFrame, Origin, Post, PutBy
from streams.broker.rejects import RETRIED
from streams.broker.topics import TURNS
from streams.config import load_settings
from streams.pipeline import stages
from streams.pipeline.frames import encode_frame, join_frames
from streams.pipeline.outcomes import through
from streams.pipeline.ports import Claim
from streams.view.folder import RedisFolder
from streams.view.live import LiveView
from streams.worker.embed import Embed
from streams.worker.skim import Pace

KEY = b"key"


def post(n, seen_at=1.0, **more):
    return Post(f"~a/{n}", f"text {n}", 1.0, seen_at, source="web", author="a", fingerprint=f"text {n}", **more)


class Reader(Embed):
    """Notes what it would read."""

    def __init__(self, runtime):
        super().__init__(runtime, None)
        self.read = []

    async def _divide(self, frames):
        return frames, {}

    async def _read(self, frames, waiting):
        self.read += [post.id for frame in frames for post in frame.posts]


@pytest.fixture
async def runtime(redis_url):
    async with Redis.from_url(redis_url) as redis:
        settings = load_settings()
        folder = RedisFolder(redis, settings.key_prefix, 60)
        pace, pseudonyms = Pace(5.0), SimpleNamespace(key=KEY)
        view = LiveView(redis, settings)
        yield SimpleNamespace(settings=settings, view=view, folder=folder, pseudonyms=pseudonyms, pace=pace)


def record(*frames):
    return SimpleNamespace(value=join_frames([encode_frame(f) for f in frames]), message=None)


async def test_what_was_deleted_or_edited_since_it_was_refused_is_not_read_and_each_post_has_an_outcome_more(runtime):
    reader, refused = Reader(runtime), [post(n) for n in range(4)]
    edited = Post("~a/2", "another", 1.0, 2.0, source="web", author="a", fingerprint="another")
    for n, one in enumerate((*refused, edited)):
        await runtime.folder.claim([Claim(one.id, f"0:{n}:0", words_of(one, KEY), None)])
    await runtime.view.mark_gone(["~a/1"])
    await runtime.view.count("embed", Origin(0, 7), {"counts": {"read": 4, "rejected": 4}})
    frames = [Frame(Origin(0, 30, n, RETRIED), [one]) for n, one in enumerate(refused)]
    for _ in range(2):  # delivered again
        reader.read.clear()
        await reader([record(Frame(Origin(0, 8), [post(9)]), *frames)])
        assert reader.read == ["~a/9", "~a/0", "~a/3"]
    matched = {"counts": {"alert": 2}}  # what the match agent counts of the two
    assert await runtime.view.count("match", Origin(0, 30, 3, RETRIED), matched), "a lane of its own"
    counts = await runtime.view.counts()
    assert counts == {"read": 8, "rejected": 4, "no_match": 2, "alert": 2} and through(counts) == counts["read"]


async def test_posts_that_were_refused_hours_ago_do_not_make_the_reader_take_itself_for_late(runtime):
    runtime.pace.told({"posts.clean": 1_000})
    runtime.serving = SimpleNamespace(current=None)
    frames = [Frame(Origin(0, 9, turn=RETRIED), [post(1)]), Frame(Origin(0, 9), [post(2, seen_at=2e9)])]
    assert await Embed(runtime, None)._divide(frames) == (frames, {})


def test_what_is_put_by_of_it_waits_its_turn_apart_from_what_came_before():
    mark = PutBy(1.0, 2, "order", 0.1)
    frame = MatchedFrame(
        Origin(1, 30, turn=RETRIED), [], encoder_version="v", dim=1, vectors=b"", waiting=[post(1, put_by=mark)]
    )
    (waits,) = stages.by_turn(frame)
    assert waits.origin == Origin(1, 30, turn=RETRIED + 2) and RETRIED % TURNS == 0
