"""deploy/security.md on an Apache Kafka that is set up by it: each user can do what his processes do, and no more."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec
import pytest
from click.testing import CliRunner
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource
from kafka.errors import AuthorizationError
from redis.exceptions import RedisError

from models.errors import ServiceError
from models.feedback.records import Label
from models.queries import load_queries
from streams.broker.authors import posts_of
from streams.broker.connect import admin, client_options
from streams.broker.labels import publish_labels, read_labels
from streams.broker.lag import lag
from streams.broker.queries import publish_queries, read_queries
from streams.broker.reading import read_values
from streams.broker.rejects import read_rejects
from streams.broker.topics import make_topics, partitions_of
from streams.commands.doctor import check_broker, check_topics
from streams.commands.topics import topics
from streams.config import load_settings
from streams.config.sections import TOPICS
from streams.embedded.children import Children
from streams.ingest.writer import open_writer
from streams.outputs.follow import read_alerts
from streams.releases.topic import change_release, read_release
from streams.view.connect import connect
from streams.view.live import LiveView
from tests.conftest import needed
from tests.services import guide
from tests.services.certificates import Authority
from tests.services.needs import Missing, lacking
from tests.services.redis import WithoutTls, running_redis_over_tls
from tests.services.secure_kafka import running_secure_kafka
from tests.waiting import until

EACH_TOPIC, IN_USE, MENDED = "each.", "", "mended."  # prefixes: topics that hold anything, of a pipeline, mended
REDIS_PASSWORD = "the-secret-of-redis"
pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def kafka():
    with needed(running_secure_kafka([EACH_TOPIC, IN_USE, MENDED])) as running:
        yield running


@pytest.fixture(scope="module")
def used(kafka):
    """used(user) → his settings, where the operator has run `crisis topics`."""
    done = CliRunner().invoke(topics, obj=kafka.settings("operator", IN_USE), catch_exceptions=False)
    assert f"{len(TOPICS)} topics made, {len(load_queries())} queries loaded" in done.output
    return lambda user, **sections: kafka.settings(user, IN_USE, **sections)


@pytest.fixture(scope="module")
def each_topic(kafka):
    """each_topic(user) → his settings, where every topic holds a record."""
    make_topics(kafka.settings("operator", EACH_TOPIC))
    settings = kafka.settings("admin", EACH_TOPIC)
    assert writable(settings) == set(TOPICS)
    return lambda user: kafka.settings(user, EACH_TOPIC)


def writable(settings):
    """The topics that somebody may write to, by trying."""
    options = client_options(settings.broker) | {"allow_auto_create_topics": False, "max_block_ms": 60_000}
    found = set()
    # Not idempotent: whoever may write nothing at all is refused that, before a topic is asked for.
    with contextlib.closing(KafkaProducer(**options, acks="all", enable_idempotence=False)) as producer:
        for topic in TOPICS:
            with contextlib.suppress(AuthorizationError):
                producer.send(settings.topics.name(topic), key=b"k", value=b"{}", partition=0).get(60)
                found.add(topic)
    return found


def readable(settings):
    """The topics that somebody may read, by trying; each holds a record."""
    options = client_options(settings.broker) | {"allow_auto_create_topics": False, "enable_auto_commit": False}
    found = set()
    with contextlib.closing(KafkaConsumer(**options)) as consumer:
        for topic in TOPICS:
            part = TopicPartition(settings.topics.name(topic), 0)
            with contextlib.suppress(AuthorizationError):
                if not consumer.partitions_for_topic(part.topic):  # he may not even see it
                    continue
                consumer.assign([part])
                consumer.seek(part, 0)
                while not consumer.poll(timeout_ms=200):
                    pass
                found.add(topic)
    return found


def test_the_guide_has_a_user_for_each_of_its_roles_and_shows_commands_that_give_what_its_table_says():
    assert guide.users() == ["ingest", "worker", "dashboard", "subscriber", "analyst", "operator"]
    shown = guide.rights_of_commands()
    assert len(shown) >= 2 and set(shown) <= set(guide.rights())


@pytest.mark.parametrize("user", guide.users())
def test_a_user_reads_and_writes_the_topics_that_the_table_gives_him_and_no_other(each_topic, user):
    given = [right for right in guide.rights() if right.user == user and right.kind == "topic"]
    assert writable(each_topic(user)) == {right.name for right in given if right.operation == "Write"}
    assert readable(each_topic(user)) == {right.name for right in given if right.operation == "Read"}


def test_a_source_writes_posts_and_is_told_nothing(used):
    with open_writer(used("ingest")) as writer:  # idempotent, with no more than Write
        writer.write(b'{"id": "g/1", "text": "We need water at the bridge"}', key="g/1")
    assert list(read_values(used("operator"), "posts.raw"))
    for topic in ("posts.clean", "queries", "alerts"):
        with pytest.raises(ServiceError, match=f"no topic {IN_USE}{topic}"):
            list(read_values(used("ingest"), topic))


async def test_a_dashboard_sees_the_lag_teaches_and_makes_queries_and_writes_no_posts(used):
    settings = used("dashboard")
    assert set(await lag(settings)) == {"posts.raw", "posts.clean", "posts.embedded", "posts.matched"}
    assert await partitions_of(settings, ["posts.embedded"])
    label = Label("g/1", "need.water", "right", "ada", 1.0, "We need water")
    await asyncio.to_thread(publish_labels, settings, [label])
    assert label.key in await asyncio.to_thread(read_labels, settings)
    await asyncio.to_thread(publish_labels, settings, [], [label.key])
    query = msgspec.structs.replace(load_queries()[0], id="need.boats", category="boats")
    await asyncio.to_thread(publish_queries, settings, {query.id: query})
    assert query.id in await asyncio.to_thread(read_queries, settings)
    await asyncio.to_thread(publish_queries, settings, {query.id: None})
    assert await asyncio.to_thread(read_release, settings)
    with pytest.raises(ServiceError, match="TopicAuthorizationFailed"):
        await asyncio.to_thread(write_one, settings)


def write_one(settings):
    with open_writer(settings) as writer:
        writer.write(b"{}")


def test_an_analyst_asks_the_version_that_serves_and_changes_none(used):
    settings = used("analyst")
    assert read_queries(settings)
    read_labels(settings), list(read_values(settings, "posts.matched", 3600))
    assert read_release(settings).revision == read_release(used("operator")).revision
    with pytest.raises(ServiceError, match="TopicAuthorizationFailed"):
        change_release(settings, lambda known: known.stage("v9", 1.0))


def test_a_worker_can_roll_back_a_version_on_trial(used):
    changed = change_release(used("operator"), lambda known: known.stage("v9", 1.0, shadow=0.0))
    refused = change_release(used("worker"), lambda known: known.refuse(changed.staged, "too slow", 2.0))
    assert refused.staged is None and read_release(used("dashboard")) == refused


def test_a_subscriber_has_a_group_of_its_own_and_not_the_workers(used):
    settings = used("subscriber")
    alone = list(read_alerts(settings, follow=False))
    assert list(read_alerts(settings, follow=False, group=f"{IN_USE}subscriber", beginning=True)) == alone
    with pytest.raises(AuthorizationError):
        list(read_alerts(settings, follow=False, group=f"{IN_USE}crisis"))


def test_an_operator_makes_mends_and_forgets_and_deletes_no_topic(kafka):
    settings = kafka.settings("operator", MENDED)
    name, ours = settings.topics.name("alerts"), {settings.topics.name(topic) for topic in TOPICS}
    assert make_topics(settings) and check_topics(settings).ok and check_broker(settings).ok
    with kafka.admin() as client:
        client.alter_configs([ConfigResource("TOPIC", name, configs={"cleanup.policy": "delete"})])
    assert not check_topics(settings).ok
    more = settings.model_copy(update={"topics": settings.topics.model_copy(update={"partitions": 2})})
    told = CliRunner().invoke(topics, obj=more, catch_exceptions=False).output
    assert f"mended the settings of {name}" in told and f"gave {settings.topics.name('posts.waiting')} the part" in told
    assert list(read_rejects(settings)) == [] and posts_of(settings, "nobody") == []
    write_one(settings)  # as `crisis forget` does, and `crisis rejected retry`
    with contextlib.closing(admin(settings)) as client:
        with pytest.raises(AuthorizationError):
            client.delete_topics([name])
        assert ours <= set(client.list_topics())


WRONG = {
    "password": "Authentication",
    "user": "Authentication",
    "authority": "CERTIFICATE_VERIFY",
    "protocol": "connect",
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_who_does_not_say_who_he_is_does_not_come_in(used, tmp_path, caplog, wrong):
    settings = used("operator")
    assert await lag(settings)
    (tmp_path / "password").write_text("a guess\n")
    instead = {
        "password": {"password_file": tmp_path / "password"},
        "user": {"username": "nobody"},
        "authority": {"ca_file": Authority(tmp_path).ca},
        "protocol": {"security": "PLAINTEXT"},
    }[wrong]
    settings = settings.model_copy(update={"broker": settings.broker.model_copy(update=instead)})
    with pytest.raises(ServiceError, match="127.0.0.1"):
        await lag(settings)
    assert WRONG[wrong] in caplog.text


async def test_a_certificate_of_our_authority_is_as_good_as_a_password_and_gives_the_same_rights(kafka, used):
    used("operator")
    write_one(kafka.settings_with_certificate("ingest", IN_USE))
    with pytest.raises(ServiceError, match="no topic"):
        read_queries(kafka.settings_with_certificate("ingest", IN_USE))
    with pytest.raises(ServiceError, match="no topic"):
        write_one(kafka.settings_with_certificate("stranger", IN_USE))
    bare = kafka.settings_with_certificate("ingest", IN_USE).broker.model_copy(
        update={"cert_file": None, "key_file": None}
    )
    with pytest.raises(ServiceError, match="127.0.0.1"):
        await lag(used("operator").model_copy(update={"broker": bare}))


@pytest.fixture
def redis_over_tls(kafka):
    """host:port, with the guide's users, who have one password."""
    try:
        with contextlib.ExitStack() as stack:
            yield stack.enter_context(running_redis_over_tls(kafka.authority, REDIS_PASSWORD))
    except Missing as missing:  # one that was built without TLS cannot be mended where services are required
        lacking(missing, False if isinstance(missing, WithoutTls) else None)


