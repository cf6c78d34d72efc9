"""`crisis status` says what is so and ends with it."""

import time

from click.testing import CliRunner

from streams.broker.topics import AGENTS, make_topics
from streams.commands import doctor as doctors
from streams.commands.status import ask, status
from streams.commands.topics import prepare
from streams.config import load_settings
from streams.view.connect import connect
from streams.view.live import LiveView
from streams.view.status import WorkerStatus
from tests.dashboard.seeding import SPEAKS_S
from tests.outputs.topics import fresh_prefix


def run(settings):
    done = CliRunner().invoke(status, [], obj=settings)
    return done.exit_code, done.output


def test_without_redis_nothing_is_live():
    settings = load_settings(redis={"url": "redis://:hunter2@127.0.0.1:1/0"}, broker={"bootstrap": "127.0.0.1:1"})
    code, told = run(settings)
    assert code == 2 and "Redis has not answered" in told and "hunter2" not in told


def test_with_redis_and_no_worker_nothing_is_live(redis_url):
    settings = load_settings(redis={"url": redis_url}, broker={"bootstrap": "127.0.0.1:1"})
    assert run(settings) == (2, "no worker has ever spoken: no new post is read\n")


async def test_a_worker_that_speaks_is_live_and_a_broker_that_is_away_is_said(redis_url, embedded_broker):
    for bootstrap, level in (("127.0.0.1:1", "late"), (embedded_broker, "live")):
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
