"""Search follows a take-over: the old version answers until the new one has read all."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence

import numpy as np
import pytest

from models.encoders.ready import Loaded
from models.errors import EncoderError
from streams.config import Settings
from streams.releases.release import Release
from streams.releases.topic import change_release
from streams.search.follower import Searcher
from tests.dashboard.serving import TinyEncoder, frame
from tests.search.sending import POSTS, load_tiny, send
from tests.waiting import PATIENCE_S, until


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
