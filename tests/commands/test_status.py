"""`crisis status` says what is so and ends with it."""

import contextlib
import time
from collections.abc import AsyncIterator

from click.testing import CliRunner

from streams.broker.topics import AGENTS, make_topics
from streams.commands import doctor as doctors
from streams.commands.status import ask, status
from streams.commands.topics import prepare
from streams.config import load_settings
from streams.view.connect import connect
from streams.view.live import LiveView
from streams.view.status import SourceStatus, WorkerStatus, encode_status
from tests.dashboard.seeding import SPEAKS_S
from tests.outputs.topics import fresh_prefix


def run(settings):
    done = CliRunner().invoke(status, [], obj=settings)
    return done.exit_code, done.output


def test_without_redis_nothing_is_live():
    settings = load_settings(redis={"url": "redis://:hunter2@127.0.0.1:1/0"}, broker={"bootstrap": "127.0.0.1:1"})
    code, told = run(settings)
    assert code == 2 and "Redis does not answer" in told and "hunter2" not in told


def test_with_redis_and_no_broker_or_no_worker_nothing_is_live(redis_url, embedded_broker):
    away = load_settings(redis={"url": redis_url}, broker={"bootstrap": "127.0.0.1:1"})
    assert run(away) == (2, "the broker does not answer: no new post comes in\n")
    settings = load_settings(
        redis={"url": redis_url}, broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix()}
    )
    make_topics(settings)
    assert run(settings) == (2, "no worker has ever spoken: no new post is read\n")


async def test_a_worker_that_speaks_is_live_and_a_broker_that_is_away_is_said(redis_url, embedded_broker):
    for bootstrap, level in (("127.0.0.1:1", "down"), (embedded_broker, "live")):
        settings = load_settings(
            redis={"url": redis_url}, broker={"bootstrap": bootstrap}, topics={"prefix": fresh_prefix()}
        )
        if level == "live":
            make_topics(settings)
        redis = connect(settings.redis)
        await LiveView(redis, settings).put_worker("w", WorkerStatus(time.time() + SPEAKS_S, list(AGENTS), "v"))
        assert (await ask(settings)).level == level
        await redis.aclose()


def test_the_doctor_says_the_same_sentence_and_is_not_content_while_nothing_is_live(
    redis_url, embedded_broker, monkeypatch
):
    settings = load_settings(
        redis={"url": redis_url}, broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix()}
    )
    prepare(settings)
    monkeypatch.setattr(doctors, "CHECKS", {"broker": doctors.check_broker})
    said = CliRunner().invoke(doctors.doctor, [], obj=settings)
    assert run(settings)[1].strip() in said.output and said.exit_code == 1
    before = CliRunner().invoke(doctors.doctor, ["--set-up"], obj=settings)
    assert before.exit_code == 0 and "no worker" not in before.output


@contextlib.asynccontextmanager
async def worker_at_work(settings) -> AsyncIterator[LiveView]:
    make_topics(settings)
    async with connect(settings.redis) as redis:
        view = LiveView(redis, settings)
        await view.put_worker("w", WorkerStatus(await view.now() + SPEAKS_S, list(AGENTS), "v"))
        yield view


async def test_the_name_of_a_file_moves_no_cursor_of_a_terminal(redis_url, embedded_broker):
    settings = load_settings(
        redis={"url": redis_url}, broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix()}
    )
    async with worker_at_work(settings) as view:
        await view.put_source("file \x1b]0;owned\x07\x1b[2J\u202egnp.csv", "no broker")
    said = await ask(settings)
    assert said.sentence == "source file ]0;owned[2Jgnp.csv: no broker"


async def test_a_source_that_died_is_missed_and_one_that_took_leave_is_not(redis_url, embedded_broker):
    settings = load_settings(
        redis={"url": redis_url}, broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix()}
    )
    async with worker_at_work(settings) as view:
        await view.redis.hset(view.key("sources-at"), "http", encode_status(SourceStatus(await view.now() - 60)))
        said = await ask(settings)
        assert said.level == "late" and said.sentence.startswith("source http has not spoken for 6")
        await view.drop_source("http")
        assert (await ask(settings)).level == "live"
