"""Bars that follow the stream: the probability from which a query alerts, for an hourly budget or a target precision.

    alerts per hour    a limit: the bar lies where the last hour's readings of the query would have given that many
                       alerts, and never below the query's own. Once they are given, only what is likelier than all of
                       them alerts: a flood does not spend the budget many times over, and the clearest call still
                       comes through. What is held back is a suggestion, and counted. No budget holds back what reads
                       as urgent: who sets one on a quiet day does not mean the people on the roofs.
    target precision   the bar lies where the mean probability of what lies above it is the target: with calibrated
                       probabilities that is the share of alerts that are right. Of one query, or of all without a bar
                       of their own together.

What is held against a bar is a reading's standing: its score with a learnt head, as `match.alert_probability` is, and
its probability without one. The suggestion probability lies below every bar. The clock is the posts' `seen_at`.
What is remembered is bounded, and begins anew when a worker starts: a budget then counts its first ten minutes as ten
minutes of an hour, a target precision asks its own probability of every post until `FEW` readings were seen.

Measured: without that floor a budget of 10 an hour gave need.medical_help 190 alerts, .22 of them right, of 3,500
disaster messages in 48 hours; it alone 89, .35 right. Of 141 calls for rescue that alert among 3,860 written posts, a
budget of 5 an hour in a burst let 16 through, 134 with what is urgent beside it; 653 alerts of 4,059 of 7,150 disaster
messages are urgent, .67 of them right, of the others .42.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from models.matching import MatchConfig, Matcher
from models.records import Match, Post, is_notice

__all__ = ["Bars", "held_back"]

HOUR_S = 3600.0
LEAST_S, MOST_S = 600.0, 86_400.0  # what a budget is judged over: a small one over longer, until it is one alert
KEPT = 4096  # readings remembered of one query; beyond, the least likely go
FEW = 50  # readings below which a mean says little
OTHERS = "others"  # the bar of all queries without one of their own, as a metric's label


class Seen(NamedTuple):
    """One reading: when its post was seen, what is held against the bar, how likely it is right, what became of it."""

    at: float
    standing: float
    probability: float
    given: bool = False  # it alerted
    held: bool = False  # a budget alone kept it from alerting


class Recent:
    """The readings of one query that were seen lately, by post id; standings in order, rising."""

    def __init__(self) -> None:
        self.begun: float | None = None
        self.now = 0.0
        self.readings: dict[str, Seen] = {}
        self.standings: list[float] = []
        self.given: list[float] = []  # the standings of those that alerted
        self.held: deque[float] = deque(maxlen=KEPT)  # when those were seen that a budget held back

    def add(self, post_id: str, seen: Seen) -> None:
        """Note a reading; one seen before is not counted twice."""
        self.begun = seen.at if self.begun is None else min(self.begun, seen.at)
        self.now = max(self.now, seen.at)
        known = self._drop(post_id)
        self._keep(post_id, seen if known is None else seen._replace(given=known.given, held=known.held))
        if len(self.readings) > 2 * KEPT:
            best = sorted(self.readings.items(), key=lambda item: (-item[1].given, -item[1].standing))[:KEPT]
            self.readings, self.standings, self.given = {}, [], []
            for kept, one in sorted(best, key=lambda item: item[1].at):
                self._keep(kept, one)

    def forget(self, older_than_s: float) -> None:
        """Let go of what was seen before. (They lie in the order they came, nearly that of their times.)"""
        while self.readings:
            post_id, seen = next(iter(self.readings.items()))
            if seen.at > self.now - older_than_s:
                break
            self._drop(post_id)

    def give(self, post_id: str) -> None:
        """It alerted."""
        seen = self.readings[post_id]
        if not seen.given:
            self.readings[post_id] = seen._replace(given=True)
            insort(self.given, seen.standing)

    def hold(self, post_id: str) -> None:
        """A budget held it back."""
        seen = self.readings[post_id]
        if not seen.held:
            self.readings[post_id] = seen._replace(held=True)
            self.held.append(seen.at)

    def held_since(self, at: float) -> int:
        """How many were held back since then; those before are forgotten."""
        while self.held and self.held[0] <= at:
            self.held.popleft()
        return len(self.held)

    def _keep(self, post_id: str, seen: Seen) -> None:
        self.readings[post_id] = seen
        insort(self.standings, seen.standing)
        if seen.given:
            insort(self.given, seen.standing)

    def _drop(self, post_id: str) -> Seen | None:
        seen = self.readings.pop(post_id, None)
        if seen is not None:
            del self.standings[bisect_left(self.standings, seen.standing)]
            if seen.given:
                del self.given[bisect_left(self.given, seen.standing)]
        return seen


def held_back(match: Match, matcher: Matcher) -> bool:
    """Did only its query's budget keep this reading from alerting?"""
    if match.level == "alert" or match.query_id not in matcher.budgets:
        return False
    return matcher.standing(match) >= matcher.own_bar(matcher.place[match.query_id])


