"""`crisis restore`: what Redis lost comes back from Kafka, as it was, and nothing that was deleted."""

from __future__ import annotations

import time

import msgspec
import pytest
from click.testing import CliRunner
from kafka import KafkaProducer
from rich.progress import Progress

from models.alerts import withdraw
from models.errors import ServiceError
from models.records import Alert, Deletion
from streams.broker.reading import read_values
from streams.broker.topics import AGENTS, make_topics
from streams.commands.restore import restore, restore_view
from streams.commands.status import LACKS, ask
from streams.config import load_settings
from streams.pipeline.stages.alerting import taken_back
from streams.view.connect import connect
from streams.view.live import LiveView
from streams.view.status import WorkerStatus
from streams.worker.keeping import keep_alerts
from streams.worker.outbox import Outbox
from streams.worker.sending import Sender
from tests.dashboard.invented import clusters_of, invent, several
from tests.dashboard.seeding import SPEAKS_S
from tests.outputs.topics import fresh_prefix


@pytest.fixture
def settings(broker, redis_url):
    made = load_settings(
        broker={"bootstrap": broker}, redis={"url": redis_url}, topics={"prefix": fresh_prefix(), "partitions": 3}
    )
    make_topics(made)
    return made


@pytest.fixture
async def view(settings):
    async with connect(settings.redis) as redis:
        yield LiveView(redis, settings)


@pytest.fixture
async def outbox(settings):
    sender = Sender(settings)
    await sender.start()
    yield Outbox(sender, settings)
    await sender.stop()


async def tell(outbox, view, alerts=(), clusters=()):
    """As workers do: to the broker, then into the view."""
    await outbox.send_cluster_events(clusters)
    await outbox.send_alerts(alerts)
    await outbox.delivered()
    await view.put_clusters(clusters)
    await keep_alerts(outbox, view, alerts)


async def held(view):
    """All that the page is made of, and what finds it."""
    alerts = await view.recent_alerts()
    clusters = await view.clusters()
    found = [await view.alerts_of([alert.post.id]) for alert in alerts]
    return alerts, clusters, found, await view.redis.hgetall(view.key("alert-places"))


def restored(settings):
    return restore_view(settings, Progress(disable=True))


def states_on(settings):
    """alert id → every state on the topic, oldest first."""
    states: dict[str, list[Alert]] = {}
    for value in read_values(settings, "alerts"):
        states.setdefault((alert := msgspec.json.decode(value, type=Alert)).alert_id, []).append(alert)
    return states


async def test_after_redis_was_emptied_the_view_shows_the_same_alerts_and_clusters_as_before(settings, view, outbox):
    now = time.time()
    alerts = several(120, now)
    events, placed = clusters_of(alerts, now)
    grown = [msgspec.structs.replace(event, version=event.version + 1, posts=event.posts + 1) for event in events]
    ended = msgspec.structs.replace(events[-1], event="expire", version=events[-1].version + 2)
    withdrawn = taken_back(placed[-5:], {alert.post.id for alert in placed[-5:]})  # none of which a cluster shows
    await tell(outbox, view, alerts, events)
    await tell(outbox, view, placed, [*grown, ended])
    await tell(outbox, view, withdrawn)
    before = await held(view)
    assert len(before[0]) == 120 and len(before[1]) == len(events) - 1 > 5

    await view.redis.flushdb()
    assert await held(view) == ([], [], [], {})
    done = await restored(settings)
    assert await held(view) == before
    assert str(done) == f"120 alerts read, 120 put; {len(events)} clusters read, {len(events)} put"
    again = await restored(settings)  # and what is there already is put no second time
    assert str(again) == f"120 alerts read, 0 put; {len(events)} clusters read, 0 put"
    assert await held(view) == before


async def test_live_readers_are_told_the_newest_state_alone_and_never_a_text_that_was_taken_back(
    settings, view, outbox
):
    alert = invent(1, at=time.time(), text="at the red house")
    await tell(outbox, view, [alert, *taken_back([alert], {alert.post.id})])
    await view.redis.flushdb()
    async with view.redis.pubsub(ignore_subscribe_messages=True) as channel:
        await channel.subscribe(view.key("live-alerts"))
        await channel.get_message(timeout=5)
        await restored(settings)
        told = await channel.get_message(timeout=5)
        assert b'"status":"withdrawn"' in told["data"] and b"red house" not in told["data"]
        assert await channel.get_message(timeout=0.2) is None


