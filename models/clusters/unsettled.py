"""Posts with alerts whose cluster was not told yet: who they are, which cluster is likely theirs, and what came of it.

A post that begins alone has its cluster once a merge joins it to others. Where posts are so few that this takes
seconds, the told cluster that a merge would join it to now is its likely one; the next merge confirms it, or it is
taken back. So is, after a crash, whatever may have been told since the state was saved.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import takewhile

from models.clustering import Clusterer
from models.records import MatchedFrame

__all__ = ["Unsettled"]

MOST = 50_000  # posts; the oldest are given up first: they stayed alone
# Seconds of the stream since the batch a post came with: before, it may have its own cluster at once, and a batch of a
# slow stream comes .45 s after another; after, it is asked about once more.
AFTER_S, UNTIL_S = 0.3, 10.0


class Unsettled:
    """Of one clusterer; ids of posts, oldest first.

    posts, guessed, fresh: as `saved` gave them. before_s: of posts seen before this moment (epoch seconds) a likely
    cluster may have been told by whoever had the state then. seen: the clusterer's posts, and those since its last
    merge, as `likely` saw them last.
    """

    def __init__(
        self,
        posts: Iterable[str] = (),
        guessed: Iterable[str] = (),
        fresh: Mapping[str, float] | None = None,
        before_s: float = -math.inf,
        seen: tuple[int, int] = (0, 0),
    ) -> None:
        self._posts = dict.fromkeys(posts)
        self._fresh = dict(fresh or {})  # those to look for a likely one of → when they came, stream time
        self._guessed = {*guessed, *self._fresh}
        self._came: set[str] = set()  # since `settled`, which follows right behind
        self._before_s = before_s
        self._seen = seen

    def saved(self) -> tuple[list[str], list[str], dict[str, float]]:
        """What to go on from."""
        return list(self._posts), sorted(self._guessed), dict(self._fresh)

    def add(self, frame: MatchedFrame, clock: float) -> None:
        """Posts of the frame that matched. clock: of the stream."""
        matched = dict.fromkeys(match.post_id for match in frame.matches)
        for post_id in matched:  # an edit is as new as any
            self._posts.pop(post_id, None)
            self._fresh.pop(post_id, None)
        self._posts |= matched
        self._came |= matched.keys()
        self._fresh |= dict.fromkeys(matched, clock)
        if frame.posts and frame.posts[0].seen_at < self._before_s:
            self._guessed |= matched.keys()
        for deletion in frame.deletions:
            self._forget(deletion.id)

    def _forget(self, post_id: str) -> None:
        self._posts.pop(post_id, None)
        self._fresh.pop(post_id, None)
        self._guessed.discard(post_id)

    def settled(self, clusterer: Clusterer) -> dict[str, str]:
        """Post → its cluster, of those whose cluster is told now. They wait no longer, nor does one that was deleted
        before it came: it is in none."""
        for post_id in self._came:
            if clusterer.arrival_of(post_id) is None:
                self._forget(post_id)
        self._came.clear()
        placed = {p: c for p in self._posts if (c := clusterer.announced_cluster_of(p)) is not None}
        for post_id in (*placed, *list(self._posts)[: max(0, len(self._posts) - len(placed) - MOST)]):
            self._forget(post_id)
        return placed

    def likely(self, clusterer: Clusterer, at_rest: bool = False) -> dict[str, str | None]:
        """After a batch: post → its likely cluster, where the next merge is not as soon as the next batch.

        After a merge: None for those that their likely one did not take in. at_rest: no batch may come for long, so
        those that came with the last one are asked about too.
        """
        posts, unmerged, clock = clusterer.counters.posts, clusterer.unmerged_posts, clusterer.clock
        before, self._seen = self._seen, (posts, unmerged)
        came = posts - before[0]
        merged = unmerged < before[1] + came
        if came >= clusterer.config.merge_soon_posts:  # the next merge is as soon as the next batch
            self._fresh.clear()
        after_s = -math.inf if at_rest else AFTER_S
        asked = list(takewhile(lambda p: clock - self._fresh[p] >= after_s, self._fresh))
        likely = {} if merged else clusterer.likely_clusters_of(asked)
        for post_id in asked:
            if post_id in likely or clock - self._fresh[post_id] > UNTIL_S:
                del self._fresh[post_id]
        self._guessed |= likely.keys()
        return self._taken_back(clusterer) if merged else dict(likely)

    def _taken_back(self, clusterer: Clusterer) -> dict[str, str | None]:
        """Those that still wait after a merge, but for what was deleted with its account."""
        told: dict[str, str | None] = {p: None for p in self._guessed if clusterer.cluster_of(p) is not None}
        for post_id in self._guessed - told.keys():
            self._forget(post_id)
        self._guessed.clear()
        return told
