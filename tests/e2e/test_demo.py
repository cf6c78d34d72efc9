"""`crisis demo`, as a user runs it."""

import re
import signal
import subprocess
import sys

import httpx
import psutil

from streams.commands.demo import _settings, environment
from tests.waiting import PATIENCE_S


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
            (broker,) = [p for p in below if "streams.embedded" in p.cmdline()]
            broker.kill()
            rest, told = child.communicate(timeout=PATIENCE_S)
        finally:
            child.kill()
    assert child.returncode == 1 and "broker ended with status -9: stopping …" in rest
    assert "crisis: broker ended with status -9:\n" in told
    assert not [p for p in below if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def test_what_the_demo_sends_gives_a_dead_broker_up_within_seconds(tmp_path):
    settings = _settings(None, "redis://127.0.0.1:1/0", tmp_path / "key", 9, 8)
    assert settings.ingest.writer.delivery_timeout_s <= 10.0


def test_ctrl_c_stops_the_demo_cleanly_while_it_serves_its_dashboard(tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-m", "streams.cli", "demo", "--port", "0", "--logs", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        for line in child.stdout:
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                break
        assert httpx.get(found[0], timeout=PATIENCE_S).status_code == 200
        below = psutil.Process(child.pid).children(recursive=True)
        assert len(below) >= 3
        child.send_signal(signal.SIGINT)
        rest = child.communicate(timeout=PATIENCE_S)[0]
        assert child.returncode == 0, rest
        assert not [p for p in below if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
    finally:
        child.kill()
