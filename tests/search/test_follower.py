"""Search over the recent posts: filled from Kafka, asked by the page and the command line."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Sequence

import numpy as np
import pytest
from aiokafka import AIOKafkaProducer
from click.testing import CliRunner

from models.encoders.ready import Loaded
from models.encoders.registry import OWN
from models.errors import EncoderError, ServiceError
from models.records import Deletion, EmbeddedFrame, Origin, Post
from streams.broker.topics import make_topics
from streams.commands.search import search as command
from streams.config import Settings, load_settings
from streams.pipeline.frames import encode_frame, join_frames
from streams.releases.release import Release
from streams.releases.topic import change_release
from streams.search.client import base_url
from streams.search.follower import Searcher
from streams.search.window import SearchConfig, Window
from tests.dashboard.serving import TinyEncoder, frame, served, settings_for
from tests.outputs.topics import fresh_prefix
from tests.waiting import PATIENCE_S, until

NOW = time.time()


def post(post_id: str, text: str, lang: str = "en", ago_s: float = 0.0) -> Post:
    return Post(post_id, text, NOW - ago_s, NOW - ago_s, lang, "sms", url=f"https://example.org/{post_id}")


POSTS = [
    post("roof", "people trapped under a collapsed roof"),
    post("sun", "what a lovely sunny morning", ago_s=7200),
    post("toit", "des gens trapped sous le toit", "fr"),
]


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


def load_tiny(settings: Settings, name: str) -> Loaded:
    """The worker's own encoder is tiny-1; other names are versions of their own."""
    return Loaded(name, TinyEncoder("tiny-1" if name == OWN else name))


@pytest.fixture
async def searcher(settings):
    made = Searcher(settings, load=load_tiny)
    yield made
    await made.stop()


@pytest.fixture
async def window(settings):
    """One that is given its frames by hand."""
    made = Window(settings, SearchConfig(), TinyEncoder())
    yield made
    await made.close()


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


def test_every_frame_of_a_record_that_several_share_is_indexed_in_order(window):
    again = frame([post("sun", "a completely different thing")])
    window.add([join_frames([frame(POSTS[:1]), frame(POSTS[1:]), again, frame([], deletions=[Deletion("roof", NOW)])])])
    found = {f.post.id: f.post.text for f in window.search("sunny roof", k=10)}
    assert found == {"toit": POSTS[2].text, "sun": "a completely different thing"}


def test_language_and_age_narrow_the_search(window):
    window.add([frame(POSTS)])
    assert [f.post.id for f in window.search("trapped", 10, lang="fr")] == ["toit"]
    assert {f.post.id for f in window.search("trapped", 10, last_s=3600)} == {"roof", "toit"}
    assert window.search("trapped", 10, lang="xx") == []


def test_edited_and_deleted_posts_are_not_found_any_more(window):
    window.add(
        [
            frame(POSTS),
            frame([post("sun", "a completely different thing")]),
            frame([], deletions=[Deletion("roof", NOW)]),
        ]
    )
    found = {f.post.id: f.post.text for f in window.search("sunny roof", k=10)}
    assert found == {"toit": POSTS[2].text, "sun": "a completely different thing"}


def test_a_deleted_accounts_posts_are_not_found_any_more(window):
    mine, other = post("bsky:did:plc:x/1", POSTS[0].text), post("bsky:did:plc:xy/1", POSTS[0].text)
    late = frame([post("bsky:did:plc:x/2", POSTS[0].text)])  # from another partition, read late
    window.add([frame([mine, other]), frame([], deletions=[Deletion("bsky:did:plc:x", NOW)]), late])
    assert {f.post.id for f in window.search("trapped", 10)} == {other.id}


def test_what_cannot_be_used_is_counted_and_the_rest_is_indexed(window):
    good = frame(POSTS[:1])
    torn = encode_frame(EmbeddedFrame(Origin(0, 9), POSTS[1:2], encoder_version="tiny-1", dim=64, vectors=b"\x00" * 9))
    window.add([b"\x00garbage", None, torn, good, good[:-3]])
    assert len(window.index) == 1
    assert window.skipped == {"bad_frame": 3, "bad_vectors": 1}


def test_posts_of_another_version_are_embedded_again_and_never_compared_as_they_came(window):
    window.add([frame(POSTS[:1]), frame(POSTS[1:], version="tiny-2")])
    scores = TinyEncoder().encode([p.text for p in POSTS]) @ TinyEncoder().encode(["sunny morning"])[0]
    found = {f.post.id: f.score for f in window.search("sunny morning", 10)}
    assert found == pytest.approx(dict(zip(["roof", "sun", "toit"], scores, strict=True)), abs=2e-3)
    assert window.restated == 2


def test_a_deletion_counts_whatever_encoder_the_frame_was_of(window):
    window.add([frame(POSTS), frame([], version="tiny-2", deletions=[Deletion("roof", NOW)])])
    assert {f.post.id for f in window.search("roof", 10)} == {"sun", "toit"}