@pytest.mark.redis
async def test_a_post_comes_through_a_worker_that_speaks_tls_to_kafka_and_redis(used, redis_over_tls, tmp_path):
    for name, secret in (("redis.password", REDIS_PASSWORD), ("key", "a secret of at least 32 characters")):
        (tmp_path / name).write_text(f"{secret}\n")

    def redis_as(user):
        url = f"rediss://{user}@{redis_over_tls}/0?ssl_ca_certs={used(user).broker.ca_file}"
        return {"url": url, "password_file": tmp_path / "redis.password"}

    more = {"privacy": {"key_file": tmp_path / "key"}, "worker": {"web_port": 0, "snapshot_s": 0.5}}
    dashboard, log = used("dashboard", redis=redis_as("dashboard")), tmp_path / "logs" / "worker.log"
    async with Children(log.parent) as children, connect(dashboard.redis) as redis:
        await children.start(
            "worker", ["streams.cli", "worker"], environment(used("worker", redis=redis_as("worker"), **more))
        )
        ended = asyncio.create_task(children.any_death())
        with open_writer(used("ingest")) as writer:
            writer.write(b'{"id": "g/2", "text": "We are trapped on the roof, send a boat"}', key="g/2")

        async def shown():
            assert not ended.done(), ended.exception()
            return [alert for alert in await LiveView(redis, dashboard).recent_alerts() if "roof" in alert.post.text]

        async def acknowledged():
            return not any((await lag(dashboard)).values())

        (alert,) = await until(shown, log.read_text)
        await until(acknowledged, log.read_text)
        ended.cancel()
    sent = await asyncio.to_thread(lambda: list(read_alerts(used("subscriber"), follow=False)))
    assert alert.alert_id in {one.alert_id for one in sent}
    assert "uthorization" not in log.read_text() and "NOPERM" not in log.read_text()


def environment(settings):
    """As a process is told what differs from the defaults."""
    changed = settings.model_dump(mode="json", exclude_defaults=True)
    return {f"CRISIS_{s}__{f}".upper(): str(value) for s, fields in changed.items() for f, value in fields.items()}


@pytest.mark.redis
async def test_a_redis_over_tls_hears_nobody_in_the_clear_and_is_believed_by_its_certificate_alone(redis_over_tls):
    for scheme, why in (("redis", "closed|reset"), ("rediss", "CERTIFICATE_VERIFY_FAILED")):
        url = f"{scheme}://worker:{REDIS_PASSWORD}@{redis_over_tls}/0"
        async with connect(load_settings(redis={"url": url}).redis) as redis:
            with pytest.raises(RedisError, match=why):
                await redis.ping()
