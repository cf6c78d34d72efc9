"""What the page shows, in memory: the newest alerts and clusters, counted and filtered. Pure: no clock, no I/O."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import cast

import msgspec
from msgspec import Struct

from models.clusters.config import ClusterConfig
from models.feedback.records import Label
from models.records import AID, Alert, ClusterEvent, Kind, is_notice
from streams.dashboard.crowds import Copies, Crowds, crowds_of_page, whose
from streams.outputs.printable import web_link

__all__ = ["AlertPage", "Board", "Category", "Filter", "OpenCount", "fitting", "kinds_beside", "spread"]

MATCHES_KEPT = 6  # of a post (the page unfolds from three): a text made of query sentences matches 25 queries
SEARCHED_CHARS, MOST_WORDS = 2_000, 8  # of a text, and of what is searched for in it
CROWD_SHARE, CROWD_LEAST = 0.2, 5  # of a page's places, for one cluster, text or account; never fewer than so many
BURST = ClusterConfig().burst_levels[0]  # deviations from which growth is told as a burst; the same in clusters.js


class Filter(Struct, frozen=True, omit_defaults=True):
    """What a viewer asked for; "" = all. It is the query string of the page's address."""

    kind: str = ""
    category: str = ""
    level: str = ""
    lang: str = ""
    source: str = ""
    cluster: str = ""
    priority: str = ""
    q: str = ""  # words that must occur in the text, case ignored

    @classmethod
    def of(cls, params: Mapping[str, str]) -> Filter:
        """From query parameters; others are ignored, long ones cut."""
        return cls(**{f: params[f].strip()[:200] for f in cls.__struct_fields__ if f in params})

    def accepts(self, alert: Alert, folded: str | None = None) -> bool:
        """Is it an active alert that fits? Where a category is asked for, it may be what the post says beside what it
        is alerted for. folded: `folded_text` of its post, where it is known already.
        """
        post, reading = alert.post, (self.kind, self.category, self.level)
        return (
            alert.status == "active"
            and _fits(
                (self.lang, self.source, self.cluster, self.priority),
                (post.lang, post.source, alert.cluster_id, alert.priority),
            )
            and (
                _fits(reading, (alert.kind, alert.category, alert.level))
                or (self.category != "" and any(_fits(reading, one) for one in _beside(alert)))
            )
            and (not self.q or _holds(folded_text(alert.post.text) if folded is None else folded, _words(self.q)))
        )


def _fits(wanted: Iterable[str], found: Iterable[str | None]) -> bool:
    return all(not w or w == f for w, f in zip(wanted, found, strict=True))


def _beside(alert: Alert) -> Iterator[tuple[Kind, str, str]]:
    """(kind, category, level) of what its post says beside what it is alerted for."""
    for other in alert.also:
        kind, _, category = other.query_id.partition(".")
        yield cast(Kind, kind), category, other.level


Kept = tuple[Alert, str, int]  # an alert, the folded text of its post, its rank


def fitting(kept: Sequence[Kept], wanted: Filter) -> list[Kept]:
    """Those that fit, in their order. Reads all their texts where words are asked for: in a thread of its own."""
    return [one for one in kept if wanted.accepts(one[0], one[1])]


def spread(newest_first: Iterable[Kept], most: int, of_a_crowd: int) -> tuple[list[Kept], list[Kept]]:
    """(at most `most`, newest first; those newer than the last of them that gave way). Nobody gives way to nobody: with
    room for all, all are there."""
    chosen: list[Kept] = []
    left: list[Kept] = []
    seen: Counter[str] = Counter()
    for one in newest_first:
        if len(chosen) == most:
            break
        crowds = crowds_of_page(one[0])
        if any(seen[crowd] >= of_a_crowd for crowd in crowds):
            left.append(one)
            continue
        seen.update(crowds)
        chosen.append(one)
    free = most - len(chosen)
    return sorted(chosen + left[:free], key=lambda one: -one[2]), left[free:]


def fold(text: str) -> str:
    """Text for comparing: compatibility forms and case do not matter."""
    return unicodedata.normalize("NFKC", text).casefold()