def budget_bar(recent: Recent, per_hour: float) -> float:
    """The probability from which `per_hour` alerts an hour are given, as of `recent.now`; 0 = all may alert."""
    window_s = min(max(HOUR_S, HOUR_S / per_hour), MOST_S)
    recent.forget(window_s)
    passed_s = min(max(recent.now - (recent.begun or 0.0), LEAST_S), window_s)
    most = max(1, int(per_hour * passed_s / HOUR_S + 0.5))
    if len(recent.given) >= most:
        return float(np.nextafter(recent.given[-1], 2.0))
    return recent.standings[-most] if len(recent.standings) >= most else 0.0


def precision_bar(recent: Recent, target: float) -> float:
    """The lowest standing from which on the mean probability is `target` or more; the target itself where none is."""
    recent.forget(MOST_S)
    found = sorted(recent.readings.values(), key=lambda seen: -seen.standing)
    if len(found) < FEW:
        return target
    means = np.cumsum([seen.probability for seen in found]) / np.arange(1, len(found) + 1)
    standings = np.array([seen.standing for seen in found])
    whole = np.append(standings[:-1] > standings[1:], True)  # a bar takes all that stand alike, or none
    reached = np.flatnonzero((means >= target) & whole)
    return float(standings[reached[-1]]) if len(reached) else target


