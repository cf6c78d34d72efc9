"""Search over the recent posts: filled from Kafka, asked by the page and the command line."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from aiokafka import AIOKafkaProducer
from click.testing import CliRunner

from models.errors import ServiceError
from models.records import Deletion, Post
from streams.config import Settings, load_settings
from streams.dashboard.client import base_url
from streams.kafka import make_topics
from streams.searcher import SearchConfig, Searcher
from streams.searcher import search as command
from tests.dashboard.serving import TinyEncoder, frame, served, settings_for
from tests.outputs.topics import fresh_prefix

NOW = time.time()


def post(post_id: str, text: str, lang: str = "en", ago_s: float = 0.0) -> Post:
    return Post(post_id, text, NOW - ago_s, NOW - ago_s, lang, "sms", url=f"https://example.org/{post_id}")


POSTS = [post("roof", "people trapped under a collapsed roof"), post("sun", "what a lovely sunny morning", ago_s=7200),
         post("toit", "des gens trapped sous le toit", "fr")]  # fmt: skip


@pytest.fixture
def settings(embedded_broker) -> Settings:
    made = load_settings(broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix(), "partitions": 2})
    make_topics(made)
    return made


async def send(settings: Settings, *values: bytes, partition: int = 0, at: float | None = None) -> None:
    async with AIOKafkaProducer(bootstrap_servers=settings.broker.bootstrap) as producer:
        for value in values:
            topic = settings.topics.name("posts.embedded")
            await producer.send_and_wait(topic, value, partition=partition, timestamp_ms=int(at * 1000) if at else None)


async def until(condition) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.02)


@pytest.fixture
async def searcher(settings):
    made = Searcher(settings, encoder=TinyEncoder())
    yield made
    await made.stop()


async def test_posts_sent_before_and_after_the_start_are_found(settings, searcher):
    await send(settings, frame(POSTS[:1]))
    await send(settings, frame(POSTS[1:2]), partition=1)
    await searcher.start()
    await until(lambda: searcher.status.state == "ready")
    assert searcher.status.posts == 2
    await send(settings, frame(POSTS[2:]))
    await until(lambda: searcher.status.posts == 3)
    found = await searcher.search("trapped under the roof", k=2)
    assert [f.post.id for f in found][0] == "roof" and found[0].score > found[1].score


async def test_results_are_those_of_a_brute_force_search(settings, searcher):
    texts = [f"post number {n} about {word}" for n in range(40) for word in ("water", "food", "shelter")]
    posts = [post(f"p{n}", text) for n, text in enumerate(texts)]
    await send(settings, frame(posts))
    await searcher.start()
    await until(lambda: searcher.status.posts == len(posts))
    encoder = TinyEncoder()
    scores = encoder.encode(texts) @ encoder.encode(["food number 7"])[0]
    best = sorted(range(len(texts)), key=lambda i: -scores[i])[:5]
    found = await searcher.search("food number 7", k=5)
    assert [f.post.id for f in found] == [f"p{i}" for i in best]
    assert [f.score for f in found] == pytest.approx([scores[i] for i in best], abs=2e-3)


async def test_language_and_age_narrow_the_search(searcher):
    searcher._load()
    searcher.add([frame(POSTS)])
    assert [f.post.id for f in await searcher.search("trapped", lang="fr")] == ["toit"]
    assert {f.post.id for f in await searcher.search("trapped", last_s=3600)} == {"roof", "toit"}
    assert await searcher.search("trapped", lang="xx") == []


async def test_edited_and_deleted_posts_are_not_found_any_more(searcher):
    searcher._load()
    searcher.add([frame(POSTS), frame([post("sun", "a completely different thing")]), frame([], deletions=[Deletion("roof", NOW)])])
    found = {f.post.id: f.post.text for f in await searcher.search("sunny roof", k=10)}
    assert found == {"toit": POSTS[2].text, "sun": "a completely different thing"}


async def test_what_cannot_be_used_is_counted_and_the_rest_is_indexed(searcher):
    searcher._load()
    good, other = frame(POSTS[:1]), frame(POSTS[1:2], version="other-9")
    searcher.add([b"\x00garbage", None, other, good, good[:-3]])
    assert searcher.status.posts == 1
    assert searcher.status.skipped == {"bad_frame": 3, "other_encoder_version": 1}


async def test_posts_older_than_the_window_are_not_read(embedded_broker):
    settings = load_settings(
        broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix(), "partitions": 1}, dashboard={"search_h": 1}
    )
    make_topics(settings)
    await send(settings, frame(POSTS[:1]), at=NOW - 7200)
    await send(settings, frame(POSTS[1:2]), at=NOW)
    searcher = Searcher(settings, encoder=TinyEncoder())
    await searcher.start()
    await until(lambda: searcher.status.state == "ready")
    assert searcher.status.posts == 1
    await searcher.stop()


async def test_the_event_loop_goes_on_while_posts_are_indexed(searcher, settings):
    many = [frame([post(f"{n}-{i}", f"text {n} {i}") for i in range(100)]) for n in range(30)]
    await send(settings, *many)
    await searcher.start()
    worst, at = 0.0, time.monotonic()
    while searcher.status.posts < 3000:
        await asyncio.sleep(0.005)
        worst, at = max(worst, time.monotonic() - at), time.monotonic()
    assert worst < 1.0  # generous: the machine may be busy; indexing on the loop would take longer


async def test_before_the_encoder_is_loaded_search_says_so(settings):
    with pytest.raises(ServiceError, match="loading"):
        await Searcher(settings).search("x")


async def test_a_missing_encoder_is_a_state_not_a_crash(settings):
    searcher = Searcher(settings.model_copy(update={"encoder": settings.encoder.model_copy(update={"ref": "/nowhere/at/all"})}))
    await searcher.start()
    await until(lambda: searcher.status.state == "failed")
    assert "encoder" in searcher.status.message
    with pytest.raises(ServiceError, match="encoder"):
        await searcher.search("x")
    await searcher.stop()


async def test_an_absent_broker_is_said_and_the_process_can_stop():
    searcher = Searcher(load_settings(broker={"bootstrap": "127.0.0.1:1"}), SearchConfig(), TinyEncoder())
    await searcher.start()
    await until(lambda: "cannot read posts.embedded" in searcher.status.message)
    async with asyncio.timeout(5):
        await searcher.stop()


def run(url: str, *args: str):
    return CliRunner().invoke(command, [*args, "--url", url], obj=load_settings())


def test_the_command_asks_the_dashboard(redis_url):
    with served(settings_for(redis_url), [frame([*POSTS, post("evil", "trapped \x1b[31mred\u202e")])]) as server:
        plain = run(server.url, "trapped under a roof", "-k", "2")
        assert plain.exit_code == 0 and "people trapped under a collapsed roof" in plain.stdout and "en · sms" in plain.stdout
        lines = run(server.url, "trapped", "--format", "json", "--lang", "fr").stdout.splitlines()
        assert [json.loads(line)["id"] for line in lines] == ["toit"]
        assert "\x1b" not in run(server.url, "red").stdout and "\u202e" not in run(server.url, "red", "--format", "json").stdout
        assert "sun" not in run(server.url, "morning", "--last", "1h", "--format", "json").stdout
        assert "No post found" in run(server.url, "x", "--lang", "zz").stdout


def test_the_command_says_what_to_start_when_nobody_answers():
    result = run("http://127.0.0.1:9", "water")
    assert isinstance(result.exception, ServiceError) and "crisis dashboard" in str(result.exception)


def test_the_command_says_when_search_is_off(redis_url):
    with served(settings_for(redis_url)) as server:
        assert "without search" in str(run(server.url, "water").exception)


def test_a_token_is_sent_along_and_a_missing_one_explained(redis_url, tmp_path):
    (tmp_path / "token").write_text("secret")
    settings = settings_for(redis_url, token_file=str(tmp_path / "token"))
    with served(settings, [frame(POSTS)]) as server:
        assert "CRISIS_DASHBOARD__TOKEN_FILE" in str(run(server.url, "water").exception)
        result = CliRunner().invoke(command, ["trapped", "--url", server.url], obj=settings)
        assert result.exit_code == 0 and "collapsed roof" in result.stdout


@pytest.mark.parametrize("host, expected", [("127.0.0.1", "http://127.0.0.1:8080"), ("0.0.0.0", "http://127.0.0.1:8080"),
                                            ("::", "http://[::1]:8080"), ("::1", "http://[::1]:8080"), ("ops.example", "http://ops.example:8080")])  # fmt: skip
def test_the_address_of_the_dashboard_follows_the_settings(host, expected):
    assert base_url(load_settings(dashboard={"host": host})) == expected
