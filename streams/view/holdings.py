"""What Redis, the vault and the labels still hold of some posts: asked before and after they are forgotten.

By the keys that are named after them, which is quick and what the workers go by; and by a look through every alert
there is, whatever finds it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence

import msgspec
from redis.asyncio import Redis

from models.records import Alert, account_of
from streams.config import Settings
from streams.view.live import LiveView
from streams.view.vault import Vault

__all__ = ["Holdings"]

AT_A_TIME = 500
STORES = ("alerts", "clusters", "snapshot", "folding", "repeats", "labels", "links")


class _Post(msgspec.Struct):
    id: str


class _Of(msgspec.Struct):
    post: _Post


_of = msgspec.json.Decoder(_Of).decode
_alert = msgspec.json.Decoder(Alert).decode


class Holdings:
    """Counts by store; all 0 when none of the posts' words, links, places or texts is left.

    labelled: the ids of posts that somebody judged, which lie on the broker; it may block.
    """

    def __init__(
        self,
        redis: Redis,
        settings: Settings,
        vault: Vault | None = None,
        labelled: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._redis, self._prefix = redis, settings.key_prefix
        self._view, self._vault, self._labelled = LiveView(redis, settings), vault, labelled

    async def of(self, post_ids: Sequence[str]) -> dict[str, int]:
        """All that is held. Reads through Redis: seconds where it holds millions of keys.

        alerts: with a text, link or place. clusters: that show one as an example. snapshot: posts it remembers.
        """
        found = await self.by_name(post_ids)
        ids = set(post_ids)
        found["alerts"] = len({a.alert_id async for a in self._alerts_of(ids) if _says_something(a)}) if ids else 0
        found["labels"] = len([post_id for post_id in await asyncio.to_thread(self._labelled) if post_id in ids])
        return found

    async def by_name(self, post_ids: Sequence[str]) -> dict[str, int]:
        """The same as far as keys are named after the posts: quick, to be asked again and again."""
        found = dict.fromkeys(STORES, 0)
        snapshot = await self._redis.hvals(f"{self._prefix}snapshot-parts")
        clusters = await self._redis.hvals(f"{self._prefix}cluster")
        for ids in _some(post_ids):
            found["alerts"] += sum(map(_says_something, await self._view.alerts_of(ids)))
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
        for ids in _some(post_ids):
            await self._redis.delete(*(f"{self._prefix}repeats:{post_id}" for post_id in ids))

    async def posts_under(self, accounts: Collection[str]) -> list[str]:
        """Ids of posts with alerts, or labels, of these accounts: older than what posts.raw still holds."""
        alerted = [alert.post.id async for alert in self._alerts_of(accounts)]
        labelled = [p for p in await asyncio.to_thread(self._labelled) if account_of(p) in accounts]
        return list(dict.fromkeys(alerted + labelled))

    async def _alerts_of(self, owners: Collection[str]) -> AsyncIterator[Alert]:
        """The alerts of these posts or accounts, whatever index names them."""
        match = _literal(f"{self._prefix}alert:") + "*"
        keys: list[bytes] = []
        async for key in self._redis.scan_iter(match=match, count=10_000):
            keys.append(key)
            if len(keys) == AT_A_TIME:
                for alert in await self._read(keys, owners):
                    yield alert
                keys = []
        for alert in await self._read(keys, owners) if keys else ():
            yield alert

    async def _read(self, keys: Sequence[bytes], owners: Collection[str]) -> list[Alert]:
        values = await self._redis.mget(keys)
        return [_alert(v) for v in values if v and {i := _of(v).post.id, account_of(i)} & set(owners)]


def _says_something(alert: Alert) -> bool:
    return bool(alert.post.text or alert.post.url or alert.post.geo or alert.post.places)


def _some(post_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(post_ids), AT_A_TIME):
        yield post_ids[start : start + AT_A_TIME]


def _literal(prefix: str) -> str:
    """A prefix as a pattern of Redis that only itself fits."""
    return "".join(f"\\{c}" if c in "*?[]\\^-" else c for c in prefix)
