"""What a query would have alerted, before it is saved: for the page and for `crisis query test --replay`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from models.bars import Bars
from models.encoders.ready import Ready
from models.records import EmbeddedFrame, Match, Post
from streams.pipeline import stages
from streams.pipeline.frames import unpack_vectors

__all__ = ["HOUR_S", "Rehearsal", "rehearse"]

HOUR_S = 3600.0


@dataclass
class Rehearsal:
    """What one query made of the posts."""

    posts: int = 0
    alerts: list[tuple[Post, Match]] = field(default_factory=list)
    suggestions: int = 0
    already: int = 0  # of the alerts: posts that alert without this query too
    by_hour: Counter[int] = field(default_factory=Counter)  # alerts by hour since the epoch
    first_at: float = float("inf")
    last_at: float = float("-inf")
    cpu_s: float = 0.0  # of scoring this query alone

    @property
    def hours(self) -> float:
        """How long the posts span, at least one hour."""
        return max(self.last_at - self.first_at, HOUR_S) / HOUR_S if self.posts else 1.0


def rehearse(frames: Iterable[EmbeddedFrame], ready: Ready, query_id: str, bars: Bars) -> Rehearsal:
    """Match the frames with the queries of `ready`, and note what the one named gives. Pure but for the stop-watch."""
    done, matcher = Rehearsal(), ready.matcher
    index = np.array([i for i, q in enumerate(matcher.queries) if q.id == query_id], np.int64)
    for frame in frames:
        posts = {post.id: post for post in frame.posts}
        matched = stages.match(frame, matcher, bars)
        begun = time.thread_time()
        matcher.directed(unpack_vectors(frame), index)
        done.cpu_s += time.thread_time() - begun
        done.posts += len(posts)
        alerting = {m.post_id for m in matched.matches if m.level == "alert" and m.query_id != query_id}
        for match in matched.matches:
            if match.query_id == query_id and match.level == "alert":
                post = posts[match.post_id]
                done.alerts.append((post, match))
                done.already += match.post_id in alerting
                done.by_hour[int(_moment(post) // HOUR_S)] += 1
            done.suggestions += match.query_id == query_id and match.level == "suggestion"
        for at in map(_moment, posts.values()):
            done.first_at, done.last_at = min(done.first_at, at), max(done.last_at, at)
    return done


def _moment(post: Post) -> float:
    """When it was posted; not after it was seen, whatever its author says: one year would make an hour cost nothing."""
    return min(post.created_at, post.seen_at)
