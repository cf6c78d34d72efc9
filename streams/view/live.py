"""The live view in Redis: recent alerts, clusters, counters, latency. What the dashboard and `crisis alerts` read.

Every write can be repeated without harm: counters carry the frame's origin and are applied once per stage and
lane; alerts carry a revision, clusters a version, and only a newer one replaces what is there.

| key (after the prefix) | what |
|---|---|
| counts, langs, sources, reasons, queries, matched-langs, put-by-langs, put-by-sources | hashes of counters |
| counted | hash stage:lane → the last origin counted |
| alerts | zset of the newest alerts' ids by time: what the dashboard lists |
| alert-places | hash of those: room, source, cluster, author, by which they give way where there are too many |
| alert:ID | Alert JSON, listed or not |
| alerts-of:ID | zset of the alert ids of a post, or of an account, by when they changed; none older than those |
| gone:ID | a deleted post or account |
| repeats:ID | how often a post was repeated, expires with the fold window |
| clusters, cluster, cluster-ver | zset by last post; hash id → ClusterEvent JSON; hash id → version |
| clusters-gone | zset by last post: ids of which the version is kept, and what they were merged into |
| cluster-into | hash of merged ones: id → the cluster that it went into then |
| latency | list of the newest end-to-end latencies, milliseconds |
| workers, sources-at | hashes: worker → WorkerStatus JSON, source → SourceStatus JSON (status.py) |
| proposals | clusters the last audit would merge |
| snapshot-parts | snapshots.py |
| attempts, offsets-of | attempts.py, offsets_of.py |
| key-id | which secret made the pseudonyms: pseudonyms.py |
| fold:* | folder.py |
| trial-N | counters of a trial (releases/trial.py) |
| live-alerts, live-clusters | pub/sub channels: Alert JSON, ClusterEvent JSON |

Every key expires: where nothing else is said `topics.retention_h` after it was written last, as what is on the broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec
from redis.asyncio import Redis

from models.alerts import crowd_of
from models.audit import MergeProposal
from models.moments import epoch_s
from models.records import Alert, ClusterEvent, Origin, Repeat, account_of
from streams.config import Settings
from streams.view.offsets_of import NAME
from streams.view.scripts import packed, script
from streams.view.status import (
    SOURCE_KEPT_S,
    SourceStatus,
    WorkerStatus,
    cleared_away,
    decode_source,
    decode_status,
    encode_status,
)

__all__ = ["Counts", "LiveView"]

_json = msgspec.json.Encoder().encode
_alert = msgspec.json.Decoder(Alert).decode
_cluster = msgspec.json.Decoder(ClusterEvent).decode
_seen_s = lru_cache(1_024)(epoch_s)  # the posts of a record were seen in one moment

Counts = Mapping[str, Mapping[str, int]]  # hash name → field → increment


class LiveView:
    """The live view. One instance per process, safe to share between tasks of one event loop."""

    def __init__(self, redis: Redis, settings: Settings) -> None:
        self.redis, self.prefix = redis, settings.key_prefix
        self._most, self._ttl_s = settings.redis.recent_alerts, max(1, int(settings.redis.fold_h * 3600))
        self._retention_s = max(self._ttl_s, int(settings.topics.retention_h * 3600))
        names = ("alerts_of", "count", "put_alerts", "put_clusters", "repeat")
        self._alerts_of, self._count, self._put_alerts, self._put_clusters, self._repeat = (
            redis.register_script(script(name)) for name in names
        )

    def key(self, name: str) -> str:
        """The full Redis key."""
        return self.prefix + name

    async def count(self, stage: str, origin: Origin, counts: Counts) -> bool:
        """Add to counters, once per (stage, origin). False if this origin was counted before."""
        (new,) = await self.count_all(stage, [(origin, counts)])
        return new

    async def count_all(self, stage: str, counted: Sequence[tuple[Origin, Counts]]) -> list[bool]:
        """The same for several origins in order, in one round trip."""
        rows = [
            (*_counted_at(stage, origin), [(name, at, n) for name, of in counts.items() for at, n in of.items() if n])
            for origin, counts in counted
        ]
        if not rows:
            return []
        return [bool(new) for new in await self._count(args=[self.prefix, self._retention_s, packed(rows)])]

    async def was_counted(self, stage: str, origin: Origin) -> bool:
        """Would `count` of this, or of what lies before it, be taken for a repetition?"""
        field, at = _counted_at(stage, origin)
        last = await self.redis.hget(self.key("counted"), field)
        return last is not None and last.decode() >= at

    async def counts(self, name: str = "counts") -> dict[str, int]:
        """A hash of counters, by name."""
        return {k.decode(): int(v) for k, v in (await self.redis.hgetall(self.key(name))).items()}

    async def repeat(self, repeats: Iterable[Repeat]) -> None:
        """Count repeats with their originals. Call only for an origin that `count` accepted."""
        counts = Counter(r.of for r in repeats)
        if counts:
            flat = [x for of, n in counts.items() for x in (of, n)]
            await self._repeat(args=[self.prefix, self._ttl_s, *flat])

    async def repeats_of(self, post_ids: Sequence[str]) -> list[int]:
        """How often each post was repeated."""
        found = await self.redis.mget([self.key(f"repeats:{p}") for p in post_ids]) if post_ids else []
        return [int(n or 0) for n in found]

    async def alerts_of(self, post_ids: Iterable[str]) -> list[Alert]:
        """The known alerts of these posts or accounts; known are those that the broker keeps, listed or not."""
        ids = list(post_ids)
        found = await self._alerts_of(args=[self.prefix, *ids]) if ids else []
        return sorted(map(_alert, found), key=lambda alert: alert.alert_id)

    async def _alerts(self, ids: Sequence[bytes]) -> list[Alert]:
        found = await self.redis.mget([self.key(f"alert:{i.decode()}") for i in ids]) if ids else []
        return [_alert(a) for a in found if a]

    async def put_alerts(self, alerts: Sequence[Alert], told: Sequence[bytes] = ()) -> list[Alert]:
        """Keep alerts and publish them to live readers; returns those that were new or newer.

        told: the JSON of each, where the caller has it: 2 to 3 µs an alert.
        """
        if not alerts:
            return []
        rows = [
            (a.alert_id, a.revision, _seen_s(a.seen_at), a.post.id, account_of(a.post.id), _place(a)) for a in alerts
        ]
        head = self.prefix, self._most, self._retention_s, packed(rows)
        taken = await self._put_alerts(args=[*head, *(told or map(_json, alerts))])
        return [alerts[int(i)] for i in taken]

    async def mark_gone(self, post_ids: Sequence[str]) -> None:
        """Remember deleted posts for as long as one may be under way, or wait."""
        pipe = self.redis.pipeline(transaction=False)
        for post_id in post_ids:
            pipe.set(self.key(f"gone:{post_id}"), 1, ex=self._retention_s)
        await pipe.execute()

    async def gone(self, post_ids: Iterable[str]) -> set[str]:
        """Those of the posts that were deleted."""
        ids = list(post_ids)
        asked = [self.key(f"gone:{owner}") for p in ids for owner in (p, account_of(p))]
        marks = await self.redis.mget(asked) if ids else []
        return {p for n, p in enumerate(ids) if marks[2 * n] or marks[2 * n + 1]}

    async def recent_alerts(self, most: int = 200) -> list[Alert]:
        """The newest alerts, newest first; withdrawn ones included."""
        return await self._alerts(await self.redis.zrevrange(self.key("alerts"), 0, most - 1))

    async def put_clusters(
        self, events: Sequence[ClusterEvent], told: Sequence[bytes] = (), *, most: int = 2000
    ) -> None:
        """Keep the newest state of each cluster; merged and expired ones leave the view. told: as in `put_alerts`."""
        if not events:
            return
        rows = [
            (e.cluster_id, e.version, epoch_s(e.last_at), e.event in ("merge", "expire"), e.into or "") for e in events
        ]
        await self._put_clusters(
            args=[self.prefix, most, self._retention_s, packed(rows), *(told or map(_json, events))]
        )

    async def clusters(self, most: int = 500) -> list[ClusterEvent]:
        """Clusters with the newest posts, newest first."""
        ids = await self.redis.zrevrange(self.key("clusters"), 0, most - 1)
        return [_cluster(c) for c in await self.redis.hmget(self.key("cluster"), ids) if c] if ids else []

    async def merged_clusters(self) -> dict[str, str]:
        """Clusters that were merged, by id: the one each went into, which may have been merged since."""
        found = await self.redis.hgetall(self.key("cluster-into"))
        return {gone.decode(): into.decode() for gone, into in found.items()}

    async def add_latencies(self, latencies_ms: Sequence[float]) -> None:
        """Remember end-to-end latencies (posts.raw to alert), the newest 500."""
        if latencies_ms:
            pipe = self.redis.pipeline(transaction=False)
            pipe.lpush(self.key("latency"), *(round(x, 1) for x in latencies_ms))
            pipe.ltrim(self.key("latency"), 0, 499)
            pipe.expire(self.key("latency"), self._retention_s)
            await pipe.execute()

    async def latencies_ms(self) -> list[float]:
        """The newest end-to-end latencies, milliseconds."""
        return [float(x) for x in await self.redis.lrange(self.key("latency"), 0, -1)]

    async def now(self) -> float:
        """Epoch seconds by the clock of Redis: the one that all who speak here are measured by."""
        seconds, micros = await self.redis.time()
        return seconds + micros / 1e6

    async def put_worker(self, name: str, status: WorkerStatus) -> None:
        """A worker's word about itself; one that names no time is said now. Workers and sources long dead go."""
        now = await self.now()
        status = status if status.at else msgspec.structs.replace(status, at=now)
        pipe = self.redis.pipeline(transaction=False)
        pipe.hset(self.key("workers"), name, encode_status(status))
        pipe.expire(self.key("workers"), self._retention_s)
        pipe.hgetall(self.key("workers"))
        *_, workers = await pipe.execute()
        # A source may not look at others (deploy/security.md), and the page writes nothing: workers clear away.
        if gone := cleared_away(workers, now):
            await self.redis.hdel(self.key("workers"), *gone)
        if dead := [source for source, said in (await self.sources()).items() if not said.missed(now)]:
            await self.redis.hdel(self.key("sources-at"), *dead)

    async def workers(self) -> dict[str, WorkerStatus]:
        """What each worker said last."""
        found = await self.redis.hgetall(self.key("workers"))
        return {k.decode(): decode_status(v) for k, v in found.items()}

    async def put_source(self, name: str, message: str = "") -> None:
        """A source's word about itself, said now."""
        await self.redis.hset(self.key("sources-at"), name, encode_status(SourceStatus(await self.now(), message)))
        await self.redis.expire(self.key("sources-at"), SOURCE_KEPT_S)

    async def drop_source(self, name: str) -> None:
        """It has ended in order, and is not missed."""
        await self.redis.hdel(self.key("sources-at"), name)

    async def sources(self) -> dict[str, SourceStatus]:
        """What each source said last."""
        found = await self.redis.hgetall(self.key("sources-at"))
        return {k.decode(): decode_source(v) for k, v in found.items()}

    async def put_proposals(self, proposals: Sequence[MergeProposal]) -> None:
        """Keep the newest audit's proposals."""
        await self.redis.set(self.key("proposals"), _json(proposals), ex=self._retention_s)

    async def proposals(self) -> list[MergeProposal]:
        """Clusters the last audit would merge, most similar first."""
        found = await self.redis.get(self.key("proposals"))
        return msgspec.json.decode(found, type=list[MergeProposal]) if found else []

    async def clear(self) -> int:
        """Forget everything under the prefix (`crisis topics --reset-view`). Returns the number of keys removed.

        But of which topics the offsets are: a worker that ends may have left those of a topic that is gone.
        """
        removed = 0
        async for key in self.redis.scan_iter(match=f"{self.prefix}*", count=1000):
            if key != f"{self.prefix}{NAME}".encode():
                removed += await self.redis.delete(key)
        return removed


def _place(alert: Alert) -> str:
    """Room, source, cluster (or its words, before it is in one) and author, the last two empty where there is none."""
    return "\x1f".join((f"{alert.level}/{alert.category}", alert.post.source, crowd_of(alert), _author(alert)))


def _author(alert: Alert) -> str:
    """Whose room it takes: the author that the source told, else the account that its id names; else nobody's."""
    account = account_of(alert.post.id)
    return alert.post.author or ("" if account == alert.post.id else account)


def _counted_at(stage: str, origin: Origin) -> tuple[str, str]:
    """The field of `counted`, and the place in it: of one length, so that text has the order of numbers."""
    lane = f"{origin.partition}.{origin.turn}" if origin.turn else origin.partition
    return f"{stage}:{lane}", f"{origin.offset:020}.{origin.item:010}"
