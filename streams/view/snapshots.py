"""What a worker must find again: the clusterer's state."""

from __future__ import annotations

import secrets
from enum import Enum

from redis.asyncio import Redis

from models.clusters.state import Changes
from streams.config import Settings
from streams.view.scripts import script

__all__ = ["Kept", "Snapshots"]


class Kept(Enum):
    """What became of a save."""

    SAVED = 1
    LOST = 0  # Redis has forgotten what was saved before, or came back older than that: save everything
    MOVED = -1  # another worker has loaded the state since


class Snapshots:
    """Key (after the prefix): snapshot-parts."""

    def __init__(self, redis: Redis, settings: Settings) -> None:
        self._redis, self._prefix = redis, settings.key_prefix
        self._key = f"{self._prefix}snapshot-parts"
        self._retention_s = max(1, int(settings.topics.retention_h * 3600))
        self._save = redis.register_script(script("save_snapshot"))
        self._owner, self._last = secrets.token_hex(8), ""  # who saves, and the last save there was: "" is none

    async def save(self, changes: Changes) -> Kept:
        """Keep what changed in the clusterer's state, as long as posts are kept: it holds some of them whole.

        All of it or, if another worker owns the state by now, nothing: parts of two states never mix.
        """
        parts = [x for item in changes.put.items() for x in item]
        if not changes.whole and not self._last:
            return Kept.LOST
        this = secrets.token_hex(8)
        head = [self._key, self._owner, self._retention_s, "" if changes.whole else self._last, this, len(changes.gone)]
        kept = Kept(await self._save(args=[*head, *changes.gone, *parts]))
        if kept is Kept.SAVED:
            self._last = this
        return kept

    async def load(self) -> dict[str, bytes] | None:
        """The clusterer's last saved state, which from now on only this worker can save."""
        self._owner = secrets.token_hex(8)
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.hset(self._key, "owner", self._owner)
            pipe.expire(self._key, self._retention_s)
            pipe.hgetall(self._key)
            *_, found = await pipe.execute()
        self._last = found.pop(b"save", b"").decode()
        parts = {name.decode(): part for name, part in found.items() if name != b"owner"}
        return parts or None