class Bars:
    """The live bars of one worker. partitions: of posts.raw; a worker that reads a part of them has that part of every
    budget. Not thread-safe."""

    def __init__(self, config: MatchConfig, partitions: int = 1) -> None:
        self._config, self._partitions = config, partitions
        self._recent: dict[str, Recent] = {}
        self._seen: dict[int, float] = {}  # raw partition → when it was last heard of
        self.now: dict[str, float] = {}  # query id, or OTHERS → its bar at this moment
        self.held: dict[str, int] = {}  # query id → how many its budget held back in the last hour, where it did

    def apply(
        self, found: Sequence[Match], posts: Sequence[Post], matcher: Matcher, partition: int = 0, learn: bool = True
    ) -> list[Match]:
        """The matches with their levels by the bars of this moment, each post's alerts first.

        learn: let these posts move the bars; False where they are only looked at, in a trial.
        """
        budgets, targets = matcher.budgets, dict(matcher.targets)
        common = frozenset() if self._config.target_precision is None else matcher.followers
        if common:
            targets[OTHERS] = self._target
        if not (budgets or targets):
            if learn:
                self._recent, self.now, self.held = {}, {}, {}
            return list(found)
        seen_at = {post.id: post.seen_at for post in posts}
        if learn:
            self._learn(found, seen_at, matcher, budgets, targets, common, partition)
            self._recent = {name: r for name, r in self._recent.items() if name in budgets or name in targets}
            self.now = {name: bar for name, bar in self.now.items() if name in self._recent}
        settled = []
        for match in found:
            name = OTHERS if match.query_id in common else match.query_id
            if name in budgets or name in targets:
                bar = self._bar(match, name, matcher, learn)
                match = self._levelled(match, name, bar, matcher, learn)
            settled.append(match)
        if learn:
            hour_ago = max(self._seen.values(), default=0.0) - HOUR_S
            held = {name: recent.held_since(hour_ago) for name, recent in self._recent.items()}
            self.held = {name: n for name, n in held.items() if n}
        if not self._config.suggestions:
            settled = [m for m in settled if m.level == "alert" or held_back(m, matcher)]
        return _alerts_first(settled)

    def held_at(self, now: float) -> dict[str, int]:
        """`held` of this moment, epoch seconds: an hour after the last post nothing is. From any thread."""
        newest = max(tuple(self._seen.values()), default=0.0)
        return self.held if now - newest < HOUR_S else {}

    def _learn(
        self,
        found: Sequence[Match],
        seen_at: Mapping[str, float],
        matcher: Matcher,
        budgets: Mapping[str, float],
        targets: Mapping[str, float],
        common: frozenset[str],
        partition: int,
    ) -> None:
        first: set[str] = set()
        for match in found:
            seen = Seen(seen_at[match.post_id], matcher.standing(match), match.probability or 0.0)
            if match.query_id in budgets or match.query_id in targets:
                self._recent.setdefault(match.query_id, Recent()).add(match.post_id, seen)
            elif match.query_id in common and match.post_id not in first:  # a post has one alert
                first.add(match.post_id)
                self._recent.setdefault(OTHERS, Recent()).add(match.post_id, seen)
        if seen_at:
            self._seen[partition] = max(seen_at.values())
            newest = max(self._seen.values())
            self._seen = {p: at for p, at in self._seen.items() if at > newest - HOUR_S}
        for name in {match.query_id for match in found} & targets.keys() | ({OTHERS} & targets.keys()):
            self.now[name] = self._floor(precision_bar(self._recent.get(name, Recent()), targets[name]))

    @property
    def _target(self) -> float:
        return self._config.target_precision or 1.0

    def _floor(self, bar: float) -> float:
        return max(bar, self._config.suggestion_probability)

    def _bar(self, match: Match, name: str, matcher: Matcher, learn: bool) -> float:
        """The standing from which this reading alerts, as of now."""
        per_hour, recent = matcher.budgets.get(name), self._recent.get(name)
        if per_hour is None:
            return self.now.get(name, matcher.targets.get(name, self._target))
        own = matcher.own_bar(matcher.place[name])
        known = recent.readings.get(match.post_id) if recent is not None else None
        if known is not None and known.given:  # a frame has come once more
            return own
        if recent is not None and learn:
            share = len(self._seen) / self._partitions if self._partitions > len(self._seen) else 1.0
            self.now[name] = max(own, budget_bar(recent, max(per_hour * share, 1e-3)))
        return own if match.priority == "urgent" else max(own, self.now.get(name, own))

    def _levelled(self, match: Match, name: str, bar: float, matcher: Matcher, learn: bool) -> Match:
        alerts = matcher.standing(match) >= bar
        match = msgspec.structs.replace(
            match,
            level="alert" if alerts else "suggestion",
            threshold=round(matcher.score_at(matcher.place[match.query_id], bar), 4),
        )
        recent = self._recent.get(name)
        if learn and recent is not None and match.post_id in recent.readings:
            if alerts:
                recent.give(match.post_id)
            elif held_back(match, matcher):
                recent.hold(match.post_id)
        return match


def _alerts_first(matches: Sequence[Match]) -> list[Match]:
    """The same, of each post the alerts before the suggestions and notices last among each, posts in their order."""
    order = {post_id: n for n, post_id in enumerate(dict.fromkeys(m.post_id for m in matches))}
    return sorted(matches, key=lambda m: (order[m.post_id], m.level != "alert", is_notice(m.query_id)))