async def test_posts_older_than_the_window_are_not_read(embedded_broker):
    settings = load_settings(
        broker={"bootstrap": embedded_broker},
        topics={"prefix": fresh_prefix(), "partitions": 1},
        dashboard={"search_h": 1},
    )
    make_topics(settings)
    await send(settings, frame(POSTS[:1]), at=NOW - 7200)
    await send(settings, frame(POSTS[1:2]), at=NOW)
    searcher = Searcher(settings, load=load_tiny)
    await searcher.start()
    await until(lambda: searcher.status.state == "ready")
    assert searcher.status.posts == 1
    await searcher.stop()


async def test_the_event_loop_goes_on_while_posts_are_indexed(searcher, settings, monkeypatch):
    begun, may, add, threads = asyncio.Event(), threading.Event(), Window.add, set()
    loop = asyncio.get_running_loop()

    def add_when_the_loop_says_so(window: Window, values: Sequence[bytes | None]) -> None:
        threads.add(threading.current_thread())
        loop.call_soon_threadsafe(begun.set)
        assert threading.current_thread() is threading.main_thread() or may.wait(PATIENCE_S)
        add(window, values)

    monkeypatch.setattr(Window, "add", add_when_the_loop_says_so)
    await send(settings, frame(POSTS))
    await searcher.start()
    await begun.wait()  # the loop goes on in the midst of it
    assert searcher.status.posts == 0
    may.set()
    await until(lambda: searcher.status.posts == len(POSTS))
    assert threading.current_thread() not in threads


async def test_before_the_encoder_is_loaded_search_says_so(settings):
    with pytest.raises(ServiceError, match="loading"):
        await Searcher(settings).search("x")


async def test_a_missing_encoder_is_a_state_not_a_crash(settings, tmp_path):
    searcher = Searcher(
        settings.model_copy(update={"encoder": settings.encoder.model_copy(update={"ref": str(tmp_path)})})
    )
    await searcher.start()
    await until(lambda: searcher.status.state == "failed")
    assert "encoder" in searcher.status.message
    with pytest.raises(ServiceError, match="encoder"):
        await searcher.search("x")
    await searcher.stop()


async def test_an_absent_broker_is_said_and_the_process_can_stop():
    searcher = Searcher(load_settings(broker={"bootstrap": "127.0.0.1:1"}), load=load_tiny)
    await searcher.start()
    await until(lambda: "cannot ask 127.0.0.1:1" in searcher.status.message)
    await searcher.stop()


# -- another encoder version becomes current


async def use(settings: Settings, version: str) -> Release:
    return await asyncio.to_thread(change_release, settings, lambda known: known.use(version, time.time()))


async def answers(searcher: Searcher, version: str) -> None:
    await until(lambda: searcher.status.encoder_version == version)


async def test_a_take_over_is_followed_and_posts_from_before_and_after_it_are_ranked_by_the_new_version(
    settings, searcher
):
    await send(settings, frame(POSTS[:2]))
    await searcher.start()
    await until(lambda: searcher.status.posts == 2)
    await use(settings, "tiny-2")
    await send(settings, frame(POSTS[2:], version="tiny-2"), partition=1)
    await answers(searcher, "tiny-2")
    await until(lambda: searcher.status.posts == 3)
    encoder = TinyEncoder("tiny-2")
    scores = encoder.encode([p.text for p in POSTS]) @ encoder.encode(["trapped"])[0]
    found = {f.post.id: f.score for f in await searcher.search("trapped")}
    assert found == pytest.approx({p.id: s for p, s in zip(POSTS, scores, strict=True)}, abs=2e-3)
    assert (searcher.status.state, searcher.status.message, searcher.coming) == ("ready", "", None)


async def test_a_dashboard_started_after_a_take_over_begins_with_the_current_version(settings, searcher):
    await use(settings, "tiny-2")
    await send(settings, frame(POSTS, version="tiny-2"))
    await searcher.start()
    await until(lambda: searcher.status.posts == 3)
    assert (searcher.status.encoder_version, searcher.status.restated) == ("tiny-2", 0)


class Held(TinyEncoder):
    """Encodes posts only while it may, and notes in which threads."""

    def __init__(self, version: str) -> None:
        super().__init__(version)
        self.may, self.threads = threading.Event(), set()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.threads.add(threading.current_thread())
        assert texts == ["warm-up"] or self.may.wait(PATIENCE_S)
        return super().encode(texts)


@pytest.fixture
async def held(settings):
    """A searcher that answers with tiny-1 and whose tiny-2 is held up; the posts are of tiny-1."""
    encoder = Held("tiny-2")
    made = Searcher(settings, load=lambda s, name: Loaded(name, encoder) if name == "tiny-2" else load_tiny(s, name))
    await send(settings, frame(POSTS[:2]))
    await made.start()
    await until(lambda: made.status.posts == 2)
    yield made, encoder
    encoder.may.set()
    await made.stop()


