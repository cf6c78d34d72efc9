"""The link vault: which post of which platform a pseudonym stands for. In a Redis of its own (`privacy.vault_url`).

Workers write and may not read; the dashboard reads, and says in the vault's own log who opened what before it does
(deploy/security.md has both users). Everything expires: links as `privacy.link_h` or, once the post gave an alert, as
long as alerts are kept. Log entries are shown for `privacy.log_days`; older ones go with the next opening, the last
with the log itself, so many days after it.

| key (after `vault:`) | what |
|---|---|
| link:ID | Link JSON of a post, by its pseudonym |
| of:ACCOUNT | zset of the pseudonyms of an account's posts, by when they expire: what a closed account takes along |
| gone:ID | a deleted post or account: what is still under way leaves no link |
| log | stream of openings: at, who, post |
| written | a worker could write here a minute ago |
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Self

import msgspec
from msgspec import Struct
from redis.asyncio import Redis

from models.moments import rfc3339
from models.pseudonyms import Link
from models.records import account_of
from streams.config import Settings
from streams.view.connect import connect
from streams.view.scripts import script

__all__ = ["Opening", "Vault"]

ANSWERS_S = 2.0
WRITTEN_S = 60

_json = msgspec.json.Encoder().encode
_link = msgspec.json.Decoder(Link).decode


class Opening(Struct, frozen=True):
    """Somebody opened a post. `at`: RFC 3339 UTC; `post`: its pseudonym; `found`: whether its link was still kept."""

    at: str
    who: str
    post: str
    found: bool


class Vault:
    """Keep, prolong, drop and open links."""

    def __init__(self, redis: Redis, settings: Settings) -> None:
        self._redis, self._prefix = redis, f"{settings.topics.prefix}vault:"
        self._short_s = max(1, int(settings.privacy.link_h * 3600))
        self._long_s = max(self._short_s, int(settings.topics.retention_h * 3600))
        self._log_ms = int(settings.privacy.log_days * 86_400_000)
        self._keep, self._drop = (redis.register_script(script(name)) for name in ("keep_links", "drop_links"))

    @classmethod
    def of(cls, settings: Settings, patient: bool = False) -> Self | None:
        """The settings' vault; None where they name none, or where ids are kept as they are. patient: see `connect`."""
        where = settings.privacy.vault
        return None if where is None or settings.privacy.keep_ids else cls(connect(where, patient), settings)

    async def check(self) -> None:
        """Raise RedisError, or TimeoutError, where nothing can be written to it now. For one that is not patient."""
        await asyncio.wait_for(self._redis.set(f"{self._prefix}written", 1, ex=WRITTEN_S), ANSWERS_S)

    async def keep(self, links: Sequence[Link]) -> None:
        """Keep the links of posts that were read, for a while. May be said again."""
        await self._kept(self._short_s, [(link.post_id, _json(link)) for link in links])

    async def prolong(self, post_ids: Sequence[str]) -> None:
        """These posts gave alerts: their links, where there are any, stay as long as those."""
        await self._kept(self._long_s, [(post_id, b"") for post_id in post_ids])

    async def _kept(self, for_s: int, links: Sequence[tuple[str, bytes]]) -> None:
        if links:
            flat = [x for post_id, link in links for x in (post_id, account_of(post_id), link)]
            await self._keep(args=[self._prefix, for_s, *flat])

    async def drop(self, post_ids: Sequence[str]) -> None:
        """These posts, or all posts of these accounts, are gone."""
        if post_ids:
            await self._drop(args=[self._prefix, self._long_s, *post_ids])

    async def open(self, post_id: str, who: str) -> Link | None:
        """The link of a post, once the log says who asked for it."""
        there = bool(await self._redis.exists(f"{self._prefix}link:{post_id}"))
        entry = {"who": who, "post": post_id, "found": int(there)}
        now_ms = int(time.time() * 1000)
        log = f"{self._prefix}log"
        async with self._redis.pipeline(transaction=True) as both:
            both.xadd(log, entry, minid=max(0, now_ms - self._log_ms), approximate=False)
            both.pexpire(log, self._log_ms)
            await both.execute()
        found = await self._redis.get(f"{self._prefix}link:{post_id}") if there else None
        return None if found is None else _link(found)

    async def openings(self, most: int = 1000) -> list[Opening]:
        """Who opened what, the newest first."""
        since = max(0, int(time.time() * 1000) - self._log_ms)
        told = await self._redis.xrevrange(f"{self._prefix}log", min=since, count=most)
        return [
            Opening(
                rfc3339(int(at.partition(b"-")[0]) / 1000), e[b"who"].decode(), e[b"post"].decode(), e[b"found"] == b"1"
            )
            for at, e in told
        ]

    async def held(self, post_ids: Sequence[str]) -> int:
        """How many of the posts have a link here."""
        return int(await self._redis.exists(*(f"{self._prefix}link:{p}" for p in post_ids))) if post_ids else 0

    async def aclose(self) -> None:
        """Close the connection."""
        await self._redis.aclose()
