"""`crisis doctor` against services that are there, half there and away; and commands whose broker is away."""

from __future__ import annotations

import asyncio

import pytest
from click.testing import CliRunner

from models.encoders.ready import load, stale
from models.errors import ServiceError
from models.queries import load_queries
from streams.broker.topics import make_topics
from streams.cli import crisis
from streams.commands.doctor import CHECKS, Finding, doctor, examine
from streams.commands.topics import prepare
from streams.config import load_settings
from streams.embedded.redis import EmbeddedRedis
from streams.releases.topic import change_release
from streams.view.connect import connect
from streams.view.pseudonyms import check_key, load_pseudonyms
from tests.outputs.topics import fresh_prefix
from tests.releases.tiny import tiny_bundle

AWAY = {"bootstrap": "127.0.0.1:1"}
KAFKA = {
    name: CHECKS[name] for name in ("broker", "topics", "queries", "release")
}  # without the seconds an encoder needs


def by_check(findings: list[Finding]) -> dict[str, Finding]:
    return {f.check: f for f in findings}


@pytest.fixture
def key(tmp_path):
    """privacy.key_file of a secret."""
    (tmp_path / "key").write_text("k" * 40)
    return tmp_path / "key"


@pytest.fixture
def settings(embedded_broker, redis_url, key):
    return load_settings(
        broker={"bootstrap": embedded_broker},
        redis={"url": redis_url},
        topics={"prefix": fresh_prefix()},
        privacy={"key_file": key},
    )


def test_all_is_well_once_the_topics_are_made(settings):
    prepare(settings)
    found = examine(settings)
    checks = {"encoder", "redis", "secret", "vault", "broker", "topics", "queries", "release"}
    assert {f.check for f in found} == checks
    # With a pack of one's own among the bundled ones the encoder's calibration was made without it, and it says so.
    added = stale(load(settings.encoder.ref).calibration)
    assert [f.check for f in found if not f.ok] == (["encoder"] if added else [])
    assert f"{len(load_queries())} queries" in by_check(found)["queries"].found


def test_without_topics_it_names_them_and_the_command(settings):
    topics = by_check(examine(settings, KAFKA))["topics"]
    assert not topics.ok and "posts.raw" in topics.found and "crisis topics" in topics.fix


def test_topics_without_queries_can_match_nothing(settings):
    make_topics(settings)
    queries = by_check(examine(settings, KAFKA))["queries"]
    assert not queries.ok and "crisis query add" in queries.fix


def test_other_partitions_than_the_settings_say_are_told(settings):
    make_topics(settings)
    fewer = settings.model_copy(update={"topics": settings.topics.model_copy(update={"partitions": 2})})
    topics = by_check(examine(fewer, KAFKA))["topics"]
    assert not topics.ok and "has 4 partitions, settings say 2" in topics.found


def test_a_broker_and_a_redis_that_are_away_are_told_once_each_with_the_way_out(key):
    away = load_settings(broker=AWAY, redis={"url": "redis://127.0.0.1:1/0"}, privacy={"key_file": key})
    found = by_check(examine(away))
    assert {name for name, finding in found.items() if not finding.ok} - {"encoder"} == {"redis", "broker"}
    assert "topics" not in found and "Redis does not say" in found["secret"].found
    assert "CRISIS_REDIS__URL" in found["redis"].fix
    assert not found["broker"].ok and "no Kafka broker at 127.0.0.1:1" in found["broker"].found


ABOUT_PEOPLE = {name: CHECKS[name] for name in ("secret", "vault")}


def private(settings, **changes):
    return settings.model_copy(update={"privacy": settings.privacy.model_copy(update=changes)})


def test_where_no_worker_can_start_without_a_secret_not_all_is_well(settings):
    found = by_check(examine(private(settings, key_file=None), ABOUT_PEOPLE))
    assert not found["secret"].ok and "CRISIS_PRIVACY__KEY_FILE" in found["secret"].found


