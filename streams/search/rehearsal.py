"""What a query would have alerted, before it is saved: for the page and for `crisis query test --replay`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from models.bars import Bars
from models.encoders.ready import Ready
from models.queries import Query
from models.records import EmbeddedFrame, Match, Post
from streams.pipeline import stages
from streams.pipeline.frames import unpack_vectors

__all__ = ["HOUR_S", "Rehearsal", "rehearse"]

HOUR_S = 3600.0
LEAST_S = 60.0  # so many posts in a moment say nothing of an hour


@dataclass
class Rehearsal:
    """What one query made of the posts."""

    from_file: bool = False
    moments: list[float] = field(default_factory=list)  # of each post
    sources: Counter[str] = field(default_factory=Counter)  # posts of each
    alerts: list[tuple[Post, Match]] = field(default_factory=list)
    suggestions: int = 0
    already: int = 0  # of the alerts: posts that alert without this query too
    by_hour: Counter[int] = field(default_factory=Counter)  # alerts by hour since the epoch
    cpu_s: float = 0.0  # of scoring this query alone

    @property
    def posts(self) -> int:
        return len(self.moments)

    @property
    def hours(self) -> float:
        """How long the posts span, at least a minute.

        A file has nothing but created_at: what lies far from the middle half of its posts (Tukey 1977: three times its
        width beyond it; at least three hours) does not count. One post of last year would make an hour cost nothing.
        """
        if not self.moments:
            return 0.0
        at = np.array(self.moments)
        if self.from_file:
            low, high = np.quantile(at, (0.25, 0.75))
            reach = 3 * max(high - low, HOUR_S)
            at = at[(at >= low - reach) & (at <= high + reach)]
        return max(float(np.ptp(at)), LEAST_S) / HOUR_S

    def an_hour(self, count: float) -> float:
        """So much in an hour, if the stream goes on as in these posts."""
        return count / self.hours if self.moments else 0.0

    def unheard(self, query: Query) -> str:
        """Which sources the query asks for that no post has, in a sentence; empty where there is none."""
        asked = query.where.sources if query.where else []
        missing = [source for source in asked if source not in self.sources]
        if not missing or not self.sources:
            return ""
        there = ", ".join(source for source, _ in self.sources.most_common(8))
        return f"None of these posts came from {', '.join(missing)}; they came from {there}."


def rehearse(
    frames: Iterable[EmbeddedFrame], ready: Ready, query_id: str, bars: Bars, from_file: bool = False
) -> Rehearsal:
    """Match the frames with the queries of `ready`, and note what the one named gives. Pure but for the stop-watch."""
    done, matcher = Rehearsal(from_file), ready.matcher
    index = np.array([i for i, q in enumerate(matcher.queries) if q.id == query_id], np.int64)
    for frame in frames:
        posts = {post.id: post for post in frame.posts}
        matched = stages.match(frame, matcher, bars)
        begun = time.thread_time()
        matcher.directed(unpack_vectors(frame), index)
        done.cpu_s += time.thread_time() - begun
        alerting = {m.post_id for m in matched.matches if m.level == "alert" and m.query_id != query_id}
        for match in matched.matches:
            if match.query_id == query_id and match.level == "alert":
                post = posts[match.post_id]
                done.alerts.append((post, match))
                done.already += match.post_id in alerting
                done.by_hour[int(_moment(post) // HOUR_S)] += 1
            done.suggestions += match.query_id == query_id and match.level == "suggestion"
        done.moments += map(_moment, posts.values())
        done.sources.update(post.source for post in posts.values())
    return done


def _moment(post: Post) -> float:
    """When it was posted; not after it was seen, whatever its author says."""
    return min(post.created_at, post.seen_at)
