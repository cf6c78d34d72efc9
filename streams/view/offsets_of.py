"""Of which topic the group's committed offsets are: one that was deleted and made anew has its name, and another id."""

from __future__ import annotations

from collections.abc import Mapping

from redis.asyncio import Redis

from streams.config import Settings

__all__ = ["NAME", "OffsetsOf"]

NAME = "offsets-of"

Partition = tuple[str, int]


class OffsetsOf:
    """Key (after the prefix): offsets-of, a hash "topic:partition" → id of the topic that was read last."""

    def __init__(self, redis: Redis, settings: Settings) -> None:
        self._redis, self._key = redis, f"{settings.key_prefix}{NAME}"
        self._expires_s = max(1, int(settings.topics.retention_h * 3600))

    async def others(self, ids: Mapping[Partition, str]) -> set[Partition]:
        """Those of these partitions whose offsets are of another topic than this. Never read before is none."""
        known = await self._redis.hgetall(self._key)
        return {
            part for part, topic_id in ids.items() if known.get(_field(part), topic_id.encode()) != topic_id.encode()
        }

    async def note(self, ids: Mapping[Partition, str]) -> None:
        """From now on they are of these."""
        if ids:
            await self._redis.hset(self._key, mapping={_field(part): topic_id for part, topic_id in ids.items()})
            await self._redis.expire(self._key, self._expires_s)


def _field(part: Partition) -> bytes:
    return f"{part[0]}:{part[1]}".encode()
