"""The live view in Redis: recent alerts, clusters, counters, latency. What the dashboard and `crisis alerts` read.

Every write can be repeated without harm: counters carry the frame's origin and are applied once per stage and
partition; alerts carry a revision, clusters a version, and only a newer one replaces what is there.

| key (after the prefix) | what |
|---|---|
| counts, langs, sources, reasons, queries | hashes of counters |
| counted | hash stage:partition → the last origin counted |
| alerts | zset of the newest alerts' ids by time: what the dashboard lists |
| alert:ID | Alert JSON; expires a fold window after it left that list |
| alerts-of:ID | zset of the alert ids of a post, or of an account, by time; expires with the fold window |
| gone:ID | a deleted post, expires with the fold window |
| repeats:ID | how often a post was repeated, expires with the fold window |
| clusters, cluster, cluster-ver | zset by last post; hash id → ClusterEvent JSON; hash id → version |
| latency | list of the newest end-to-end latencies, milliseconds |
| workers | hash worker → status JSON |
| snapshot | the clusterer's state |
| proposals | clusters the last audit would merge |
| live | pub/sub channel: {"alert": …} and {"cluster": …} |
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from models.audit import MergeProposal
from models.errors import ServiceError
from models.records import Alert, ClusterEvent, Origin, Repeat, account_of
from streams.config import Redis as RedisSettings
from streams.config import Settings, secret

_json = msgspec.json.Encoder().encode
_alert = msgspec.json.Decoder(Alert).decode
_cluster = msgspec.json.Decoder(ClusterEvent).decode

Counts = Mapping[str, Mapping[str, int]]  # hash name → field → increment

_COUNT = """
local counted, field, at = ARGV[1] .. 'counted', ARGV[2], ARGV[3]
local last = redis.call('HGET', counted, field)
if last and last >= at then return 0 end
redis.call('HSET', counted, field, at)
for i = 4, #ARGV, 3 do redis.call('HINCRBY', ARGV[1] .. ARGV[i], ARGV[i + 1], ARGV[i + 2]) end
return 1
"""

# ARGV: prefix, most listed, ttl, then (id, revision, json, post id, account) of each. Returns the indices taken.
# The list is capped, the alerts are not: a deletion or a cluster may come long after 2,000 newer alerts. One costs about
# 1.5 kB of Redis (measured: 0.9 kB of JSON, the rest keys and the two indices): with one post in twenty alerting that is
# 75 bytes a post, a sixth of what folding takes to remember every post as long. `fold_h` bounds both.
_PUT_ALERTS = """
local p, most, ttl, out = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), {}
for i = 4, #ARGV, 5 do
  local id, rev, json = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  local known = redis.call('GET', p .. 'alert:' .. id)
  if not known or cjson.decode(known).revision < rev then
    redis.call('SET', p .. 'alert:' .. id, json, 'KEEPTTL')
    if not known then redis.call('ZADD', p .. 'alerts', rev / 1000, id) end
    for owner = i + 3, i + 4 do
      local key = p .. 'alerts-of:' .. ARGV[owner]
      redis.call('ZADD', key, rev, id)
      redis.call('ZREMRANGEBYSCORE', key, '-inf', rev - 1000 * ttl)
      redis.call('EXPIRE', key, ttl)
    end
    redis.call('PUBLISH', p .. 'live', '{"alert":' .. json .. '}')
    out[#out + 1] = (i - 4) / 5
  end
end
local over = redis.call('ZCARD', p .. 'alerts') - most
if over > 0 then
  for _, id in ipairs(redis.call('ZRANGE', p .. 'alerts', 0, over - 1)) do
    redis.call('EXPIRE', p .. 'alert:' .. id, ttl)
  end
  redis.call('ZREMRANGEBYRANK', p .. 'alerts', 0, over - 1)
end
return out
"""

_PUT_CLUSTERS = """
local p, most = ARGV[1], tonumber(ARGV[2])
for i = 3, #ARGV, 5 do
  local id, ver = ARGV[i], tonumber(ARGV[i + 1])
  local known = redis.call('HGET', p .. 'cluster-ver', id)
  if not known or tonumber(known) < ver then
    redis.call('HSET', p .. 'cluster-ver', id, ARGV[i + 1])
    if ARGV[i + 4] == 'gone' then
      redis.call('HDEL', p .. 'cluster', id)
      redis.call('ZREM', p .. 'clusters', id)
    else
      redis.call('HSET', p .. 'cluster', id, ARGV[i + 3])
      redis.call('ZADD', p .. 'clusters', ARGV[i + 2], id)
    end
    redis.call('PUBLISH', p .. 'live', '{"cluster":' .. ARGV[i + 3] .. '}')
  end
end
local over = redis.call('ZCARD', p .. 'clusters') - most
if over > 0 then
  for _, id in ipairs(redis.call('ZRANGE', p .. 'clusters', 0, over - 1)) do
    redis.call('HDEL', p .. 'cluster', id)
    redis.call('HDEL', p .. 'cluster-ver', id)
    redis.call('ZREM', p .. 'clusters', id)
  end
end
return 0
"""


class Alerts(Protocol):
    """What the match and cluster stages need to know of alerts already given (Redis, or a dict in replay)."""

    async def alerts_of(self, post_ids: Iterable[str]) -> list[Alert]:
        """The known alerts of these posts, or of all posts of these accounts, each once, in the order of their ids."""
        ...

    async def put_alerts(self, alerts: Sequence[Alert]) -> list[Alert]:
        """Keep them; returns those that were new or newer than what was known."""
        ...

    async def mark_gone(self, post_ids: Sequence[str]) -> None:
        """Remember that these posts were deleted, should they still be under way on another partition."""
        ...

    async def gone(self, post_ids: Iterable[str]) -> set[str]:
        """Those of the posts that were deleted."""
        ...


class MemoryAlerts:
    """For replay: the same answers as LiveView, from a dict."""

    def __init__(self) -> None:
        self.by_id: dict[str, Alert] = {}
        self._of_post: dict[str, list[str]] = {}
        self._gone: set[str] = set()

    async def mark_gone(self, post_ids: Sequence[str]) -> None:
        self._gone.update(post_ids)

    async def gone(self, post_ids: Iterable[str]) -> set[str]:
        return {p for p in post_ids if p in self._gone or account_of(p) in self._gone}

    async def alerts_of(self, post_ids: Iterable[str]) -> list[Alert]:
        return [self.by_id[a] for a in sorted({a for p in post_ids for a in self._of_post.get(p, ())})]

    async def put_alerts(self, alerts: Sequence[Alert]) -> list[Alert]:
        taken = []
        for alert in alerts:
            known = self.by_id.get(alert.alert_id)
            if known is None or known.revision < alert.revision:
                if known is None:
                    for owner in {alert.post.id, account_of(alert.post.id)}:
                        self._of_post.setdefault(owner, []).append(alert.alert_id)
                self.by_id[alert.alert_id] = alert
                taken.append(alert)
        return taken


def connect(settings: RedisSettings) -> Redis:
    """An asyncio client; connects lazily and retries with back-off on its own."""
    return Redis.from_url(settings.url, password=secret(settings.password_file), health_check_interval=15)


@contextlib.contextmanager
def reaching_redis(settings: RedisSettings) -> Iterator[None]:
    """Turn what redis-py raises inside into a ServiceError that says what to do."""
    try:
        yield
    except (RedisError, OSError) as error:
        where = settings.url.rpartition("@")[2]  # not the password
        raise ServiceError(f"no Redis at {where} ({error}): start one or set CRISIS_REDIS__URL") from error


class LiveView:
    """The live view. One instance per process, safe to share between tasks of one event loop."""

    def __init__(self, redis: Redis, settings: Settings) -> None:
        self.redis, self.prefix = redis, settings.key_prefix
        self._most, self._ttl_s = settings.redis.recent_alerts, max(1, int(settings.redis.fold_h * 3600))
        self._count, self._put_alerts, self._put_clusters = map(
            redis.register_script, (_COUNT, _PUT_ALERTS, _PUT_CLUSTERS)
        )

    def key(self, name: str) -> str:
        """The full Redis key."""
        return self.prefix + name

    async def count(self, stage: str, origin: Origin, counts: Counts) -> bool:
        """Add to counters, once per (stage, origin). False if this origin was counted before."""
        flat = [x for name, fields in counts.items() for field, n in fields.items() if n for x in (name, field, n)]
        at = f"{origin.offset:020}.{origin.item:010}"  # of one length, so that text has the order of numbers
        return bool(await self._count(args=[self.prefix, f"{stage}:{origin.partition}", at, *flat]))

    async def counts(self, name: str = "counts") -> dict[str, int]:
        """A hash of counters, by name."""
        return {k.decode(): int(v) for k, v in (await self.redis.hgetall(self.key(name))).items()}

    async def repeat(self, repeats: Iterable[Repeat]) -> None:
        """Count repeats with their originals. Call only for an origin that `count` accepted."""
        pipe = self.redis.pipeline(transaction=False)
        for r in repeats:
            pipe.incr(self.key(f"repeats:{r.of}"))
            pipe.expire(self.key(f"repeats:{r.of}"), self._ttl_s)
        await pipe.execute()

    async def repeats_of(self, post_ids: Sequence[str]) -> list[int]:
        """How often each post was repeated."""
        found = await self.redis.mget([self.key(f"repeats:{p}") for p in post_ids]) if post_ids else []
        return [int(n or 0) for n in found]

    async def alerts_of(self, post_ids: Iterable[str]) -> list[Alert]:
        """The known alerts of these posts or accounts; known are those of the fold window, listed or not."""
        pipe = self.redis.pipeline(transaction=False)
        for post_id in post_ids:
            pipe.zrange(self.key(f"alerts-of:{post_id}"), 0, -1)
        return await self._alerts(sorted({i for found in await pipe.execute() for i in found}))

    async def _alerts(self, ids: Sequence[bytes]) -> list[Alert]:
        found = await self.redis.mget([self.key(f"alert:{i.decode()}") for i in ids]) if ids else []
        return [_alert(a) for a in found if a]

    async def put_alerts(self, alerts: Sequence[Alert]) -> list[Alert]:
        """Keep alerts and publish them to live readers; returns those that were new or newer."""
        if not alerts:
            return []
        flat = [x for a in alerts for x in (a.alert_id, a.revision, _json(a), a.post.id, account_of(a.post.id))]
        taken = await self._put_alerts(args=[self.prefix, self._most, self._ttl_s, *flat])
        return [alerts[int(i)] for i in taken]

    async def mark_gone(self, post_ids: Sequence[str]) -> None:
        """Remember deleted posts for as long as repeats are folded."""
        pipe = self.redis.pipeline(transaction=False)
        for post_id in post_ids:
            pipe.set(self.key(f"gone:{post_id}"), 1, ex=self._ttl_s)
        await pipe.execute()

    async def gone(self, post_ids: Iterable[str]) -> set[str]:
        """Those of the posts that were deleted."""
        ids = list(post_ids)
        asked = [self.key(f"gone:{owner}") for p in ids for owner in (p, account_of(p))]
        marks = await self.redis.mget(asked) if ids else []
        return {p for n, p in enumerate(ids) if marks[2 * n] or marks[2 * n + 1]}

    async def recent_alerts(self, most: int = 200, before: float | None = None) -> list[Alert]:
        """The newest alerts, newest first; withdrawn ones included."""
        high = "+inf" if before is None else f"({before}"
        return await self._alerts(await self.redis.zrevrangebyscore(self.key("alerts"), high, "-inf", start=0, num=most))

    async def put_clusters(self, events: Sequence[ClusterEvent], most: int = 2000) -> None:
        """Keep the newest state of each cluster; merged and expired ones leave the view."""
        if not events:
            return
        flat = [
            x for e in events
            for x in (e.cluster_id, e.version, e.last_at, _json(e), "gone" if e.event in ("merge", "expire") else "")
        ]  # fmt: skip
        await self._put_clusters(args=[self.prefix, most, *flat])

    async def clusters(self, most: int = 500) -> list[ClusterEvent]:
        """Clusters with the newest posts, newest first."""
        ids = await self.redis.zrevrange(self.key("clusters"), 0, most - 1)
        return [_cluster(c) for c in await self.redis.hmget(self.key("cluster"), ids) if c] if ids else []

    async def add_latencies(self, latencies_ms: Sequence[float]) -> None:
        """Remember end-to-end latencies (posts.raw to alert), the newest 500."""
        if latencies_ms:
            pipe = self.redis.pipeline(transaction=False)
            pipe.lpush(self.key("latency"), *(round(x, 1) for x in latencies_ms))
            pipe.ltrim(self.key("latency"), 0, 499)
            await pipe.execute()

    async def latencies_ms(self) -> list[float]:
        """The newest end-to-end latencies, milliseconds."""
        return [float(x) for x in await self.redis.lrange(self.key("latency"), 0, -1)]

    async def put_worker(self, name: str, status: Mapping[str, object]) -> None:
        """A worker's word about itself; read with its own `at` to tell the living from the dead."""
        await self.redis.hset(self.key("workers"), name, _json(status))

    async def workers(self) -> dict[str, dict]:
        """What each worker said last."""
        found = await self.redis.hgetall(self.key("workers"))
        return {k.decode(): msgspec.json.decode(v) for k, v in found.items()}

    async def save_snapshot(self, snapshot: bytes) -> None:
        """Keep the clusterer's state (atomic: one SET)."""
        await self.redis.set(self.key("snapshot"), snapshot)

    async def load_snapshot(self) -> bytes | None:
        """The clusterer's last saved state."""
        return await self.redis.get(self.key("snapshot"))

    async def put_proposals(self, proposals: Sequence[MergeProposal]) -> None:
        """Keep the newest audit's proposals."""
        await self.redis.set(self.key("proposals"), _json(proposals))

    async def proposals(self) -> list[MergeProposal]:
        """Clusters the last audit would merge, most similar first."""
        found = await self.redis.get(self.key("proposals"))
        return msgspec.json.decode(found, type=list[MergeProposal]) if found else []

    async def clear(self) -> int:
        """Forget everything under the prefix (`crisis topics --reset-view`); returns the number of keys removed."""
        removed = 0
        async for key in self.redis.scan_iter(match=f"{self.prefix}*", count=1000):
            removed += await self.redis.delete(key)
        return removed
