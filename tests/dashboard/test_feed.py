"""One reader, many viewers: nobody is shown a gap as if it were complete, and nobody slow costs memory."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec
import pytest

from models.errors import ServiceError
from models.feedback.records import label_alert
from streams.broker.lag import LagReader
from streams.config import Settings
from streams.dashboard.feed import BIG_BATCH, KEPT_BATCHES, MOST_OWN, MOST_VIEWERS, QUEUE, Feed
from streams.dashboard.filters import Filter
from streams.pipeline.stages.alerting import blank
from tests.dashboard.invented import clusters_of, invent, several
from tests.waiting import PATIENCE_S

NOW = 1_795_000_000.0


@pytest.fixture
def feed() -> Feed:
    return Feed(Settings(), view=None)


def publish(feed: Feed, *alerts) -> None:
    """What Redis would publish, its flush still to come."""
    for alert in alerts:
        feed._receive("live-alerts", msgspec.json.encode(alert))


def tell(feed: Feed, *alerts) -> None:
    """What Redis would publish, then a flush."""
    publish(feed, *alerts)
    feed.hand_out()


class Viewer:
    """Reads the events that are there."""

    def __init__(self, feed: Feed, last_id: str | None = None, wanted: Filter | None = None) -> None:
        self._events = feed.events(wanted or Filter(), last_id)

    async def read(self, most: int = 1000) -> list:
        found = []
        with contextlib.suppress(TimeoutError):
            while len(found) < most:
                # A shielded read: a time-out must not end the generator.
                self._next = getattr(self, "_next", None) or asyncio.ensure_future(anext(self._events))
                found.append(await asyncio.wait_for(asyncio.shield(self._next), 0.05))
                self._next = None
        return found

    async def close(self) -> None:
        if getattr(self, "_next", None):
            self._next.cancel()
            with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
                await self._next
        await self._events.aclose()


def posts(events: list) -> list[str]:
    return [s["alert"]["post"]["id"] for e in events if e.name == "live" for s in msgspec.json.decode(e.data)["alerts"]]


async def test_every_viewer_gets_every_alert_in_order(feed):
    viewers = [Viewer(feed) for _ in range(3)]
    for viewer in viewers:
        assert [e.name for e in await viewer.read(1)] == ["stats"]
    tell(feed, invent(1, at=NOW), invent(2, at=NOW))
    tell(feed, invent(3, at=NOW))
    for viewer in viewers:
        assert posts(await viewer.read()) == ["p1", "p2", "p3"]
        await viewer.close()
    assert feed.viewers == 0


async def test_an_alert_told_twice_is_sent_once(feed):
    viewer = Viewer(feed)
    await viewer.read(1)
    tell(feed, invent(1, at=NOW))
    tell(feed, invent(1, at=NOW))
    assert posts(await viewer.read()) == ["p1"]
    await viewer.close()


async def test_who_comes_back_gets_what_was_missed(feed):
    tell(feed, invent(1, at=NOW))
    last_id = feed.hand_out()
    tell(feed, invent(2, at=NOW))
    tell(feed, invent(3, at=NOW))
    viewer = Viewer(feed, last_id)
    assert posts(await viewer.read()) == ["p2", "p3"]
    await viewer.close()


async def test_what_a_page_was_made_with_is_not_sent_to_it_again(feed):
    publish(feed, invent(1, at=NOW))
    viewer = Viewer(feed, feed.hand_out())
    tell(feed, invent(2, at=NOW))
    assert posts(await viewer.read()) == ["p2"]
    await viewer.close()


@pytest.mark.parametrize("last_id", ["other-1", "nonsense", "-", "{boot}-999", "{boot}-x"])
async def test_who_comes_back_from_elsewhere_starts_over(feed, last_id):
    tell(feed, invent(1, at=NOW))
    viewer = Viewer(feed, last_id.format(boot=feed.boot))
    assert [e.name for e in await viewer.read()] == ["resync", "stats"]
    await viewer.close()


async def test_who_was_away_too_long_starts_over(feed):
    last_id = feed.hand_out()
    for n in range(KEPT_BATCHES + 5):
        tell(feed, invent(n, at=NOW))
    viewer = Viewer(feed, last_id)
    assert [e.name for e in await viewer.read()] == ["resync", "stats"]
    await viewer.close()


async def test_a_slow_viewer_starts_over_and_others_do_not_notice(feed):
    slow, quick = Viewer(feed), Viewer(feed)
    await slow.read(1), await quick.read(1)
    got = []
    for n in range(QUEUE + 10):
        tell(feed, invent(n, at=NOW))
        got += await quick.read(1)
    assert len(posts(got)) == QUEUE + 10
    late = await slow.read()
    assert "resync" in [e.name for e in late] and len(late) <= QUEUE
    for viewer in (slow, quick):
        await viewer.close()


async def test_a_flood_is_a_call_to_fetch_the_newest(feed):
    viewer = Viewer(feed)
    await viewer.read(1)
    tell(feed, *(invent(n, at=NOW) for n in range(BIG_BATCH + 1)))
    assert [e.name for e in await viewer.read()] == ["resync"]
    await viewer.close()


async def test_a_viewer_learns_which_alerts_fit_its_filter(feed):
    viewer = Viewer(feed, wanted=Filter(kind="offer"))
    await viewer.read(1)
    tell(feed, invent(1, at=NOW), invent(2, "offer.food", at=NOW))
    (live,) = await viewer.read()
    assert [s.get("fits", True) for s in msgspec.json.decode(live.data)["alerts"]] == [False, True]
    await viewer.close()


def test_there_are_only_so_many_viewers_of_one_person(feed):
    held = [feed.events(Filter(), None, "ana") for _ in range(MOST_OWN)]
    assert "ana" in feed.full("ana") and feed.full("bob") is None and feed.full("") is None
    held.pop()  # never read, and forgotten
    assert feed.full("ana") is None and feed.viewers == MOST_OWN - 1


def test_there_are_only_so_many_viewers(feed):
    held = [feed.events(Filter(), None) for _ in range(MOST_VIEWERS - 1)]
    assert feed.full("ana") is None
    held.append(feed.events(Filter(), None))
    assert str(MOST_VIEWERS) in feed.full("ana") and feed.full("")


async def test_what_comes_before_a_viewer_reads_is_told_once(feed):
    last_id = feed.hand_out()
    tell(feed, invent(1, at=NOW))
    viewer = Viewer(feed, last_id)
    tell(feed, invent(2, at=NOW))
    assert posts(await viewer.read()) == ["p1", "p2"]
    await viewer.close()


async def test_clusters_travel_too(feed):
    viewer = Viewer(feed)
    await viewer.read(1)
    events, _ = clusters_of(several(30, NOW), NOW)
    for event in events:
        feed._receive("live-clusters", msgspec.json.encode(event))
    feed._send(resync=False)
    (live,) = await viewer.read()
    assert len(msgspec.json.decode(live.data)["clusters"]) == len(events)
    await viewer.close()


UNTEXT, DEEP = b'{"alert_id":"\xff","cluster_id":"\xff"}', b'{"a":' + b"[" * 100_000


@pytest.mark.parametrize("channel", ["live-alerts", "live-clusters"])
@pytest.mark.parametrize("data", [b"", b"x", b"[]", b'{"alert_id":5}', b"{}", b"\xff", UNTEXT, DEEP])
async def test_a_strange_message_changes_nothing(feed, data, channel):
    feed._receive(channel, data)
    assert not feed._alerts and not feed._clusters


async def test_who_comes_back_is_not_told_again_what_was_taken_back_and_it_is_kept_nowhere(feed):
    begin = feed.hand_out()
    taken_back = invent(1, at=NOW, text="Zebrafish Street 7")
    tell(feed, taken_back, invent(2, at=NOW))
    tell(feed, msgspec.structs.replace(blank(taken_back), revision=taken_back.revision + 1, status="withdrawn"))
    viewer = Viewer(feed, last_id=begin)
    told = await viewer.read()
    await viewer.close()
    assert posts(told) == ["p2", "p1"]
    assert not [event for event in told if b"Zebrafish" in event.data]
    assert "Zebrafish" not in repr((feed._kept.after(0), feed._alerts, vars(feed.board)))


async def test_batches_that_go_take_along_what_is_remembered_of_them(feed):
    for n in range(KEPT_BATCHES + 10):
        tell(feed, invent(n % 7, at=NOW + n), invent(1000 + n, at=NOW))
    assert len(feed._kept.after(0)) == KEPT_BATCHES
    assert len(feed._kept._last) <= KEPT_BATCHES + 7


async def test_the_feed_ends_though_the_broker_refused_in_the_moment_it_was_told_to(feed, monkeypatch):
    asked = asyncio.Event()

    async def refused(_):
        asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ServiceError("connection refused") from None

    monkeypatch.setattr(LagReader, "read", refused)
    watching = asyncio.create_task(feed._watch_lag())
    await asked.wait()
    watching.cancel()
    await asyncio.wait([watching], timeout=PATIENCE_S)
    assert watching.cancelled()


def test_open_alerts_are_counted_with_what_people_said_of_them():
    labels = {}
    feed = Feed(Settings(), view=None, taught=lambda: (len(labels), labels))
    publish(feed, alert := invent(1, at=NOW))
    assert feed.open_counts()["need.water"].alert == 1
    said = label_alert(alert, "none", "Ana", NOW)
    labels[said.key] = said
    assert feed.open_counts() == {}
