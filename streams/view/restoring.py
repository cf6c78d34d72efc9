"""Putting alerts and clusters that the broker still holds into a view that lost them, while workers write to it.

Nothing that was deleted comes back with them. What was deleted before Redis lost it says so on the broker. Of what was
deleted since, the matcher found no alert to withdraw, but has left its mark: `alerts` gives the withdrawals that are
due. Only a post that was deleted between two losses, with nothing restored in between, or in the moment of one, is in
neither.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Self

from models.records import Alert, ClusterEvent
from streams.config import Settings
from streams.pipeline.stages import taken_back
from streams.view.live import LiveView

__all__ = ["Restoring", "lacks"]

PARTS = "snapshot-parts"  # snapshots.py
CLUSTER = b"cluster/"  # how models/clusters/saving.py names a cluster's part


class Restoring:
    """Puts states, some at a time, each with when it was written (epoch seconds).

    What would have expired is left out, and what is put expires when it would have. living: the clusters that somebody
    goes on with. None: it is not known, so all are put.
    """

    def __init__(self, view: LiveView, settings: Settings, living: Collection[str] | None) -> None:
        self._view, self._living = view, living
        self._kept_s = settings.topics.retention_h * 3600

    @classmethod
    async def into(cls, view: LiveView, settings: Settings) -> Self:
        """By the clusterer's saved state, which names them. Where it has lost that too, and saved none since, it may
        still hold it all; where another clusterer has begun with nothing, it holds none."""
        names = await view.redis.hkeys(view.key(PARTS))
        living = {name.removeprefix(CLUSTER).decode() for name in names if name.startswith(CLUSTER)}
        return cls(view, settings, living if names else None)

    async def alerts(self, written: Iterable[tuple[Alert, float]]) -> tuple[list[Alert], list[Alert]]:
        """Those that the view did not have, or not as new; and the withdrawals of those whose posts were deleted
        since: they are to be sent, and kept.
        """
        now, view = await self._view.now(), self._view
        until = {alert.alert_id: at + self._kept_s for alert, at in written if at + self._kept_s > now}
        alerts = [alert for alert, _ in written if alert.alert_id in until]
        # Who sends such a post again, or reads it late, is to find it gone, as before.
        await view.mark_gone([alert.post.id for alert in alerts if alert.withdrawn_because == "deleted"])
        posts = {alert.post.id for alert in alerts}
        gone = await view.gone(posts)
        put = await view.put_alerts([a for a in alerts if a.status != "active" or a.post.id not in gone])
        pipe = view.redis.pipeline(transaction=False)
        for alert in put:
            pipe.expireat(view.key(f"alert:{alert.alert_id}"), int(until[alert.alert_id]), lt=True)
        await pipe.execute()
        # Asked anew: who deletes leaves his mark first, then looks for alerts (streams/pipeline/stages/alerting.py).
        return put, taken_back(alerts, await view.gone(posts))

    async def clusters(self, written: Iterable[tuple[ClusterEvent, float]]) -> tuple[list[ClusterEvent], int]:
        """Those that the view did not have, or not as new; and how many are left out: nobody goes on with them, so
        they would stay as they are, and whole, whoever deletes what they show."""
        now, view = await self._view.now(), self._view
        events = [event for event, at in written if at + self._kept_s > now]
        gone = await view.gone({post for event in events for post in _shown(event)})
        kept = [event for event in events if self._lives(event) and gone.isdisjoint(_shown(event))]
        known = await view.redis.hmget(view.key("cluster-ver"), [e.cluster_id for e in kept]) if kept else []
        put = [e for e, version in zip(kept, known, strict=True) if version is None or int(version) < e.version]
        await view.put_clusters(put)
        return put, len(events) - len(kept)

    def _lives(self, event: ClusterEvent) -> bool:
        return self._living is None or event.cluster_id in self._living or event.event in ("merge", "expire")


def _shown(event: ClusterEvent) -> list[str]:
    return [example.post_id for example in (event.medoid, *event.examples) if example is not None]


async def lacks(view: LiveView, alert_ids: Sequence[str]) -> bool:
    """Does it not hold all of these?"""
    keys = [view.key(f"alert:{alert_id}") for alert_id in alert_ids]
    return bool(keys) and await view.redis.exists(*keys) < len(set(keys))
