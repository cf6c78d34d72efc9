"""Debian's redis-server for the tests."""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from streams.embedded.child import Child
from streams.embedded.redis import EmbeddedRedis
from tests.services.certificates import Authority
from tests.services.guide import redis_users
from tests.services.kafka import free_ports
from tests.services.needs import Missing
from tests.waiting import wait_until


@contextlib.contextmanager
def running_redis() -> Iterator[str]:
    """The URL of a Redis of the machine's own redis-server, not the wheel's. Raises Missing."""
    with EmbeddedRedis(server=_server()) as redis:
        yield redis.url


def _server() -> Path:
    server = shutil.which("redis-server")
    if not server:
        raise Missing("redis-server: apt-get install redis-server")
    return Path(server)


class WithoutTls(Missing):
    """This redis-server was built without it."""


@contextlib.contextmanager
def running_redis_over_tls(authority: Authority, password: str) -> Iterator[str]:
    """host:port of a Redis that speaks TLS alone, with the users of deploy/security.md, and nobody else.

    Raises Missing, and WithoutTls where there is a redis-server that cannot.
    """
    server, (port,) = _server(), free_ports(1)
    certificate, key = authority.sign("redis")
    with tempfile.TemporaryDirectory(prefix="crisis-redis-") as scratch:
        config = Path(scratch) / "redis.conf"
        config.write_text(
            f"port 0\ntls-port {port}\ntls-auth-clients no\ntls-cert-file {certificate}\ntls-key-file {key}\n"
            f'tls-ca-cert-file {authority.ca}\nbind 127.0.0.1\nsave ""\ndir {scratch}\n'
            f"user default off\n{redis_users(password)}\n"
        )
        child = Child([server, config], Path(scratch) / "redis.log")
        try:
            wait_until(lambda: child.ended() or _listens(port), child.last_words)
            if child.ended() and "tls-port" in child.last_words():  # "Bad directive", at that line
                raise WithoutTls("a redis-server that was built with TLS, as Debian's is")
            assert not child.ended(), child.last_words()
            yield f"127.0.0.1:{port}"
        finally:
            child.stop()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
