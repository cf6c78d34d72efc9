"""The match agent beside another that carries out a deletion: what is gone is told by nobody, whoever is first."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest
from redis.asyncio import Redis

from models.bars import Bars
from models.records import Deletion, Frame, MatchedFrame, Origin, Post
from streams import metrics
from streams.config import load_settings
from streams.pipeline import stages
from streams.pipeline.frames import encode_frame
from streams.pipeline.outcomes import through
from streams.releases.serving import Serving
from streams.releases.versions import load_version, make_ready
from streams.view.live import LiveView
from streams.worker.match import Match
from tests.releases.shop import QUERIES

HELP = "we are trapped on the roof, help"
ADA, BOB = (Post(f"~{name}/1", f"{HELP}, says {name}", 1e9, 1e9 + 1, "en") for name in ("ada", "bob"))


class Outbox:
    """Keeps what it is given; `then` happens when the first of it has gone out."""

    def __init__(self) -> None:
        self.alerts, self.frames, self.then = [], [], None

    async def send_alerts(self, alerts) -> list[bytes]:
        self.alerts += alerts
        return list(map(msgspec.json.encode, alerts))

    async def send_frame(self, frame) -> None:
        self.frames.append(frame)

    async def delivered(self) -> None:
        then, self.then = self.then, None
        if then is not None:
            await then()

    def posts(self) -> list[str]:
        return [post.id for frame in self.frames for post in frame.posts]


class Vault:
    def __init__(self) -> None:
        self.prolonged = []

    async def prolong(self, post_ids) -> None:
        self.prolonged += post_ids


@pytest.fixture(scope="module")
def ready():
    settings = load_settings()
    return make_ready(settings, load_version(settings, "own"), QUERIES)


@pytest.fixture
async def worker(redis_url, ready):
    redis, settings = Redis.from_url(redis_url), load_settings()

    async def compute(_, work, *args):
        return work(*args)

    async def nothing(*_): ...

    def new() -> Match:
        runtime = SimpleNamespace(
            view=LiveView(redis, settings),
            serving=Serving(ready),
            compute=compute,
            bars=Bars(settings.match, settings.topics.partitions),
            vault=Vault(),
            trial=SimpleNamespace(matched=nothing),
            takeover=SimpleNamespace(used=lambda _: None, languages=set()),
            forget_labels=nothing,
        )
        return Match(runtime, Outbox())

    yield new
    await redis.aclose()


def event(frame):
    return SimpleNamespace(value=encode_frame(frame), message=SimpleNamespace(partition=0, offset=0))


def event_of(ready, origin, posts=(), deleted=()):
    frame = Frame(origin, list(posts), deletions=[Deletion(name, 1e9 + 2) for name in deleted])
    return event(stages.embed(frame, ready.encoder))


@pytest.mark.parametrize("deleted", ["~ada/1", "~ada"], ids=["the post", "its account"])
@pytest.mark.parametrize("when", ["before", "once its alert is sent", "once it is kept", "after"])
async def test_whenever_another_worker_deletes_a_post_its_alert_ends_withdrawn_and_says_nothing(
    worker, ready, when, deleted
):
    mine, other = worker(), worker()
    put_alerts = mine.view.put_alerts

    async def delete():
        await other([event_of(ready, Origin(1, 1), deleted=[deleted])])

    async def put_then_delete(alerts, told):
        mine.view.put_alerts = put_alerts
        taken = await put_alerts(alerts, told)
        await delete()
        return taken

    if when == "before":
        await delete()
    elif when == "once its alert is sent":
        mine.outbox.then = delete
    elif when == "once it is kept":
        mine.view.put_alerts = put_then_delete
    await mine([event_of(ready, Origin(0, 1), [ADA, BOB])])
    if when == "after":
        await delete()
    shown = {alert.post.id: alert for alert in await mine.view.recent_alerts()}
    assert shown["~bob/1"].status == "active" and (when == "before") == ("~ada/1" not in shown)
    told = [alert for alert in mine.outbox.alerts + other.outbox.alerts if alert.post.id == "~ada/1"]
    if when != "before":
        assert (shown["~ada/1"].status, shown["~ada/1"].post.text) == ("withdrawn", "")
        assert told[0].status == "active" and {alert.status for alert in told[1:]} == {"withdrawn"}
        assert {alert.withdrawn_because for alert in told[1:]} == {"deleted"}
    else:
        assert not told
    if when != "after":
        assert mine.outbox.posts() == ["~bob/1"] == mine.runtime.vault.prolonged


async def test_a_post_that_was_left_out_has_its_one_outcome_however_often_the_frame_is_read(worker, ready):
    match = worker()
    await match([event_of(ready, Origin(1, 1), deleted=["~ada"])])
    mine = event_of(ready, Origin(0, 1), [ADA, BOB, Post("~eve/1", "lovely weather today", 1e9, 1e9 + 1, "en")])
    for _ in range(3):
        await match([mine])
    assert through(await match.view.counts()) == 3
    assert set(match.outbox.posts()) == {"~bob/1", "~eve/1"}
    assert all(isinstance(frame, MatchedFrame) for frame in match.outbox.frames)


async def test_what_alerts_an_hour_hold_back_is_a_suggestion_and_a_metric(worker, ready):
    limited = [msgspec.structs.replace(q, threshold=None, alerts_per_hour=1.0) for q in QUERIES]
    match = worker()
    match.runtime.serving = Serving(make_ready(load_settings(), load_version(load_settings(), "own"), limited))
    words = "we have no drinking water, send water please"
    asks = [Post(f"~ada/{n}", f"{words} {n}", 1e9, 1e9 + n, "en") for n in range(8)]
    await match([event_of(ready, Origin(0, 1), asks)])
    held = [a for a in match.outbox.alerts if a.query_id == "need.water" and a.level == "suggestion"]
    assert held and match.runtime.bars.held == {"need.water": len(held)}
    assert metrics.held_back.labels("need.water")._value.get() == len(held)


async def test_a_batch_asks_what_is_gone_once_before_its_alerts_and_once_after_of_all_at_once(worker, ready):
    match, asked = worker(), []
    gone = match.view.gone

    async def counted(post_ids):
        asked.append(set(post_ids))
        return await gone(post_ids)

    match.view.gone = counted
    quiet = Post("~eve/1", "lovely weather today", 1e9, 1e9 + 1, "en")
    await match([event_of(ready, Origin(0, n), [post]) for n, post in enumerate((ADA, quiet, BOB))])
    assert asked == [{"~ada/1", "~bob/1"}, {"~ada/1", "~bob/1", "~eve/1"}]
