"""Search over the recent posts: filled from Kafka, narrowed, edited, deleted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from models.errors import ServiceError
from models.records import Deletion, EmbeddedFrame, Origin
from streams.broker.topics import make_topics
from streams.config import load_settings
from streams.pipeline.frames import encode_frame, join_frames
from streams.search.follower import Searcher
from streams.search.window import Window
from tests.dashboard.serving import TinyEncoder, frame
from tests.outputs.topics import fresh_prefix
from tests.search.sending import NOW, POSTS, load_tiny, post, send
from tests.waiting import PATIENCE_S, until


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
    numbers = ["".join("abcdefghij"[int(digit)] for digit in str(n)) for n in range(40)]  # in digits they were one text
    texts = [f"post number {n} about {word}" for n in numbers for word in ("water", "food", "shelter")]
    posts = [post(f"p{n}", text) for n, text in enumerate(texts)]
    await send(settings, frame(posts))
    await searcher.start()
    await until(lambda: searcher.status.posts == len(posts))
    encoder = TinyEncoder()
    scores = encoder.encode(texts) @ encoder.encode(["food number h"])[0]
    best = sorted(range(len(texts)), key=lambda i: -scores[i])[:5]
    found = await searcher.search("food number h", k=5)
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


def test_a_post_that_the_encoder_does_not_survive_is_left_out_alone_and_ends_no_search(window, monkeypatch):
    encode = window.encoder.encode

    def fails(texts):
        if POSTS[1].text in texts:
            raise RuntimeError("no encoder survives it")
        return encode(texts)

    monkeypatch.setattr(window.encoder, "encode", fails, raising=False)
    window.add([frame(POSTS, version="tiny-2", deletions=[Deletion("toit", NOW)]), frame(POSTS[1:2], version="tiny-2")])
    assert {f.post.id for f in window.search("trapped", 10)} == {"roof"}
    assert (window.skipped, window.restated) == ({"unread": 2}, 2)


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
