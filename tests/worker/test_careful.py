"""A record that workers die on is refused after two deaths; what others interrupt is not held against it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from redis.asyncio import Redis

from models.errors import ServiceError
from models.records import EmbeddedFrame, Frame, Origin, Post
from streams.config import load_settings
from streams.pipeline.frames import encode_frame, join_frames
from streams.view.attempts import Attempts
from streams.view.live import LiveView
from streams.worker import careful
from streams.worker.cluster import Cluster
from streams.worker.embed import Embed
from streams.worker.match import Match
from streams.worker.normalise import Normalise

POISON = 3


class Died(BaseException):
    """Stands for kill -9: nothing after it runs."""


class Worker:
    """One life of a worker: the attempts it writes, and a handler that dies on one record."""

    name = "normalise"

    def __init__(self, redis, settings, deadly=(POISON,), fault=Died, sent_on=(), unasked=None):
        self.runtime = SimpleNamespace(attempts=Attempts(redis, settings))
        self.deadly, self.fault, self.sent_on, self.unasked = deadly, fault, sent_on, unasked
        self.handled, self.refused = [], []

    async def __call__(self, events):
        for event in events:
            if event.message.offset in self.deadly:
                raise self.fault("gone")
            self.handled.append(event.message.offset)
        return events

    async def was_sent_on(self, event):
        if self.unasked:
            raise self.unasked
        return event.message.offset in self.sent_on

    async def give_up(self, event, detail):
        self.refused.append(event.message.offset)


def records(*offsets):
    return [SimpleNamespace(message=SimpleNamespace(partition=0, offset=n)) for n in offsets]


@pytest.fixture
async def redis(redis_url):
    client = Redis.from_url(redis_url)
    yield client
    await client.aclose()


async def live_until_done(redis, settings, offsets, **options):
    """Start workers until one has been through; returns how many died and the one that finished."""
    for deaths in range(10):
        worker = Worker(redis, settings, **options)
        try:
            done = await careful.handle(worker, records(*offsets))
        except (Died, ServiceError):
            continue
        assert [event.message.offset for event in done] == list(offsets)
        return deaths, worker
    raise AssertionError("the record stops every worker for ever")


async def test_a_record_that_workers_died_on_twice_is_refused_unread_and_its_neighbours_are_not(redis):
    deaths, last = await live_until_done(redis, load_settings(), (1, 2, POISON, 4, 5))
    assert deaths == careful.DEATHS
    assert last.refused == [POISON] and last.handled == [1, 2, 4, 5]
    assert await redis.hlen("crisis:attempts") == 0


async def test_each_of_several_such_records_is_found(redis):
    _, last = await live_until_done(redis, load_settings(), range(8), deadly=(0, 7))
    assert last.refused == [0, 7] or last.refused == [7]


async def test_what_was_sent_on_before_its_workers_were_killed_is_done_again_and_not_refused(redis):
    """Of 2,694 posts of a take-over with two kills five were counted as matched and as refused."""
    settings = load_settings()
    for _ in range(careful.DEATHS):
        with pytest.raises(Died):
            await careful.handle(Worker(redis, settings), records(1, POISON))
    worker = Worker(redis, settings, deadly=(), sent_on=(POISON,))
    await careful.handle(worker, records(1, POISON))
    assert worker.handled == [1, POISON] and worker.refused == []
    assert await redis.hlen("crisis:attempts") == 0


async def test_what_ends_workers_behind_that_is_refused_in_the_end_all_the_same(redis):
    deaths, last = await live_until_done(redis, load_settings(), (1, POISON), sent_on=(POISON,))
    assert deaths == careful.DEATHS_AFTER and last.refused == [POISON]


async def test_that_the_broker_cannot_say_what_was_sent_on_is_not_held_against_the_record(redis):
    settings = load_settings()
    for _ in range(careful.DEATHS):
        with pytest.raises(Died):
            await careful.handle(Worker(redis, settings), records(POISON))
    for _ in range(5):
        with pytest.raises(ServiceError):
            await careful.handle(Worker(redis, settings, unasked=ServiceError("away")), records(POISON))
    worker = Worker(redis, settings)
    await careful.handle(worker, records(POISON))
    assert worker.refused == [POISON]


class Sent:
    """An outbox that keeps what it is given."""

    def __init__(self):
        self.rejects = []

    async def send_rejects(self, rejects):
        self.rejects += rejects

    async def delivered(self):
        pass


def normaliser(redis):
    return Normalise(SimpleNamespace(view=LiveView(redis, load_settings())), Sent())


def raw(offset, *lines):
    message = SimpleNamespace(partition=0, offset=offset)
    return SimpleNamespace(message=message, value=b"\n".join(lines))


async def test_a_record_that_was_done_before_its_workers_were_killed_is_neither_refused_nor_counted_again(redis):
    """Two kills of healthy workers read 3,178 of 3,175 posts: the record in hand at both was done, and refused too."""
    handler = normaliser(redis)
    await handler.view.count("normalise", Origin(0, POISON), {"counts": {"read": 2, "accepted": 2}})
    await handler.give_up(raw(POISON, b"{}", b"{}"), "died twice")
    assert handler.outbox.rejects == []
    assert await handler.view.counts() == {"read": 2, "accepted": 2}


async def test_a_refused_record_counts_once_also_when_who_refuses_it_dies_or_who_was_taken_for_dead_goes_on(redis):
    handler = normaliser(redis)
    await handler.view.count("normalise", Origin(0, POISON - 1), {"counts": {"read": 1, "accepted": 1}})
    for _ in range(2):
        await handler.give_up(raw(POISON, b"{}", b"{}"), "died twice")
    assert [reject.reason for reject in handler.outbox.rejects] == ["worker_died"]
    assert not await handler.view.count("normalise", Origin(0, POISON), {"counts": {"read": 2, "accepted": 2}})
    assert await handler.view.counts() == {"read": 3, "accepted": 1, "rejected": 2}


def embedded(offset, *ids):
    posts = [Post(id=i, text="t", created_at=1.0, seen_at=1.0) for i in ids]
    return EmbeddedFrame(Origin(0, offset), posts, encoder_version="v", dim=1, vectors=bytes(2 * len(ids)))


async def test_of_a_record_that_was_matched_in_part_only_the_rest_counts_as_refused_and_of_a_whole_one_nothing(redis):
    handler = Match(SimpleNamespace(view=LiveView(redis, load_settings())), Sent())
    record = SimpleNamespace(
        message=SimpleNamespace(partition=0, offset=1),
        value=join_frames([encode_frame(embedded(7, "a", "b")), encode_frame(embedded(8, "c", "d", "e"))]),
    )
    await handler.view.count("match", Origin(0, 7), {"counts": {"no_match": 2}})
    await handler.give_up(record, "died twice")
    await handler.give_up(record, "died twice")
    assert await handler.view.counts() == {"no_match": 2, "rejected": 3}
    assert [reject.reason for reject in handler.outbox.rejects] == ["worker_died"]


async def test_what_the_embed_agent_refuses_counts_by_posts_and_what_the_clusterer_refuses_was_counted_before(redis):
    settings = load_settings()
    runtime = SimpleNamespace(view=LiveView(redis, settings), compute=None, settings=settings)
    frame = Frame(Origin(0, 7), embedded(7, "a", "b").posts)
    for handler in (Embed(runtime, Sent()), Cluster(runtime, Sent())):
        message = SimpleNamespace(partition=0, offset=1)
        await handler.give_up(SimpleNamespace(message=message, value=encode_frame(frame)), "died twice")
        assert len(handler.outbox.rejects) == 1
    assert await runtime.view.counts() == {"rejected": 2}


async def test_an_outage_is_not_held_against_the_record_it_interrupted(redis):
    settings = load_settings()
    for _ in range(5):
        with pytest.raises(ServiceError):
            await careful.handle(Worker(redis, settings, fault=ServiceError), records(1, POISON))
    worker = Worker(redis, settings, deadly=())
    await careful.handle(worker, records(1, POISON))
    assert worker.handled == [1, POISON] and worker.refused == []


async def test_a_worker_that_is_stopped_leaves_no_mark(redis):
    worker = Worker(redis, load_settings(), fault=asyncio.CancelledError)
    with pytest.raises(asyncio.CancelledError):
        await careful.handle(worker, records(POISON))
    assert await redis.hvals("crisis:attempts") == []


async def test_what_moves_to_another_worker_is_not_held_against_it(redis):
    attempts = Attempts(redis, load_settings())
    await attempts.begin([("embed", 0, 1), ("embed", 1, 1)])
    await attempts.undo(partition=("embed", 0))
    assert await attempts.begin([("embed", 0, 1), ("embed", 1, 1)]) == [1, 2]