async def test_the_old_version_answers_and_takes_in_posts_until_the_new_one_has_read_all(settings, held):
    searcher, encoder = held
    await use(settings, "tiny-2")
    await until(lambda: "moves to encoder tiny-2" in searcher.status.message)
    await send(settings, frame(POSTS[2:], version="tiny-2"))
    await until(lambda: searcher.status.posts == 3)
    assert {f.post.id for f in await searcher.search("trapped")} == {"roof", "sun", "toit"}
    assert searcher.status.encoder_version == "tiny-1"
    encoder.may.set()
    await answers(searcher, "tiny-2")
    assert {f.post.id for f in await searcher.search("trapped")} == {"roof", "sun", "toit"}
    assert encoder.threads and threading.current_thread() not in encoder.threads  # never on the event loop


async def test_a_rollback_half_way_drops_the_new_version(settings, held):
    searcher, encoder = held
    await use(settings, "tiny-2")
    await until(lambda: searcher.coming is not None)
    await asyncio.to_thread(change_release, settings, lambda known: known.rollback(time.time()))
    await until(lambda: searcher.coming is None)
    encoder.may.set()
    assert searcher.status.encoder_version == "tiny-1" and await searcher.search("roof")


async def test_a_version_that_cannot_be_loaded_changes_nothing_and_is_tried_again(settings):
    tries = []

    def late(chosen: Settings, name: str) -> Loaded:
        tries.append(name)
        if name == "tiny-2" and tries.count(name) < 2:
            raise EncoderError("the registry is away")
        return load_tiny(chosen, name)

    searcher = Searcher(settings, load=late)
    await send(settings, frame(POSTS))
    await searcher.start()
    await until(lambda: searcher.status.state == "ready")
    await use(settings, "tiny-2")
    await until(
        lambda: searcher.status.message == "search keeps encoder tiny-1: cannot load tiny-2: the registry is away"
    )
    assert searcher.status.state == "ready" and await searcher.search("roof")
    await answers(searcher, "tiny-2")
    assert searcher.status.message == ""
    await searcher.stop()


async def test_a_dashboard_that_cannot_load_the_current_version_answers_with_an_earlier_one(settings):
    def broken(chosen: Settings, name: str) -> Loaded:
        if name == "tiny-3":
            raise ValueError("a library fell over")
        return load_tiny(chosen, name)

    await use(settings, "tiny-2")
    await use(settings, "tiny-3")
    await send(settings, frame(POSTS, version="tiny-3"))
    searcher = Searcher(settings, load=broken)
    await searcher.start()
    await until(lambda: searcher.status.posts == 3)
    assert searcher.status.encoder_version == "tiny-2"
    assert "cannot load tiny-3: ValueError: a library fell over" in searcher.status.message
    assert (await searcher.search("sunny", k=1))[0].post.id == "sun"
    await searcher.stop()


def run(url: str, *args: str):
    return CliRunner().invoke(command, [*args, "--url", url], obj=load_settings())


def test_the_command_asks_the_dashboard(redis_url):
    with served(settings_for(redis_url), [frame([*POSTS, post("evil", "trapped \x1b[31mred\u202e")])]) as server:
        plain = run(server.url, "trapped under a roof", "-k", "2")
        assert (
            plain.exit_code == 0
            and "people trapped under a collapsed roof" in plain.stdout
            and "en · sms" in plain.stdout
        )
        lines = run(server.url, "trapped", "--format", "json", "--lang", "fr").stdout.splitlines()
        assert [json.loads(line)["id"] for line in lines] == ["toit"]
        assert (
            "\x1b" not in run(server.url, "red").stdout
            and "\u202e" not in run(server.url, "red", "--format", "json").stdout
        )
        assert "sun" not in run(server.url, "morning", "--last", "1h", "--format", "json").stdout
        assert "No post found" in run(server.url, "x", "--lang", "zz").stdout


def test_the_command_says_what_to_start_when_nobody_answers():
    result = run("http://127.0.0.1:9", "water")
    assert isinstance(result.exception, ServiceError) and "crisis dashboard" in str(result.exception)


def test_the_command_says_when_search_is_off(redis_url):
    with served(settings_for(redis_url)) as server:
        assert "without search" in str(run(server.url, "water").exception)


def test_a_token_is_sent_along_and_a_missing_one_explained(redis_url, tmp_path):
    (tmp_path / "token").write_text("a secret of some length")
    settings = settings_for(redis_url, token_file=str(tmp_path / "token"))
    with served(settings, [frame(POSTS)]) as server:
        assert "set CRISIS_DASHBOARD_TOKEN" in str(run(server.url, "water").exception)
        result = CliRunner().invoke(command, ["trapped", "--url", server.url], obj=settings)
        assert result.exit_code == 0 and "collapsed roof" in result.stdout


@pytest.mark.parametrize(
    "host, expected",
    [
        ("127.0.0.1", "http://127.0.0.1:8080"),
        ("0.0.0.0", "http://127.0.0.1:8080"),
        ("::", "http://[::1]:8080"),
        ("::1", "http://[::1]:8080"),
        ("ops.example", "http://ops.example:8080"),
    ],
)
def test_the_address_of_the_dashboard_follows_the_settings(host, expected):
    assert base_url(load_settings(dashboard={"host": host})) == expected
