"""Debian's redis-server for the tests."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from streams.embedded.redis import EmbeddedRedis
from tests.services.needs import Missing


@contextlib.contextmanager
def running_redis() -> Iterator[str]:
    """The URL of a Redis of the machine's own redis-server, not the wheel's. Raises Missing."""
    server = shutil.which("redis-server")
    if not server:
        raise Missing("redis-server: apt-get install redis-server")
    with EmbeddedRedis(server=Path(server)) as redis:
        yield redis.url
