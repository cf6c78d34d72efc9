"""What Redis still holds of some posts: asked before and after they are forgotten."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from redis.asyncio import Redis

from models.records import account_of
from streams.config import Settings
from streams.view.live import LiveView
from streams.view.vault import Vault

__all__ = ["Holdings"]

AT_A_TIME = 500
STORES = ("alerts", "clusters", "snapshot", "folding", "repeats", "links")


class Holdings:
    """Counts by store; all 0 when none of the posts' words, links, places or texts is left."""

    def __init__(self, redis: Redis, settings: Settings, vault: Vault | None = None) -> None:
        self._redis, self._prefix = redis, settings.key_prefix
        self._view, self._vault = LiveView(redis, settings), vault

    async def of(self, post_ids: Sequence[str]) -> dict[str, int]:
        """alerts: with a text, link or place. clusters: that show one as an example. snapshot: posts it remembers."""
        found = dict.fromkeys(STORES, 0)
        snapshot = await self._redis.hvals(f"{self._prefix}snapshot-parts")
        clusters = await self._redis.hvals(f"{self._prefix}cluster")
        for start in range(0, len(post_ids), AT_A_TIME):
            ids = post_ids[start : start + AT_A_TIME]
            alerts = await self._view.alerts_of(ids)
            found["alerts"] += sum(bool(a.post.text or a.post.url or a.post.geo or a.post.places) for a in alerts)
            for post_id in ids:
                named = b'"post_id":' + msgspec.json.encode(post_id)
                found["clusters"] += sum(named in cluster for cluster in clusters)
                packed = msgspec.msgpack.encode(post_id)
                found["snapshot"] += any(packed in part for part in snapshot)
            found["links"] += await self._vault.held(ids) if self._vault is not None else 0
            for store, key in (("folding", "fold:id:"), ("folding", "fold:kept:"), ("repeats", "repeats:")):
                found[store] += await self._redis.exists(*(f"{self._prefix}{key}{post_id}" for post_id in ids))
        return found

    async def drop_counts(self, post_ids: Sequence[str]) -> None:
        """Forget how often they were repeated: nobody deletes that on the way."""
        for start in range(0, len(post_ids), AT_A_TIME):
            ids = post_ids[start : start + AT_A_TIME]
            await self._redis.delete(*(f"{self._prefix}repeats:{post_id}" for post_id in ids))

    async def alerts_under(self, owners: Sequence[str]) -> list[str]:
        """Ids of posts with alerts, of these accounts: older than what posts.raw still holds."""
        return [a.post.id for a in await self._view.alerts_of(owners) if account_of(a.post.id) in owners]
