"""Whatever falls silent is told within seconds, by a clock that nobody puts back."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import msgspec
import pytest
from redis.exceptions import ConnectionError as NoConnection

from models.errors import ServiceError
from streams.broker.lag import LagReader
from streams.broker.topics import AGENTS
from streams.config import Settings
from streams.dashboard.feed import BROKER_ANSWERS_S, LAG_S, TICK_S, Feed
from streams.view.health import Known
from streams.view.status import SourceStatus, WorkerStatus
from tests.waiting import until

NOW = 1_795_000_000.0


class Hours:
    """A clock that is put on by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def hours() -> Hours:
    return Hours()


def heard_just_now(feed: Feed, hours: Hours) -> Feed:
    """All is well at this moment: what `_measure`, `_hear` and `_watch_lag` note."""
    feed._known = Known(NOW, {"a": WorkerStatus(NOW, list(AGENTS))}, {"http": SourceStatus(NOW)})
    feed._known_at = feed._answered = feed._heard = hours.now
    feed._lag = {}
    return feed


@pytest.mark.parametrize("dies", ["_answered", "_heard", "broker", "worker", "source"])
def test_whatever_falls_silent_is_told_within_five_seconds_and_nothing_before(hours, dies):
    feed = heard_just_now(Feed(Settings(), view=None, clock=hours), hours)
    died = hours.now
    for _ in range(200):
        assert hours.now - died <= 5.0 - TICK_S, f"{dies} has been silent for {hours.now - died:g} s: {feed.health}"
        for name in {"_answered", "_heard"} - {dies}:
            setattr(feed, name, hours.now)
        if dies == "broker" and hours.now - died >= LAG_S:  # right after it answered: it is asked after the pause
            feed._lag_asked = died + LAG_S
        at = NOW + hours.now - died
        spoke = {name: NOW if name == dies else at for name in ("worker", "source")}
        worker, source = WorkerStatus(spoke["worker"], list(AGENTS)), SourceStatus(spoke["source"])
        feed._known, feed._known_at = Known(at, {"a": worker}, {"http": source}), hours.now
        if feed.health.level != "live":
            break
        hours.now += 0.1
    assert hours.now - died > 2.5, "a busy moment is no fault"


async def test_only_an_error_or_an_answer_that_comes_too_late_is_told_as_a_broker_that_is_down(hours, monkeypatch):
    """A busy broker takes two seconds and more, again and again."""
    feed = heard_just_now(Feed(Settings(), view=None, clock=hours), hours)
    took = [2.5, BROKER_ANSWERS_S, BROKER_ANSWERS_S + 0.1, 6.0, 0.1, ServiceError("refused"), 2.5]
    told: list[str] = []

    def look() -> None:
        """By what Redis and the live channel say now."""
        feed._known_at = feed._answered = feed._heard = hours.now
        told.append(feed.health.level)

    async def read(_: LagReader) -> dict[str, int]:
        takes = took.pop(0)
        if isinstance(takes, ServiceError):
            raise takes
        asked = hours.now
        hours.now = asked + min(takes, BROKER_ANSWERS_S)
        look()  # under way
        hours.now = asked + takes
        look()
        return {}

    async def pause(seconds: float) -> None:
        hours.now += seconds
        look()
        told.append("|")
        if not took:
            raise EOFError

    monkeypatch.setattr(LagReader, "read", read)
    monkeypatch.setattr("streams.dashboard.feed.asyncio", SimpleNamespace(sleep=pause))
    with pytest.raises(EOFError):
        await feed._watch_lag()
    assert " ".join(told).split(" | ") == [
        "live live live",
        "live live live",
        "live down down",
        "down down down",
        "down down live",
        "down",
        "down down live |",
    ]


@pytest.mark.parametrize("error, told", [(TimeoutError(), "for 3 s"), (NoConnection("refused"), "refused")])
async def test_a_redis_that_is_away_is_told_with_the_reason_or_for_how_long(hours, monkeypatch, error, told):
    feed = heard_just_now(Feed(Settings(), view=None, clock=hours), hours)
    hours.now += 3.0

    async def measured(_: float) -> None:
        raise error

    monkeypatch.setattr(feed, "_measure", measured)
    ticking = asyncio.create_task(feed._tick())
    await until(lambda: feed.stats.problem != "starting")
    ticking.cancel()
    assert feed.stats.problem == f"no answer from Redis: {told}"


async def test_a_clock_that_is_put_back_an_hour_changes_neither_the_rate_nor_the_pause(hours, monkeypatch):
    wall, read, pauses = [NOW], [0], []

    async def measured() -> float:
        if len(pauses) == 3:
            wall[0] -= 3600.0
        hours.now += 0.25
        read[0] += 50
        return wall[0]

    async def counted(name: str) -> dict[str, int]:
        return {"read": read[0]} if name == "counts" else {}

    async def nothing(*_: object) -> dict:
        return {}

    async def none_yet() -> list:
        return []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        hours.now += seconds
        if len(pauses) == 6:
            raise EOFError

    view = SimpleNamespace(now=measured, counts=counted)
    view.sources = view.workers = view.repeats_of = nothing
    view.latencies_ms = view.proposals = none_yet
    feed = Feed(Settings(), view=view, clock=hours)
    told = []
    monkeypatch.setattr(feed, "_hand_out", told.append)
    monkeypatch.setattr("streams.dashboard.feed.time", SimpleNamespace(time=lambda: wall[0]))
    monkeypatch.setattr("streams.dashboard.feed.asyncio.sleep", pause)
    with pytest.raises(EOFError):
        await feed._tick()
    assert pauses == [0.75] * 6
    figures = [msgspec.json.decode(event.data) for event in told]
    assert [stats["posts_per_s"] for stats in figures] == [0.0, *[50.0] * 5]
    assert figures[-1]["at"] == NOW - 3600.0


class Channel:
    """A live channel of Redis whose connection is half open from the third word on."""

    def __init__(self, hours: Hours) -> None:
        self._hours, self._due, self.pings = hours, 3, 0

    async def __aenter__(self) -> Channel:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def subscribe(self, *_: str) -> None:
        pass

    async def ping(self) -> None:
        self.pings += 1

    async def get_message(self, timeout: float) -> dict | None:
        self._due -= 1
        if self._due < 0:
            self._hours.now += timeout
            return None
        return {"type": "pong", "data": b""}


async def test_a_live_channel_that_is_half_open_is_told_and_opened_anew(hours):
    channel = Channel(hours)
    feed = Feed(
        Settings(), view=SimpleNamespace(redis=SimpleNamespace(pubsub=lambda **_: channel), key=str), clock=hours
    )

    async def nothing() -> None:
        pass

    feed._load = nothing
    began = hours.now
    with pytest.raises(NoConnection, match="silent"):
        await feed._hear(lambda: None)
    assert hours.now - began <= 4.0 and channel.pings >= 2
    feed._answered = hours.now
    assert feed.health.sentence.startswith("Redis does not answer")
