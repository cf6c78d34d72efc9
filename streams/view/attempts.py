"""How often each record was begun and not finished: it tells a record that ends workers from one that met a fault."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from redis.asyncio import Redis

from streams.config import Settings
from streams.view.scripts import script

__all__ = ["Attempts", "Place"]

Place = tuple[str, int, int]  # stage, partition, offset


class Attempts:
    """Key (after the prefix): attempts, a hash "stage:partition:offset" → tokens of attempts under way or cut short.

    It holds what workers have in hand, and what they had when they died until somebody finishes it. Tokens, not a
    number: while Redis is frozen a worker asks again and again, and all of it is carried out when it thaws.
    """

    def __init__(self, redis: Redis, settings: Settings) -> None:
        self._redis, self._key = redis, f"{settings.key_prefix}attempts"
        self._expires_s = max(1, int(settings.redis.fold_h * 3600))
        self._open: dict[Place, str] = {}  # → the token it was begun with
        self._begin, self._undo = (redis.register_script(script(name)) for name in ("begin", "undo"))

    async def begin(self, places: Sequence[Place]) -> list[int]:
        """Say that these are begun. Returns which attempt it is for each: 1 for a record nobody had before."""
        token = secrets.token_hex(6)
        self._open.update(dict.fromkeys(places, token))
        return await self._begin(args=[self._key, self._expires_s, token, *map(_field, places)])

    async def finish(self, places: Sequence[Place]) -> None:
        """These are done, or given up: nobody needs to know any more."""
        for place in places:
            self._open.pop(place, None)
        if places:
            await self._redis.hdel(self._key, *map(_field, places))

    async def undo(self, places: Sequence[Place] | None = None, partition: tuple[str, int] | None = None) -> None:
        """These (all in hand, if none is named, or those of one stage's partition) are left unfinished by no fault of
        their own: the attempt does not count."""
        left = self._open.keys() & set(places) if places is not None else set(self._open)
        left = {place for place in left if partition is None or place[:2] == partition}
        tokens = [x for place in left for x in (_field(place), self._open.pop(place))]
        if tokens:
            await self._undo(args=[self._key, *tokens])


def _field(place: Place) -> str:
    return ":".join(map(str, place))