async def test_what_workers_put_since_then_stays(settings, view, outbox):
    old, new = invent(1, at=time.time() - 50), invent(2, at=time.time())
    await tell(outbox, view, [old])
    await view.redis.flushdb()
    newer = msgspec.structs.replace(old, revision=old.revision + 2, cluster_id="c7")
    await view.put_alerts([newer, new])
    assert (await restored(settings)).alerts_put == 0
    assert await view.recent_alerts() == [new, newer]


async def test_a_post_that_was_deleted_after_redis_lost_its_alert_is_withdrawn_here_and_on_the_broker(
    settings, view, outbox
):
    alert, other = invent(1, at=time.time(), text="at the red house"), invent(2, at=time.time())
    await tell(outbox, view, [alert, other])
    await view.redis.flushdb()
    await view.mark_gone([alert.post.id])  # as the matcher does; it finds no alert to withdraw
    done = await restored(settings)
    assert (done.alerts_put, done.withdrawn) == (1, 1)
    (known,) = await view.alerts_of([alert.post.id])
    assert (known.status, known.withdrawn_because, known.post.text) == ("withdrawn", "deleted", "")
    assert states_on(settings)[alert.alert_id][-1] == known
    assert states_on(settings)[other.alert_id] == [other]
    assert str(done) == ("2 alerts read, 1 put, 1 withdrawn: their posts were deleted since; 0 clusters read, 0 put")


async def test_an_older_state_that_stands_last_on_the_broker_is_followed_by_the_newest(settings, view, outbox):
    """A frame that is read again after the loss tells its alert as it first was: compaction would keep only that."""
    alert = invent(1, at=time.time())
    gone = withdraw(alert, Deletion(alert.post.id, time.time()))
    await tell(outbox, view, [alert, gone])
    await view.redis.flushdb()
    await tell(outbox, view, [alert])
    await restored(settings)
    assert await view.alerts_of([alert.post.id]) == [gone]
    assert states_on(settings)[alert.alert_id] == [alert, gone, alert, gone]


async def test_a_record_that_is_no_alert_is_left_out_and_counted_and_the_others_come(settings, view, outbox, caplog):
    alert = invent(1, at=time.time())
    await tell(outbox, view, [alert])
    with_key = KafkaProducer(bootstrap_servers=settings.broker.bootstrap)
    for topic in ("alerts", "clusters"):
        with_key.send(settings.topics.name(topic), key=b"x", value=b"\xff no alert").get(30)
    with_key.close()
    await view.redis.flushdb()
    assert str(await restored(settings)) == "1 alerts read, 1 put; 0 clusters read, 0 put; 2 unreadable"
    for topic in ("alerts", "clusters"):
        assert f"ignored a record of {settings.topics.name(topic)}, partition " in caplog.text
    assert await view.recent_alerts() == [alert]


async def test_the_status_says_that_redis_was_emptied_until_it_is_restored(settings, view, outbox):
    async def speaks():
        await view.put_worker("w", WorkerStatus(await view.now() + SPEAKS_S, list(AGENTS), "v"))

    written = invent(1, at=time.time() - 600), invent(2, at=time.time())
    await speaks()
    producer = KafkaProducer(bootstrap_servers=settings.broker.bootstrap)
    for alert, ago_s in zip(written, (600, 0), strict=True):
        where = {"key": alert.alert_id.encode(), "timestamp_ms": int((time.time() - ago_s) * 1000)}
        producer.send(settings.topics.name("alerts"), msgspec.json.encode(alert), **where).get(30)
        await view.put_alerts([alert])
    producer.close()
    assert (await ask(settings)).level == "live"
    await view.redis.flushdb()
    await speaks()
    await view.put_alerts([invent(3, at=time.time())])  # those that come are no sign that the others are there
    said = await ask(settings)
    assert (said.level, said.sentence) == ("late", LACKS)
    await restored(settings)
    assert (await ask(settings)).level == "live"


def test_without_redis_or_broker_or_topics_it_says_so(redis_url, embedded_broker):
    def error(**sections):
        done = CliRunner().invoke(restore, obj=load_settings(**sections))
        assert isinstance(done.exception, ServiceError), done.output
        return str(done.exception)

    nowhere = "127.0.0.1:1"
    assert f"no Redis at {nowhere}" in error(
        redis={"url": f"redis://{nowhere}/0"}, broker={"bootstrap": embedded_broker}
    )
    assert f"no Kafka broker at {nowhere}" in error(redis={"url": redis_url}, broker={"bootstrap": nowhere})
    made = {"bootstrap": embedded_broker}
    assert "run `crisis topics`" in error(redis={"url": redis_url}, broker=made, topics={"prefix": fresh_prefix()})
