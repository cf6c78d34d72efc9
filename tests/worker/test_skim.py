"""When the reader counts as behind, and when there is room for what waits."""

import pytest

from models.encoders.ready import load, ready
from models.errors import BundleError
from models.queries import background_texts, load_queries
from models.records import Frame, Origin, Post
from streams.config import load_settings
from streams.pipeline.triage import EACH
from streams.worker import skim
from streams.worker.skim import LEAST_POSTS, QUIET_S, Pace, Skim

NOW = 1_795_000_000.0


def frame(*ages_s: float) -> Frame:
    return Frame(Origin(0, 1), [Post(f"p{n}", "text", NOW, NOW - age) for n, age in enumerate(ages_s)])


@pytest.fixture
def behind() -> Pace:
    pace = Pace(5.0)
    pace.told({"posts.raw": 10 * LEAST_POSTS})
    return pace


def test_the_lag_is_the_age_of_the_oldest_post(behind):
    assert behind.begin([frame(3.0), frame(40.0, 1.0)], NOW) == 40.0


def test_an_old_post_with_hardly_another_behind_it_is_no_lag(behind):
    behind.told({"posts.raw": LEAST_POSTS - 1})
    assert behind.begin([frame(3600.0)], NOW) == 0.0


def test_a_frame_without_posts_and_a_clock_before_the_brokers_are_no_lag(behind):
    assert behind.begin([frame()], NOW) == behind.begin([frame(-60.0)], NOW) == 0.0


def test_there_is_room_at_half_the_limit_and_not_beyond(behind):
    behind.begin([frame(2.4)], NOW)
    assert behind.room(NOW)
    behind.begin([frame(2.6)], NOW)
    assert not behind.room(NOW)


def test_there_is_room_once_no_more_posts_come(behind):
    behind.begin([frame(60.0)], NOW)
    assert not behind.room(NOW + 10 * QUIET_S)
    behind.told({})
    assert behind.room(NOW + 2 * QUIET_S)


def test_a_few_records_that_many_small_frames_share_are_a_lag():
    pace = Pace(5.0)
    for _ in range(20):
        pace.took("posts.clean", records=2, posts=400)
    pace.told({"posts.raw": 0, "posts.clean": 15, "posts.matched": 9})
    assert pace.posts == pytest.approx(15 * 200, rel=0.01)
    assert pace.begin([frame(40.0)], NOW) == 40.0 and not pace.room(NOW)


def test_who_writes_many_different_calls_is_read_a_few_times_before_others_are():
    """By the author that the source tells, and where it tells none by the account in the id."""
    queries = load_queries()[:4]
    calls = list(dict.fromkeys(text for query in queries for _, text in query.texts()))[:60]
    small_talk = [Post(f"p{n}", text, NOW, NOW, "en", "sms", f"a{n}") for n, text in enumerate(background_texts()[:40])]
    flood = ready(load("flood"), queries)
    for own, author in (("", "one account"), ("own/", None)):
        cries = [Post(f"{own}c{n}", text, NOW, NOW, "en", "sms", author) for n, text in enumerate(calls)]
        (kept,), (waiting,) = Skim(load_settings()).divide(flood, [Frame(Origin(0, 1), small_talk + cries)], 0.125, NOW)
        assert len(kept.posts) == 12 and len(kept.posts) + len(waiting) == 100
        assert len({post.id for post in kept.posts} & {post.id for post in cries}) == EACH


async def test_a_skim_that_cannot_be_made_is_told_and_made_when_it_is_asked_for_again(monkeypatch, caplog):
    found, wrong = skim.static, iter([BundleError("no static encoder")])
    monkeypatch.setattr(skim, "static", lambda: found() if (why := next(wrong, None)) is None else throw(why))
    skimming, queries = Skim(load_settings()), load_queries()[:2]
    assert skimming.of(READER, queries) is None
    await skimming._making
    assert "no static encoder" in caplog.text and skimming.of(READER, queries) is None
    await skimming._making
    assert skimming.of(READER, queries) is not None


READER = object()  # any encoder that is not static


def throw(error: Exception) -> None:
    raise error
