"""What the page shows, in memory: the newest alerts and clusters, counted and filtered. Pure: no clock, no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import msgspec
from msgspec import Struct

from models.clusters.config import ClusterConfig
from models.records import AID, Alert, ClusterEvent, Kind, is_notice
from streams.dashboard.crowds import Copies, Crowds, crowds_of_page, whose
from streams.dashboard.filters import Filter, folded_text
from streams.dashboard.merged import Merged
from streams.dashboard.readings import Said, readings
from streams.dashboard.spread import Kept, spread
from streams.outputs.printable import web_link

__all__ = ["AlertPage", "Board", "Category", "Kept", "OpenCount", "fitting", "kinds_beside", "without_author"]

MATCHES_KEPT = 6  # of a post (the page unfolds from three): a text made of query sentences matches 25 queries
CROWD_SHARE, CROWD_LEAST = 0.2, 5  # of a page's places, for one cluster, text or account; never fewer than so many
BURST = ClusterConfig().burst_levels[0]  # deviations from which growth is told as a burst; the same in clusters.js


def fitting(kept: Sequence[Kept], wanted: Filter, said: Said | None = None) -> tuple[list[Kept], int]:
    """(those that fit, in their order; how many of them stand, after all that people said). Reads all their texts where
    words are asked for: in a thread of its own."""
    found = [one for one in kept if wanted.accepts(one[0], one[1], said)]
    return found, sum(wanted.stands(alert, said or {}) for alert, _, _ in found)


class Shown(Struct, frozen=True, omit_defaults=True):
    """An alert on the page. `rank` grows with every new alert and orders them; it means nothing after a restart."""

    alert: Alert
    rank: int
    repeats: int = 0
    like: int = 0  # alerts of the same cluster or account that gave way: counted, not shown
    copies: int = 0  # accounts that said the same words seconds apart (`Copies`); 0: no sign of that
    author: str = ""  # whose post it is (`whose`): equal for posts of one author; "" of one that is gone
    fits: bool = True  # does it fit the viewer's filter? One that no longer does is told once, to change its card


class AlertPage(Struct, frozen=True):
    """Answer of /api/alerts. `event_id`: where to go on in /events. `total`: all that fit, of those kept; `standing`:
    of these, all but what somebody said is not so or is handled. `clusters`: of its alerts (`Board.named`)."""

    alerts: list[Shown]
    total: int
    event_id: str
    standing: int
    clusters: list[ClusterEvent] = []


class OpenCount(Struct, frozen=True, omit_defaults=True):
    """Open (active) alerts of one query, of those kept. also: those of others whose post says this beside it."""

    alert: int = 0
    suggestion: int = 0
    also: int = 0


class Category(Struct, frozen=True):
    """A category as the page lists it."""

    category: str
    label: str
    iasc: str
    kinds: tuple[Kind, ...] = AID  # a notice's category has one of its own


def kinds_beside(query_id: str, kind: Kind) -> tuple[Kind, ...]:
    """The kinds that a category has, by one of its queries: a need may be offered too, a notice stands alone."""
    return (kind,) if is_notice(query_id) else AID


def without_author(alert: Alert) -> Alert:
    """The alert as anybody gets it: only web links, no author."""
    post = msgspec.structs.replace(alert.post, url=web_link(alert.post.url), author=None)
    return msgspec.structs.replace(alert, post=post)


class Board:
    """The newest `most` alerts and clusters. Feeding it the same thing twice, or old things late, changes nothing.

    Of a post the surest MATCHES_KEPT are kept; where alerts must go, the biggest crowd gives way (`Crowds`). An alert
    names the cluster that its post is in now: nobody tells it anew where two are merged.
    """

    def __init__(self, most_alerts: int = 2000, most_clusters: int = 2000, key: bytes = b"") -> None:
        self._key = key  # of the names that authors go by on the page
        self._most_alerts, self._most_clusters = most_alerts, most_clusters
        self._alerts: dict[str, Alert] = {}
        self._folded: dict[str, str] = {}
        self._crowds, self._copies = Crowds(), Copies()
        self._of_post: dict[str, list[str]] = {}
        self._ranks: dict[str, int] = {}
        self._rank = 0
        self.repeats: dict[str, int] = {}  # post id → how often it was repeated
        self.clusters: dict[str, ClusterEvent] = {}
        self._versions: dict[str, int] = {}  # of clusters, gone ones too: a late event must not bring one back
        self._merged = Merged(4 * most_clusters)

    def put_alert(self, alert: Alert) -> bool:
        """Take an alert; False if this or a newer revision is here already, or there is no room for it."""
        known = self._alerts.get(alert.alert_id)
        if known is not None and known.revision >= alert.revision:
            return False
        alert = self._in_cluster(alert)
        if known is None:
            self._rank += 1
            self._ranks[alert.alert_id] = self._rank
        rank = self._ranks[alert.alert_id]
        if known is not None:
            self._crowds.remove(known, rank)
        else:
            self._of_post.setdefault(alert.post.id, []).append(alert.alert_id)
        before = self._folded.get(alert.alert_id, "")
        self._alerts[alert.alert_id] = alert
        self._folded[alert.alert_id] = folded_text(alert.post.text)
        self._crowds.add(alert, rank)
        self._copies.add(alert, self._folded[alert.alert_id])
        if known is not None:  # after: who still says the same keeps the mark of those who gave way
            self._copies.remove(known, before)
        mine = self._of_post[alert.post.id]
        if len(mine) > MATCHES_KEPT:
            self._drop(min(mine, key=self._sureness))
        while len(self._alerts) > self._most_alerts:
            self._drop(self._crowds.next_to_go())
        return alert.alert_id in self._alerts

    def _sureness(self, alert_id: str) -> tuple[bool, bool, float, str]:
        alert = self._alerts[alert_id]
        return alert.status == "active", alert.level == "alert", alert.score - alert.threshold, alert_id

    def _drop(self, alert_id: str) -> None:
        alert = self._alerts.pop(alert_id)
        self._copies.give_way(alert, self._folded[alert_id])
        self._crowds.remove(alert, self._ranks.pop(alert_id))
        del self._folded[alert_id]
        left = self._of_post[alert.post.id]
        left.remove(alert_id)
        if not left:
            del self._of_post[alert.post.id]
            self.repeats.pop(alert.post.id, None)

    def put_cluster(self, event: ClusterEvent) -> bool:
        """Take a cluster event; False if this or a newer version is here already."""
        if self._versions.get(event.cluster_id, -1) >= event.version:
            return False
        self._versions.pop(event.cluster_id, None)
        self._versions[event.cluster_id] = event.version
        self.clusters.pop(event.cluster_id, None)
        if event.event not in ("merge", "expire"):
            self.clusters[event.cluster_id] = event
        if event.event == "merge" and event.into:
            self.merge(event.cluster_id, event.into)
        for kept, most in ((self.clusters, self._most_clusters), (self._versions, 4 * self._most_clusters)):
            while len(kept) > most:
                del kept[next(iter(kept))]
        return True

    def merge(self, gone: str, into: str) -> None:
        """The posts of a cluster are in another one from here on; told in any order."""
        into = self._merged.put(gone, into)
        for alert_id in self._crowds.merge(gone, into):
            self._alerts[alert_id] = msgspec.structs.replace(self._alerts[alert_id], cluster_id=into)

    def _in_cluster(self, alert: Alert) -> Alert:
        """The alert in the cluster that lives on of those its own was merged into."""
        now = alert.cluster_id and self._merged.find(alert.cluster_id)
        return alert if now == alert.cluster_id else msgspec.structs.replace(alert, cluster_id=now)

    def asked(self, wanted: Filter) -> Filter:
        """What is wanted, where its cluster was merged: who looks at that looks at the one that lives on."""
        now = self._merged.find(wanted.cluster)
        return wanted if now == wanted.cluster else msgspec.structs.replace(wanted, cluster=now)

    def named(self, shown: Iterable[Shown], whole: str = "") -> list[ClusterEvent]:
        """The clusters that these alerts are in, without what only a list of clusters shows, but for one: `whole`."""
        here = dict.fromkeys(one.alert.cluster_id or "" for one in shown) | {whole: None}
        found = (self.clusters[cluster] for cluster in here if cluster in self.clusters)
        return [c if c.cluster_id == whole else _name_of(c) for c in found]

    def shown(self, alert: Alert, wanted: Filter | None = None) -> Shown:
        """The alert as the page gets it: only web links, no author, and nothing of a post that was deleted or edited
        away."""
        told = without_author(alert := self._in_cluster(alert))
        if alert.status == "withdrawn":
            gone = msgspec.structs.replace(told.post, text="", url=None, geo=None, places=[])
            told = msgspec.structs.replace(told, post=gone)
        here = self._folded.get(alert.alert_id)
        return Shown(
            told,
            self._ranks.get(alert.alert_id, 0),
            self.repeats.get(alert.post.id, 0),
            0 if here is None else self._crowds.gave_way(alert),
            0 if here is None or alert.status == "withdrawn" else self._copies.of(alert, here),
            "" if alert.status == "withdrawn" else whose(alert, self._key),
            wanted is None or self.asked(wanted).accepts(alert, here),
        )

    def find(self, wanted: Filter, most: int, before: int | None = None) -> tuple[list[Shown], int]:
        """(the newest that fit, newest first; how many fit in all). `before`: only ranks below it."""
        return self.page(fitting(self.kept(), self.asked(wanted))[0], most, before)

    def kept(self) -> list[Kept]:
        """What there is now, newest first, for `fitting`."""
        return [(a, self._folded[a.alert_id], self._ranks[a.alert_id]) for a in reversed(self._alerts.values())]

    def page(self, found: Sequence[Kept], most: int, before: int | None = None) -> tuple[list[Shown], int]:
        """As `find`, of alerts that were found to fit; what has gone since is not shown.

        While others wait for a place, no cluster, text or account has more than a CROWD_SHARE of them: what a newer
        flood leaves out of this page is counted on what is shown of it, and stands under its cluster.
        """
        here = (one for one in found if (before is None or one[2] < before) and one[0].alert_id in self._alerts)
        chosen, left = spread(here, most, max(CROWD_LEAST, int(most * CROWD_SHARE)))
        beyond = Counter(crowd for alert, _, _ in left for crowd in crowds_of_page(alert))
        shown = []
        for alert, _, _ in chosen:
            one = self.shown(alert)
            like = one.like + max((beyond[crowd] for crowd in crowds_of_page(alert)), default=0)
            shown.append(msgspec.structs.replace(one, like=like) if like != one.like else one)
        return shown, len(found)

    def alert(self, alert_id: str) -> Alert | None:
        """The alert, if it is kept."""
        return self._alerts.get(alert_id)

    def open_alerts(self) -> Iterator[Alert]:
        """Active alerts, the newest first."""
        return (a for a in reversed(self._alerts.values()) if a.status == "active")

    def newest_posts(self, most: int) -> list[str]:
        """Ids of the posts of the newest active alerts, each once."""
        ids = dict.fromkeys(a.post.id for a in reversed(self._alerts.values()) if a.status == "active")
        return list(ids)[:most]

    def put_repeats(self, post_ids: Sequence[str], counts: Iterable[int]) -> dict[str, int]:
        """Note how often posts were repeated; returns those that changed."""
        told = ((p, n) for p, n in zip(post_ids, counts, strict=True) if p in self._of_post)  # some went meanwhile
        changed = {p: n for p, n in told if n != self.repeats.get(p, 0)}
        self.repeats |= changed
        return changed

    def open_counts(self, said: Said | None = None) -> dict[str, OpenCount]:
        """Open alerts and suggestions by query id, as people corrected them."""
        counts: dict[str, list[int]] = {}
        for alert in self.open_alerts():
            main, beside = readings(alert, said or {})
            if main:
                counts.setdefault(main, [0, 0, 0])[alert.level == "suggestion"] += 1
            for other in beside:
                counts.setdefault(other, [0, 0, 0])[2] += 1
        return {query: OpenCount(*each) for query, each in sorted(counts.items())}

    def categories(self, known: Iterable[Category]) -> list[Category]:
        """The known categories in their order, then those only live queries have, then those that nothing is alerted
        for: what their queries call them is not known here.
        """
        listed = {c.category: c for c in known}
        for a in self._alerts.values():
            if a.category not in listed:
                listed[a.category] = Category(a.category, a.label, a.iasc, kinds_beside(a.query_id, a.kind))
        for a in self._alerts.values():
            for other in a.also:
                kind, _, category = other.query_id.partition(".")
                if category not in listed:
                    kinds = kinds_beside(other.query_id, cast(Kind, kind))
                    listed[category] = Category(category, category.replace("_", " "), "", kinds)
        return list(listed.values())

    def growing(self, most: int) -> list[ClusterEvent]:
        """Clusters of more than one post: those in which somebody asks, offers or warns before all others, the
        strongest burst first, then the biggest. What is less than a burst is chance: three posts in quiet hours would
        stand before a hundred.
        """
        several = [c for c in self.clusters.values() if c.posts > 1]

        def place(c: ClusterEvent) -> tuple[bool, float, int, str]:
            return not c.categories, -c.burst if c.burst >= BURST else 0.0, -c.posts, c.cluster_id

        return sorted(several, key=place)[:most]


def _name_of(event: ClusterEvent) -> ClusterEvent:
    """What a card says of its cluster, and no more: with all of a hundred a page would be twice as long."""
    return msgspec.structs.replace(event, medoid=None, examples=[], burst=0.0, categories={}, languages={}, sources={})
