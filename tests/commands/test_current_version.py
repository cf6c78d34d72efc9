"""Commands read with the encoder version that is current, as workers do: the one the `encoders` topic names."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from models.encoders.registry import Registry
from models.queries import load_queries
from streams.broker.queries import publish_queries
from streams.broker.topics import make_topics
from streams.commands.query import query
from streams.commands.replay import cluster, embed, match, replay
from streams.config import load_settings
from streams.releases.topic import change_release
from tests.outputs.topics import fresh_prefix
from tests.releases.tiny import tiny_bundle, words_of

WATER = next(q for q in load_queries() if q.id == "need.water")


@pytest.fixture
def released(embedded_broker, tmp_path, monkeypatch):
    """Settings of a deployment whose `encoders` topic names a version of a registry; and that version."""
    settings = load_settings(broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix()})
    make_topics(settings)
    publish_queries(settings, {WATER.id: WATER})
    monkeypatch.setenv("CRISIS_CACHE", str(tmp_path / "cache"))
    tiny_bundle(tmp_path / "v1", words=words_of([]))
    version = Registry(tmp_path / "registry").publish(tmp_path / "v1")
    change_release(settings, lambda release: release.use(version, 1.0))
    encoder = settings.encoder.model_copy(update={"registry": str(tmp_path / "registry")})
    return settings.model_copy(update={"encoder": encoder}), version


def ask(settings, *args):
    done = CliRunner().invoke(query, ["test", "we need water", *args], obj=settings)
    return done.exit_code, done.output


def test_a_text_is_tested_with_the_version_that_is_current_as_workers_would(released):
    settings, version = released
    code, said = ask(settings)
    assert code == 0 and f"version {version} (current at" in said
    code, said = ask(settings, "--version", "own")
    assert code == 0 and "version own (as asked)" in said and version not in said


def test_a_current_version_that_cannot_be_had_is_no_reason_to_answer_with_another(released):
    settings, version = released
    lost = settings.model_copy(update={"encoder": settings.encoder.model_copy(update={"registry": None})})
    code, said = ask(lost)
    assert code == 1 and version in said and "--version own" in said and "need.water" not in said


def test_without_a_broker_the_settings_own_encoder_answers_and_that_is_said(released):
    settings, _ = released
    alone = settings.model_copy(update={"broker": settings.broker.model_copy(update={"bootstrap": "127.0.0.1:9"})})
    code, said = ask(alone, "--bundled")
    assert code == 0 and "no broker at 127.0.0.1:9" in said and "need.water" in said


@pytest.mark.parametrize(
    "command, out", [(replay, "--alerts"), (embed, "--out"), (match, "--scores"), (cluster, "--out")]
)
def test_a_file_is_read_with_the_version_that_is_current_too(released, tmp_path, command, out):
    settings, version = released
    posts = tmp_path / "posts.jsonl"
    posts.write_text(json.dumps({"id": "p1", "text": "we need water"}) + "\n")
    done = CliRunner().invoke(command, [str(posts), out, str(tmp_path / "out")], obj=settings, catch_exceptions=False)
    assert done.exit_code == 0 and f"version {version} (current at" in done.output
