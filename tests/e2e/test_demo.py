"""`crisis demo`, as a user runs it."""

import contextlib
import re
import signal
import subprocess
import sys

import httpx
import psutil
import pytest

from streams.commands.demo import _settings, environment
from tests.waiting import PATIENCE_S, wait_until


def test_the_demo_plays_to_its_end_and_leaves_nothing_running(tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "streams.cli",
            "demo",
            "--rate",
            "0",
            "--port",
            "0",
            "--exit-at-end",
            "--logs",
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"dashboard: http://127\.0\.0\.1:\d+", done.stdout)
    assert re.search(
        r"export CRISIS_BROKER__BOOTSTRAP=127\.0\.0\.1:\d+ CRISIS_REDIS__URL=redis://\S+ "
        r"CRISIS_PRIVACY__KEY_FILE=\S+\n",
        done.stdout,
    )
    last = re.findall(r"posts +([\d,]+) +matches +([\d,]+) +alerts +([\d,]+) +clusters +([\d,]+)", done.stdout)[-1]
    posts, matches, alerts, clusters = (int(n.replace(",", "")) for n in last)
    assert posts > 400
    assert matches > 100
    assert alerts > 50
    assert clusters > 3
    assert "nothing is left running" in done.stdout
    assert not [p for p in psutil.process_iter(["environ"]) if str(tmp_path) in str(p.info["environ"])]


def test_the_demo_uses_its_own_broker_whatever_the_settings_file_says_of_another(tmp_path):
    config = tmp_path / "ours.toml"
    config.write_text(
        '[broker]\nbootstrap = "kafka.example:9093"\nsecurity = "SASL_SSL"\nusername = "me"\n[topics]\nprefix = "ours-"\n'  # noqa: E501
    )
    settings = _settings(str(config), "redis://127.0.0.1:1/0", tmp_path / "key", 9, 8)
    assert (settings.broker.bootstrap, settings.broker.security, settings.topics.prefix) == (
        "127.0.0.1:9",
        "PLAINTEXT",
        "ours-",
    )
    assert environment(settings)["CRISIS_BROKER__SECURITY"] == "PLAINTEXT"


def test_the_death_of_its_broker_is_told_at_once_and_ends_the_demo_though_posts_are_being_sent(tmp_path):
    command = [sys.executable, "-m", "streams.cli", "demo", "--rate", "4", "--port", "0", "--logs", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            while not re.search(r"posts +[1-9]", child.stdout.readline()):
                assert child.poll() is None, child.stderr.read()
            below = psutil.Process(child.pid).children(recursive=True)
            (broker,) = [p for p in below if p.cmdline()[1:3] == ["-m", "streams.embedded"]]
            broker.kill()
            rest, told = child.communicate(timeout=PATIENCE_S)
        finally:
            child.kill()
    assert child.returncode == 1 and "broker ended with status 137: stopping …" in rest  # as shells tell kill -9
    assert "crisis: broker ended with status 137:\n" in told
    assert not running(below)


def test_what_the_demo_sends_gives_a_dead_broker_up_within_seconds(tmp_path):
    settings = _settings(None, "redis://127.0.0.1:1/0", tmp_path / "key", 9, 8)
    assert settings.ingest.writer.delivery_timeout_s <= 10.0


@contextlib.contextmanager
def serving(logs, *before):
    """A demo whose dashboard answers, the dashboard's address, and all processes below it."""
    command = [*before, sys.executable, "-m", "streams.cli", "demo", "--port", "0", "--logs", str(logs)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        try:
            for line in child.stdout:
                if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                    break
            assert httpx.get(found[0], timeout=PATIENCE_S).status_code == 200
            below = psutil.Process(child.pid).children(recursive=True)
            assert len(below) >= 3
            yield child, found[0], below
        finally:
            child.kill()


def running(processes):
    return [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture
def heard_hang_ups():
    """Tests that run under nohup would have the demo stay, as it should then."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("heard_hang_ups")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_or_a_terminal_that_closes_stops_the_demo_cleanly_while_it_serves_its_dashboard(tmp_path, stop):
    with serving(tmp_path) as (child, _, below):
        child.send_signal(stop)
        rest = child.communicate(timeout=PATIENCE_S)[0]
        assert child.returncode == 0, rest
        assert not running(below)


def test_a_demo_under_nohup_stays_when_the_terminal_closes_and_kill_9_leaves_nothing_of_it_running(tmp_path):
    with serving(tmp_path, "nohup") as (child, address, below):
        child.send_signal(signal.SIGHUP)
        assert httpx.get(address, timeout=PATIENCE_S).status_code == 200
        assert running(below) == below
        child.kill()
        wait_until(lambda: not running(below), lambda: [p.cmdline() for p in running(below)])
