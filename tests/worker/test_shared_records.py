"""Small frames share a record: what is read late, or given up, is told of each of its frames, each post once."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from redis.asyncio import Redis

from models.cutting import end_of
from models.records import EmbeddedFrame, Frame, MatchedFrame, Origin, Post, PutBy
from streams.config import load_settings
from streams.pipeline.frames import encode_frame, join_frames
from streams.view.live import LiveView
from streams.worker.cluster import Cluster
from streams.worker.embed import Embed, embed_frames, once_each
from streams.worker.match import Match, Matched
from streams.worker.normalise import Normalise
from streams.worker.waiting import CALL_POSTS, TakeUp, Waiting, _put_by_at


def some(frame: int, number: int, **more: object) -> list[Post]:
    return [Post(f"p{frame}-{n}", f"text {n} of {frame}", 1.0, 1.0, **more) for n in range(number)]


def embedded(kind: type[EmbeddedFrame], number: int, posts: int, **more: object) -> EmbeddedFrame:
    vectors = bytes(4 * posts)
    return kind(Origin(0, number), some(number, posts), encoder_version="v", dim=2, vectors=vectors, **more)


class Outbox:
    """Takes what it is given."""

    def __init__(self) -> None:
        self.rejects = []

    async def send_rejects(self, rejects: list) -> None:
        self.rejects += rejects

    async def delivered(self) -> None: ...


class Reader(TakeUp):
    """Notes what it would read in one call."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)
        self.calls = []

    async def _read(self, frames: list[Frame], waiting: object) -> None:
        self.calls.append([post.id for frame in frames for post in frame.posts])


@pytest.fixture
async def made(redis_url):
    """Handlers over a view in Redis."""
    async with Redis.from_url(redis_url) as redis:
        settings = load_settings()

        async def still_said(posts: list[Post], key: bytes) -> list[Post]:
            return [post for post in posts if post.text != "edited since"]

        runtime = SimpleNamespace(
            view=LiveView(redis, settings),
            settings=settings,
            compute=None,
            folder=SimpleNamespace(still_said=still_said),
            pseudonyms=SimpleNamespace(key=b""),
        )
        yield lambda kind: kind(runtime, Outbox())


def record(*frames: Frame) -> SimpleNamespace:
    value = join_frames([encode_frame(frame) for frame in frames])
    return SimpleNamespace(value=value, message=SimpleNamespace(partition=0, offset=5))


def test_of_two_copies_of_a_frame_the_longer_is_read_where_the_first_stood():
    whole, piece = Frame(Origin(0, 1), some(1, 4)), Frame(Origin(0, 1), some(1, 2))
    rest, other = Frame(Origin(0, 1, 2), some(1, 2)), Frame(Origin(0, 2), some(2, 1))
    assert once_each([piece, rest, other, whole, other]) == [whole, rest, other]


GIVEN_UP = {
    Embed: record(Frame(Origin(0, 1), some(1, 2)), Frame(Origin(0, 2), some(2, 3))),
    Match: record(embedded(EmbeddedFrame, 1, 2), embedded(EmbeddedFrame, 2, 2, waiting=some(3, 1))),
    TakeUp: record(Frame(Origin(0, 1, turn=1), some(1, 2)), Frame(Origin(0, 2, turn=1), some(2, 3))),
}


@pytest.mark.parametrize("kind", GIVEN_UP, ids=lambda kind: kind.name)
async def test_of_a_record_that_is_given_up_every_post_of_every_frame_counts_as_refused_once(made, kind):
    handler = made(kind)
    for _ in range(2):  # the worker may die after it counted, and another gives it up again
        await handler.give_up(GIVEN_UP[kind], "workers died on it")
    counts = await handler.view.counts()
    assert counts.pop("taken_up", 5) == 5 and counts == {"rejected": 5}
    assert await handler.view.counts("reasons") == {"worker_died": 5}
    assert [reject.reason for reject in handler.outbox.rejects] == ["worker_died"]


async def test_a_frame_whose_posts_were_counted_before_the_worker_died_is_not_counted_as_refused_too(made):
    handler = made(Match)
    await handler.view.count("match", Origin(0, 1), {"counts": {"alert": 2}})
    await handler.give_up(GIVEN_UP[Match], "workers died on it")
    assert await handler.view.counts() == {"alert": 2, "rejected": 3}


async def test_posts_that_only_their_clusters_miss_keep_their_outcome(made):
    handler = made(Cluster)
    await handler.give_up(record(embedded(MatchedFrame, 1, 2)), "workers died on it")
    assert await handler.view.counts() == {} and len(handler.outbox.rejects) == 1


