"""`crisis why-not`: what the topics and the view know of a post, in one sentence."""

from __future__ import annotations

import asyncio
import json
import re

import msgspec
import pytest
from click.testing import CliRunner
from kafka import KafkaProducer

from models.encoders.load import load_encoder
from models.filters import Where
from models.queries import Query, load_queries
from models.records import Deletion, Frame, MatchedFrame, Origin, Post, PutBy, Reject, Repeat
from streams.broker.queries import publish_queries
from streams.broker.topics import make_topics
from streams.commands.why_not import why_not
from streams.config import load_settings
from streams.ingest.lines import oversize_marker
from streams.pipeline import stages
from streams.pipeline.frames import encode_frame, join_frames
from streams.view.connect import connect
from streams.view.live import LiveView
from tests.outputs.invented import invent
from tests.outputs.topics import fresh_prefix
from tests.waiting import PATIENCE_S

BOATS = Query(
    "need.boats",
    "need",
    "boats",
    "Boats",
    {"ht": ["Bring a boat, the river is all around us"]},
    where=Where(languages=["ht"]),
    threshold=0.5,
)


def post(name: str, text: str = "what a goal!") -> Post:
    return Post(f"x:a/{name}", text, 1.0, 1.0, lang="en")


@pytest.fixture
def settings(embedded_broker, redis_url):
    prefix = fresh_prefix()
    made = load_settings(broker={"bootstrap": embedded_broker}, topics={"prefix": prefix}, redis={"url": redis_url})
    make_topics(made)
    publish_queries(made, {q.id: q for q in load_queries() if q.category == "water"} | {BOATS.id: BOATS})
    plain = Frame(Origin(0, 0), [post("chatter"), post("boats", "Bring a boat, the river is all around us")])
    embedded = stages.embed(plain, load_encoder("flood"))
    matched = MatchedFrame(**{f: getattr(embedded, f) for f in embedded.__struct_fields__})
    clean = Frame(
        Origin(0, 1), [post("chatter"), post("late")], [Repeat("x:a/copy", "x:a/first", 1.0)], [Deletion("x:b", 1.0)]
    )
    refused = Reject(
        "bad_time",
        "in 1970",
        "normalise",
        Origin(0, 0),
        0,
        "2023-11-14T22:13:20.000Z",
        b'{"id": "x:a/odd", "text": "x"}',
    )
    waits = msgspec.structs.replace(post("waits"), put_by=PutBy(1_700_000_000.0, 2, "told", 0.31))
    waiting = Frame(Origin(0, 2, turn=2), [waits])
    records = {"posts.matched": matched, "posts.clean": clean, "posts.waiting": waiting}
    producer = KafkaProducer(bootstrap_servers=embedded_broker)
    for topic, frame in records.items():  # between two others: small frames share records
        nothing = msgspec.structs.replace(frame, posts=[], repeats=[], deletions=[])
        if isinstance(nothing, MatchedFrame):
            nothing = msgspec.structs.replace(nothing, vectors=b"")
        value = join_frames([encode_frame(one) for one in (nothing, frame, nothing)])
        producer.send(made.topics.name(topic), value=value, partition=0).get(PATIENCE_S)
    producer.send(made.topics.name("posts.rejected"), value=msgspec.json.encode(refused), partition=0).get(PATIENCE_S)
    producer.close()

    async def alert() -> None:
        async with connect(made.redis) as redis:
            given = invent("x:a/need")
            gone = msgspec.structs.replace(invent("x:a/edited"), status="withdrawn", withdrawn_because="edited")
            await LiveView(redis, made).put_alerts([given, gone])

    asyncio.run(alert())
    return made


def test_each_way_a_post_can_go_has_its_sentence(settings):
    told = {
        "x:a/need": "It gave an alert: need.water",
        "x:a/edited": "was withdrawn",
        "x:a/waits": "put by at 2023-11-14T22:13:20.000Z (what it says was read several times already; skimmed",
        "x:a/copy": "It was folded: it repeats x:a/first",
        "x:b/any": "It was deleted",
        "x:a/odd": "It was refused (bad_time at normalise: in 1970)",
        "x:a/late": "It is late",
        "x:a/boats": "leaves it out: its language is en, the query reads ht.",
        "x:a/chatter": "No query is likely enough: nearest is ",
        "x:a/unheard": "No post x:a/unheard came in since",
    }
    for post_id, sentence in told.items():
        done = CliRunner().invoke(why_not, [post_id], obj=settings, catch_exceptions=False)
        assert sentence in done.output, (post_id, done.output)
        if post_id == "x:a/chatter":
            assert re.search(r"need\.\w+ at \d+ %, \d+ points below the \d+ % from which it alerts", done.output)


def test_a_refused_post_is_found_by_what_is_kept_of_its_line_or_by_the_line(settings, embedded_broker):
    long = "x" * 70_000
    lines = [json.dumps({"id": f"x:a/{n}", "text": "hi"}) for n in range(2)]
    lines += [
        json.dumps({"text": long, "id": "x:a/behind"}),
        json.dumps({"lang": "en", "id": "x:a/before", "text": long}),
    ]
    producer = KafkaProducer(bootstrap_servers=embedded_broker)

    def send(topic: str, value: bytes) -> int:
        return producer.send(settings.topics.name(topic), value=value, partition=0).get(PATIENCE_S).offset

    offset = send("posts.raw", "\n".join(lines).encode())
    marker = oversize_marker(lines[3].replace("before", "huge").encode(), 9_000_000)
    at = "2023-11-14T22:13:20.000Z"
    for reject in (
        Reject("empty_text", "no text", "normalise", Origin(0, offset), 0, at, lines[0].encode(), also=[1]),
        Reject("text_too_long", "70000 characters", "normalise", Origin(0, offset), 2, at, lines[2][:65_536].encode()),
        Reject("text_too_long", "70000 characters", "normalise", Origin(0, 999), 3, at, lines[3][:65_536].encode()),
        Reject("too_large", "9000000 bytes", "normalise", Origin(0, 999), 4, at, marker),
    ):
        send("posts.rejected", msgspec.json.encode(reject))
    producer.close()
    reasons = {"0": "empty_text", "1": "empty_text", "behind": "text_too_long", "before": "text_too_long"}
    for name, reason in (reasons | {"huge": "too_large"}).items():
        done = CliRunner().invoke(why_not, [f"x:a/{name}"], obj=settings, catch_exceptions=False)
        assert f"It was refused ({reason} at normalise: " in done.output, (name, done.output)


def test_a_text_needs_neither_broker_nor_redis():
    settings = load_settings(broker={"bootstrap": "127.0.0.1:9"})
    done = CliRunner().invoke(why_not, ["--text", "what a goal!", "--bundled", "--version", "own"], obj=settings)
    assert done.exit_code == 0 and "No query is likely enough" in done.output
    assert CliRunner().invoke(why_not, [], obj=settings).exit_code == 2
