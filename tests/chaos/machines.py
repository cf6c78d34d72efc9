"""What faults happen to: a broker, a Redis and supervised processes of our own; all can be stopped and frozen."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from streams.embedded.child import Child
from tests.services.kafka import Node, free_ports
from tests.services.needs import Missing

AGAIN_S = 1.0  # a supervisor starts a process again so long after it ended
READY_S = 180.0


KEEPS = ("--appendonly", "yes", "--save", "", "--rdbcompression", "no")  # as deploy/compose.yaml has it


class RedisNode:
    """Debian's redis-server with the settings of deploy/compose.yaml: it keeps what it holds over a restart."""

    def __init__(self, folder: Path) -> None:
        if not (server := shutil.which("redis-server")):
            raise Missing("redis-server: apt-get install redis-server")
        self._server, self.folder = server, folder
        (self.port,) = free_ports(1)
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.child: Child | None = None

    def start(self) -> None:
        """Return when it takes connections."""
        (self.folder / "data").mkdir(exist_ok=True)
        args = [self._server, "--port", str(self.port), "--bind", "127.0.0.1", *KEEPS]
        self.child = Child([*args, "--dir", self.folder / "data"], self.folder / "redis.log")
        wait_for_port(self.port)

    def stop(self) -> None:
        if self.child is not None:
            self.child.stop()
            self.child = None

    def empty(self) -> None:
        """While it is stopped: nothing is left of it."""
        shutil.rmtree(self.folder / "data", ignore_errors=True)


class Supervised:
    """A process that is started again whenever it ended, as Compose or systemd would. `ended` counts its own ends."""

    def __init__(self, name: str, args: Sequence[str], env: Mapping[str, str], log: Path) -> None:
        self.name, self.log = name, log
        self.ended: list[int] = []  # exit statuses of ends that nobody asked for
        self.why: list[str] = []  # what it said last before each
        self._args, self._env = args, {**os.environ, **env}
        self._asked = self._over = False
        self._thread = threading.Thread(target=self._keep, name=name, daemon=True)
        self.starts = 0
        self._started = threading.Event()
        self._thread.start()
        self._started.wait()

    def _keep(self) -> None:
        while not self._over:
            with self.log.open("ab") as out:
                command = [sys.executable, "-m", *self._args]
                self._asked = False
                self._process = subprocess.Popen(
                    command, env=self._env, stdin=subprocess.PIPE, stdout=out, stderr=out, start_new_session=True
                )
            self.starts += 1
            self._started.set()
            status = self._process.wait()
            self._process.stdin.close()
            if not self._asked and not self._over:
                self.why.append(self._last_reason())
                self.ended.append(status)
            time.sleep(0 if self._over else AGAIN_S)

    @property
    def pid(self) -> int:
        """Of the process that runs now."""
        return self._process.pid

    def signal(self, number: int) -> None:
        """kill -9 and SIGTERM are followed by a new start."""
        self._asked = self._asked or number in (signal.SIGKILL, signal.SIGTERM)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def stop(self, patience_s: float = 10.0) -> None:
        """SIGTERM, then SIGKILL; it is not started again."""
        self._over = True
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        self._thread.join(patience_s)
        if self._thread.is_alive():
            self.signal(signal.SIGKILL)
            self._thread.join()

    def _last_reason(self) -> str:
        """The last that it called critical, or said to whoever started it; else its last line."""
        lines = self.last_words(200).splitlines()
        return next((x for x in reversed(lines) if "CRITICAL" in x or x.startswith("crisis:")), "".join(lines[-1:]))

    def last_words(self, lines: int = 15) -> str:
        return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-lines:])


@contextlib.contextmanager
def frozen(node: Node | RedisNode | Supervised) -> Iterator[None]:
    """Stopped by SIGSTOP: its connections stay open and nothing answers."""
    pid = node._process.pid if isinstance(node, Supervised) else node.child.pid
    os.killpg(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGCONT)


def killed(node: Node | RedisNode) -> None:
    """kill -9, as the kernel or a power cut would."""
    os.killpg(node.child.pid, signal.SIGKILL)
    node.stop()


def wait_for_port(port: int) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"nothing listens on port {port} after {READY_S:g} s")