def folded_text(text: str) -> str:
    """What a search for words looks at. Folding may unfold one character to 18: made once for an alert, and bounded."""
    return fold(text[:SEARCHED_CHARS])[: 2 * SEARCHED_CHARS]


@lru_cache(maxsize=256)
def _words(q: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(fold(q).split()))[:MOST_WORDS]


def _holds(folded: str, words: tuple[str, ...]) -> bool:
    return all(word in folded for word in words)


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
    """Answer of /api/alerts. `event_id`: where to go on in /events. `total`: all that fit, of those kept."""

    alerts: list[Shown]
    total: int
    event_id: str


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


class Board:
    """The newest `most` alerts and clusters. Feeding it the same thing twice, or old things late, changes nothing.

    Of a post the surest MATCHES_KEPT are kept; where alerts must go, the biggest crowd gives way (`Crowds`).
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

    def put_alert(self, alert: Alert) -> bool:
        """Take an alert; False if this or a newer revision is here already, or there is no room for it."""
        known = self._alerts.get(alert.alert_id)
        if known is not None and known.revision >= alert.revision:
            return False
        if known is None:
            self._rank += 1
            self._ranks[alert.alert_id] = self._rank
        if known is not None:
            self._crowds.remove(known)
            self._copies.remove(known, self._folded[alert.alert_id])
        else:
            self._of_post.setdefault(alert.post.id, []).append(alert.alert_id)
        self._alerts[alert.alert_id] = alert
        self._folded[alert.alert_id] = folded_text(alert.post.text)
        self._crowds.add(alert)
        self._copies.add(alert, self._folded[alert.alert_id])
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
        self._copies.remove(alert, self._folded[alert_id])
        del self._ranks[alert_id], self._folded[alert_id]
        self._crowds.remove(alert)
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
        for kept, most in ((self.clusters, self._most_clusters), (self._versions, 4 * self._most_clusters)):
            while len(kept) > most:
                del kept[next(iter(kept))]
        return True

    def shown(self, alert: Alert, wanted: Filter | None = None) -> Shown:
        """The alert as the page gets it: only web links, no author, and nothing of a post that was deleted or edited
        away."""
        post = msgspec.structs.replace(alert.post, url=web_link(alert.post.url), author=None)
        if alert.status == "withdrawn":
            post = msgspec.structs.replace(post, text="", url=None, geo=None, places=[])
        here = self._folded.get(alert.alert_id)
        return Shown(
            msgspec.structs.replace(alert, post=post),
            self._ranks.get(alert.alert_id, 0),
            self.repeats.get(alert.post.id, 0),
            0 if here is None else self._crowds.gave_way(alert),
            0 if here is None or alert.status == "withdrawn" else self._copies.of(alert, here),
            "" if alert.status == "withdrawn" else whose(alert, self._key),
            wanted is None or wanted.accepts(alert, here),
        )

    def find(self, wanted: Filter, most: int, before: int | None = None) -> tuple[list[Shown], int]:
        """(the newest that fit, newest first; how many fit in all). `before`: only ranks below it."""
        return self.page(fitting(self.kept(), wanted), most, before)

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

    def open_counts(self, labels: Mapping[str, Label] | None = None) -> dict[str, OpenCount]:
        """Open alerts and suggestions by query id. labels: by post and query; what somebody said is not so counts no
        more, or as what it is instead, and what somebody takes care of is not open.
        """
        said = labels or {}
        counts: dict[str, list[int]] = {}

        def called(post_id: str, query_id: str) -> str:
            label = said.get(f"{post_id} {query_id}")
            return query_id if label is None or label.verdict == "right" else label.instead

        for alert in self.open_alerts():
            if (label := said.get(f"{alert.post.id} {alert.query_id}")) and label.verdict == "handled":
                continue
            query = called(alert.post.id, alert.query_id)
            if query:
                counts.setdefault(query, [0, 0, 0])[alert.level == "suggestion"] += 1
            beside = {called(alert.post.id, other.query_id) for other in alert.also}
            for other in beside - {query, ""}:
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
            for kind, category, _ in _beside(a):
                if category not in listed:
                    kinds = kinds_beside(f"{kind}.{category}", kind)
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
