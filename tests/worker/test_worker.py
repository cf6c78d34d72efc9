"""Workers as processes: `crisis worker`, and the same by Faust's own command line."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from models.errors import ServiceError
from streams.commands.key import make_key
from streams.commands.topics import prepare, topics
from streams.config import Settings, load_settings
from tests.outputs.topics import fresh_prefix
from tests.services.kafka import free_ports
from tests.waiting import PATIENCE_S, wait_until

CRISIS = [sys.executable, "-m", "streams.cli", "worker"]
FAUST = [sys.executable, "-m", "faust", "-A", "streams.app", "worker", "--without-web", "-l", "info"]
RUNNING = "Worker ready"  # Faust's words; before it says so its own parts may trip over each other as they end
AWAY = "redis://:a-secret@127.0.0.1:1/0"


@pytest.fixture
def settings(embedded_broker, tmp_path) -> Settings:
    make_key(tmp_path / "key")
    return load_settings(
        broker={"bootstrap": embedded_broker},
        topics={"prefix": fresh_prefix()},
        redis={"url": AWAY},
        privacy={"key_file": tmp_path / "key"},
    )


@contextlib.contextmanager
def running(command: list[str], settings: Settings, folder: Path, port: int = 0) -> Iterator[subprocess.Popen]:
    """The worker; what it says goes to folder/log."""
    env = os.environ | {
        "CRISIS_BROKER__BOOTSTRAP": settings.broker.bootstrap,
        "CRISIS_TOPICS__PREFIX": settings.topics.prefix,
        "CRISIS_REDIS__URL": settings.redis.url,
        "CRISIS_PRIVACY__KEY_FILE": str(settings.privacy.key_file or ""),
        "CRISIS_WORKER__WEB_PORT": str(port),
        "F_DATADIR": str(folder / "faust"),
    }
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log, env=env) as child:
        try:
            yield child
        finally:
            child.kill()


@pytest.mark.parametrize("command", [CRISIS, FAUST], ids=["crisis worker", "faust -A streams.app worker"])
def test_a_worker_whose_redis_is_away_ends_with_one_sentence(settings, tmp_path, command):
    prepare(settings)
    with running(command, settings, tmp_path) as worker:
        assert worker.wait(PATIENCE_S) == 1
    told = (tmp_path / "log").read_text()
    assert "Traceback" not in told
    last = told.splitlines()[-1]
    assert "the worker cannot start: no Redis at 127.0.0.1:1/0" in last and "CRISIS_REDIS__URL" in last
    assert "a-secret" not in told


def test_a_view_that_cannot_be_reset_is_told_in_one_sentence(settings):
    done = CliRunner().invoke(topics, ["--reset-view"], obj=settings)
    assert isinstance(done.exception, ServiceError) and "no Redis at 127.0.0.1:1/0" in str(done.exception)


def test_fausts_own_command_starts_a_worker_that_becomes_ready_and_stops_with_status_0(settings, redis_url, tmp_path):
    here = settings.model_copy(update={"redis": settings.redis.model_copy(update={"url": redis_url})})
    prepare(here)
    (port,) = free_ports(1)
    with running(FAUST, here, tmp_path, port) as worker:
        log = tmp_path / "log"
        wait_until(lambda: worker.poll() is not None or (_ready(port) and RUNNING in log.read_text()), log.read_text)
        worker.send_signal(signal.SIGTERM)
        # What it says while stopping is not judged: aiokafka's client may trip over its own connections as it closes
        # them.
        assert worker.wait(PATIENCE_S) == 0, log.read_text()
    assert "address already in use" not in log.read_text()  # Faust asks for the app twice; one answers on the port


def _ready(port: int) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=PATIENCE_S).status_code == 200
    return False