async def test_a_raw_record_that_is_given_up_counts_by_its_lines(made):
    raw = SimpleNamespace(value=b"{}\n{}\n{}", message=SimpleNamespace(partition=0, offset=5))
    handler = made(Normalise)
    await handler.give_up(raw, "workers died on it")
    assert await handler.view.counts() == {"read": 3, "rejected": 3}


async def test_frames_that_share_a_record_are_read_in_few_calls_and_counted_each(made):
    reader = made(Reader)
    edited = Post("edited", "edited since", 1.0, 1.0)
    frames = [Frame(Origin(0, n, turn=2), [*some(n, 4), *([edited] if n == 3 else [])]) for n in range(40)]
    for _ in range(2):
        await reader([record(*frames)])
    read = reader.calls[: len(reader.calls) // 2]
    assert [i for call in read for i in call] == [p.id for f in frames for p in f.posts if p is not edited]
    assert len(read) == 3 and max(map(len, read)) <= CALL_POSTS
    assert await reader.view.counts() == {"taken_up": 161, "no_match": 1}


def test_a_record_waits_since_the_oldest_post_of_any_of_its_frames_was_put_by():
    def waits(number: int, *since: float) -> Frame:
        marks = [PutBy(at, 1, "order", 0.1) for at in since]
        return Frame(Origin(0, number, turn=1), [Post(f"p{m.at}", "t", 1.0, 1.0, put_by=m) for m in marks])

    assert _put_by_at(record(waits(1, 30.0, 20.0), waits(2, 10.0), waits(3, 40.0)).value) == 10.0
    assert _put_by_at(b"\xff") == _put_by_at(record(Frame(Origin(0, 1), [])).value) == 0.0


def test_how_long_the_oldest_post_in_hand_has_waited_is_told_as_an_age_by_the_clock_that_put_it_by():
    waiting = object.__new__(Waiting)
    for put_by, waits_s in (({}, 0.0), ({0: 0.0}, 0.0), ({0: 70.0, 1: 40.0, 2: 0.0}, 60.0), ({0: 103.0}, 0.0)):
        waiting._held = {part: SimpleNamespace(put_by_at=at) for part, at in put_by.items()}
        assert waiting.waits_s(100.0) == waits_s


async def test_what_waits_of_a_frame_is_sent_as_it_was_divided_first_though_it_is_divided_anew_after_a_kill(made):
    def divided(turn: int) -> Matched:
        frame = embedded(MatchedFrame, 1, 1)
        return Matched(frame, [Frame(Origin(0, 1, turn=turn), some(2, 1))], [])

    handler, first, anew = made(Match), divided(1), divided(2)
    asked: set[Origin] = set()
    assert await handler._first_put_by(first, asked) == first.put_by
    assert await handler._first_put_by(anew, asked) == []  # in one batch
    assert await handler._first_put_by(first, set()) == first.put_by  # nothing was counted: it may not have been sent
    await handler.view.count("match", Origin(0, 1), {"counts": {"no_match": 1, "put_by": 1}})
    assert await handler._first_put_by(anew, set()) == []


async def test_of_a_record_that_is_given_up_unread_lines_count_as_posts_and_blank_ones_as_none(made):
    event = SimpleNamespace(value=b'{"id": 1}\n\n{"id": 2}\n', message=SimpleNamespace(partition=0, offset=5))
    handler = made(Normalise)
    await handler.give_up(event, "workers died on it")
    counts = await handler.view.counts()
    assert (counts["read"], counts["rejected"]) == (2, 2)


class Choking:
    """An encoder that no call with a certain text survives."""

    version, dim = "v", 2

    def encode(self, texts: list[str]) -> np.ndarray:
        if any("0 of" in text for text in texts):
            raise RuntimeError("no")
        return np.ones((len(texts), 2), np.float32)


def test_posts_that_no_encoder_call_survives_have_places_of_their_own_and_shift_no_other():
    frames = [Frame(Origin(0, 1, 7), [*some(1, 2), *some(2, 2)]), Frame(Origin(0, 2), some(3, 1))]
    embedded, poison = embed_frames(frames, Choking())
    assert [(origin.offset, origin.item, post.id) for origin, post, _ in poison] == [
        (1, 7, "p1-0"),
        (1, 9, "p2-0"),
        (2, 0, "p3-0"),
    ]
    assert [end_of(frame) for frame in embedded] == [end_of(frame) for frame in frames]
