"""What went on before its workers were killed is done again, not refused: a post has one outcome."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from kafka import KafkaProducer

from models.errors import ServiceError
from models.records import EmbeddedFrame, Frame, MatchedFrame, Origin, Post
from streams.broker.topics import make_topics
from streams.config import load_settings
from streams.pipeline.frames import encode_frame, join_frames
from streams.worker.cluster import Cluster
from streams.worker.embed import Embed
from streams.worker.match import Match
from streams.worker.normalise import Normalise
from streams.worker.waiting import TakeUp
from tests.outputs.topics import fresh_prefix


def frame(kind, *origin):
    vectors = {} if kind is Frame else {"encoder_version": "v", "dim": 1, "vectors": bytes(2)}
    return kind(Origin(*origin), [Post("p", "we need water", 1.0, 1.0)], **vectors)


# An agent, a record of its input, what it made of that, in which topic, and what it made of others.
STAGES = [
    (Normalise, b"{}\n{}", "posts.clean", frame(Frame, 1, 7, 2), frame(Frame, 1, 8)),
    (Embed, frame(Frame, 1, 7), "posts.embedded", frame(EmbeddedFrame, 1, 7), frame(EmbeddedFrame, 1, 7, 0, 1)),
    (TakeUp, frame(Frame, 1, 7, 0, 2), "posts.embedded", frame(EmbeddedFrame, 1, 7, 9, 2), frame(EmbeddedFrame, 1, 7)),
    (Match, frame(EmbeddedFrame, 1, 7), "posts.matched", frame(MatchedFrame, 1, 7), frame(MatchedFrame, 0, 7)),
]


@pytest.fixture
def settings(embedded_broker):
    made = load_settings(broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix(), "partitions": 2})
    make_topics(made)
    return made


def handler(kind, settings):
    return kind(SimpleNamespace(settings=settings, view=None, compute=None), None)


def event(kind, value, written_s):
    value = value if isinstance(value, bytes) else encode_frame(value)
    timestamp = 1000 * written_s if kind is TakeUp else written_s
    return SimpleNamespace(value=value, message=SimpleNamespace(partition=1, offset=7, timestamp=timestamp))


@pytest.mark.parametrize(("kind", "value", "topic", "made", "other"), STAGES, ids=[s[0].name for s in STAGES])
async def test_it_is_found_by_its_origin_among_frames_of_others_that_share_a_record(
    settings, kind, value, topic, made, other
):
    agent, record = handler(kind, settings), event(kind, value, time.time())
    producer = KafkaProducer(bootstrap_servers=settings.broker.bootstrap)
    for values in ([b"\xff"], [encode_frame(other)]):
        producer.send(settings.topics.name(topic), join_frames(values), partition=0).get()
    assert not await agent.was_sent_on(record)
    both = join_frames([encode_frame(other), encode_frame(made)])
    producer.send(settings.topics.name(topic), both, partition=0).get()
    producer.close()
    assert await agent.was_sent_on(record)
    assert await agent.was_sent_on(event(kind, value, 0.0)), "an old record: what was made of it is new"


async def test_what_is_no_frame_and_what_only_the_clusterer_has_was_not(settings):
    assert not await handler(Embed, settings).was_sent_on(event(Embed, b"\xff", time.time()))
    assert not await handler(Cluster, settings).was_sent_on(event(Cluster, frame(MatchedFrame, 1, 7), time.time()))


async def test_that_the_broker_cannot_be_asked_is_said(settings):
    away = settings.model_copy(update={"broker": settings.broker.model_copy(update={"bootstrap": "127.0.0.1:1"})})
    with pytest.raises(ServiceError):
        await handler(Embed, away).was_sent_on(event(Embed, frame(Frame, 1, 7), time.time()))
