"""The secret of the pseudonyms: from its file, and a mark in Redis by which two secrets are told apart.

The secret itself is never in Redis. Workers with two secrets would take one author for two, and a deletion would miss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.errors import ConfigError
from models.pseudonyms import LEAST_KEY_CHARS, OFFLINE, Pseudonyms, keyed_hash
from streams.config import Settings
from streams.config.secrets import secret

if TYPE_CHECKING:
    from redis.asyncio import Redis

__all__ = ["KEY_ID", "check_key", "key_trouble", "load_pseudonyms"]

KEY_ID = "key-id"  # workers say it while they live: a Redis that came back empty knows it again


def load_pseudonyms(settings: Settings, must: bool = True) -> Pseudonyms:
    """By `privacy.key_file`. Without one ids stay as they are, unless they `must` not.

    Raises ConfigError for a secret that cannot be read or is too short, or that is missing where it must be there.
    """
    key = secret(settings.privacy.key_file, least_chars=LEAST_KEY_CHARS)
    if key is not None:
        return Pseudonyms(key.encode(), settings.privacy.keep_ids)
    if must:
        raise ConfigError(
            "no secret for the pseudonyms of authors and posts: `crisis key FILE` makes one; name it in "
            "privacy.key_file (CRISIS_PRIVACY__KEY_FILE), the same for all workers"
        )
    return OFFLINE


async def check_key(redis: Redis, settings: Settings, pseudonyms: Pseudonyms) -> None:
    """Raises ConfigError where workers use another secret, or keep ids."""
    if trouble := await key_trouble(redis, settings, pseudonyms):
        raise ConfigError(trouble)


async def key_trouble(redis: Redis, settings: Settings, pseudonyms: Pseudonyms) -> str:
    """Say which secret is used here, if nobody did or Redis lost it. Returns what is wrong where workers use another,
    or keep ids; empty where they use this one."""
    kept = "kept" if pseudonyms.keep else "keyed"
    mine = f"{kept} {keyed_hash('which', pseudonyms.key, b'check', 4)}".encode()
    key, hours = f"{settings.key_prefix}{KEY_ID}", max(settings.topics.retention_h, settings.redis.fold_h)
    expires_s = max(1, int(hours * 3600))  # as the last pseudonym, on the broker or in Redis
    pipe = redis.pipeline(transaction=False)
    pipe.set(key, mine, nx=True, ex=expires_s)
    pipe.expire(key, expires_s)
    pipe.get(key)
    *_, theirs = await pipe.execute()
    if theirs in (mine, None):
        return ""
    what = "privacy.keep_ids" if theirs.split()[1:] == mine.split()[1:] else "the secret in privacy.key_file"
    return (
        f"{what} is not what the pseudonyms in Redis were made with: use theirs, or begin anew "
        "(deploy/runbook.md, Starting over)"
    )