async def test_another_secret_than_the_workers_use_is_told_and_the_doctors_own_never_becomes_theirs(settings, tmp_path):
    (tmp_path / "other").write_text("o" * 40)
    other = private(settings, key_file=tmp_path / "other")
    looked = await asyncio.to_thread(lambda: by_check(examine(other, ABOUT_PEOPLE))["secret"])
    assert looked.ok and "none is in use yet" in looked.found
    async with connect(settings.redis) as redis:
        await check_key(redis, settings, load_pseudonyms(settings))  # as a worker that starts
    for asked, ok in ((settings, True), (other, False)):
        found = await asyncio.to_thread(lambda asked=asked: by_check(examine(asked, ABOUT_PEOPLE))["secret"])
        assert found.ok == ok and ("the secret in privacy.key_file is not what" in found.found) != ok


def test_a_vault_that_is_away_is_told_without_its_password_and_none_is_well(settings, redis_url):
    for url, ok in ((None, True), (redis_url, True), ("redis://:hunter2@127.0.0.1:1/0", False)):
        found = by_check(examine(private(settings, vault_url=url), ABOUT_PEOPLE))["vault"]
        assert found.ok == ok and "hunter2" not in found.found
        assert ok or "CRISIS_PRIVACY__VAULT_URL" in found.fix


@pytest.mark.parametrize("user", ["", ":wrong@", "nobody:wrong@"])
def test_a_redis_that_refuses_the_password_is_not_told_to_be_started(user):
    with EmbeddedRedis(password="right") as redis:
        at = redis.url.rpartition("@")[2]
        found = by_check(examine(load_settings(redis={"url": f"redis://{user}{at}"}), {"redis": CHECKS["redis"]}))[
            "redis"
        ]
    assert not found.ok and "password" in found.fix and "CRISIS_REDIS__PASSWORD_FILE" in found.fix
    assert "start redis" not in found.fix and "wrong" not in found.found


def test_an_encoder_that_was_never_calibrated_or_cannot_be_loaded_is_told(tmp_path):
    tiny_bundle(tmp_path / "tiny")
    for ref, told in ((tmp_path / "tiny", "no calibrated thresholds"), (tmp_path, "neither")):
        chosen = load_settings(encoder={"ref": str(ref)})
        found = by_check(examine(chosen, {"encoder": CHECKS["encoder"]}))["encoder"]
        assert not found.ok and told in found.found


def test_a_released_version_that_this_machine_cannot_fetch_is_told(settings):
    prepare(settings)
    change_release(settings, lambda known: known.use("abcdefabcdef", 1.0))
    release = by_check(examine(settings, KAFKA))["release"]
    assert not release.ok and "abcdefabcdef" in release.found and "CRISIS_ENCODER__REGISTRY" in release.fix


@pytest.mark.parametrize(
    "args",
    [
        ["query", "list"],
        ["query", "show", "need.water"],
        ["query", "test", "water"],
        ["query", "remove", "need.water"],
        ["encoder", "list"],
        ["encoder", "rollback"],
        ["topics"],
    ],
)
def test_a_command_whose_broker_is_away_says_so_in_one_sentence(args, monkeypatch):
    monkeypatch.setenv("CRISIS_BROKER__BOOTSTRAP", "127.0.0.1:1")
    done = CliRunner().invoke(crisis, args)
    assert isinstance(done.exception, ServiceError)
    assert "no Kafka broker at 127.0.0.1:1" in str(done.exception) and "CRISIS_BROKER__BOOTSTRAP" in str(done.exception)


def test_no_password_is_shown():
    settings = load_settings(redis={"url": "redis://:hunter2@127.0.0.1:1/0"}, broker={"bootstrap": "127.0.0.1:1"})
    told = CliRunner().invoke(doctor, [], obj=settings, env={"COLUMNS": "300"})
    assert "127.0.0.1:1/0" in told.output and "hunter2" not in told.output and told.exit_code != 0
