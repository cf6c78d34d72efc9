"""Connecting to Redis."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import NoPermissionError, OutOfMemoryError, ReadOnlyError, RedisError, ResponseError
from redis.exceptions import TimeoutError as NoAnswer

from models.errors import ServiceError
from streams.config.secrets import redacted, secret
from streams.config.sections import Redis as RedisSettings

__all__ = ["connect", "reaching_redis"]

T = TypeVar("T")


class NotNow(RedisError):
    """Redis refuses for a while: its disk is full, a script runs, its primary or too many replicas are away."""


PASSING = [NoConnection, NoAnswer, OutOfMemoryError, ReadOnlyError, NotNow]  # gone, frozen, loading, full, a replica
PASSING_WORDS = ("MISCONF", "NOREPLICAS", "MASTERDOWN", "BUSY ", "TRYAGAIN")  # redis-py knows them as any other error
ANSWER_S = 5.0  # the slowest of our commands, the first save of 100 MB of clusters, takes a tenth


def connect(settings: RedisSettings, patient: bool = False) -> Redis:
    """An asyncio client; connects lazily and retries with back-off on its own.

    patient: a Redis that is gone, frozen, loading or full is waited for as long as it takes (workers: all they ask
    of it may be asked twice). Otherwise a few times, then redis-py's error.
    """
    password = secret(settings.password_file)
    if not patient:
        return Redis.from_url(settings.url, password=password, health_check_interval=15)
    return Redis.from_url(
        settings.url,
        password=password,
        health_check_interval=15,
        socket_timeout=ANSWER_S,
        socket_connect_timeout=ANSWER_S,
        retry=_Patience(ExponentialBackoff(cap=2.0, base=0.05), -1),
        retry_on_error=PASSING,
    )


class _Patience(Retry):
    """Retries what `PASSING_WORDS` name too."""

    async def call_with_retry(self, do: Callable[[], Awaitable[T]], *args: Any, **options: Any) -> T:
        async def ask() -> T:
            try:
                return await do()
            except ResponseError as error:
                if str(error).startswith(PASSING_WORDS):
                    raise NotNow(str(error)) from error
                raise

        return await super().call_with_retry(ask, *args, **options)


@contextlib.contextmanager
def reaching_redis(
    settings: RedisSettings, what: str = "Redis", cure: str = "start one or set CRISIS_REDIS__URL"
) -> Iterator[None]:
    """Turn what redis-py raises inside into a ServiceError that says what to do."""
    where = redacted(settings.url).partition("://")[2]
    try:
        yield
    except ResponseError as error:  # it is there: the way out is not to start one
        told = "; what its user may do is in deploy/security.md" if isinstance(error, NoPermissionError) else ""
        raise ServiceError(
            f"{what} at {where} refuses what it is asked ({error}): `crisis doctor` looks at it{told}"
        ) from error
    except (RedisError, OSError) as error:
        raise ServiceError(f"no {what} at {where} ({str(error) or 'no answer'}): {cure}") from error
