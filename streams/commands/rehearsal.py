"""`crisis query test --replay`: what a query would have alerted, before it is saved."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from models.bars import Bars
from models.encoders.ready import Ready
from models.errors import Rejected
from models.pseudonyms import OFFLINE
from models.records import EmbeddedFrame, Match, MatchedFrame, Origin, Post
from streams.broker.reading import read_values
from streams.config import Settings
from streams.ingest.lines import open_lines, read_frames
from streams.outputs.span import seconds
from streams.pipeline import stages
from streams.pipeline.frames import decode_frame, unpack_vectors
from streams.pipeline.memory import MemoryFolder
from streams.releases.serving import restate

HOUR_S = 3600.0


@dataclass
class Rehearsal:
    """What one query made of the posts."""

    posts: int = 0
    alerts: list[tuple[Post, Match]] = field(default_factory=list)
    suggestions: int = 0
    already: int = 0  # of the alerts: posts that alert without this query too
    by_hour: Counter[int] = field(default_factory=Counter)  # alerts by hour since the epoch, of created_at
    first_at: float = float("inf")
    last_at: float = float("-inf")
    cpu_s: float = 0.0  # of scoring this query alone

    @property
    def hours(self) -> float:
        """How long the posts span, at least one hour."""
        return max(self.last_at - self.first_at, HOUR_S) / HOUR_S if self.posts else 1.0


def rehearse(frames: Iterator[EmbeddedFrame], ready: Ready, query_id: str, bars: Bars) -> Rehearsal:
    """Match the frames with the queries of `ready`, and note what the one named gives. Pure but for the stop-watch."""
    done, matcher = Rehearsal(), ready.matcher
    index = np.array([i for i, q in enumerate(matcher.queries) if q.id == query_id], np.int64)
    for frame in frames:
        posts = {post.id: post for post in frame.posts}
        matched = stages.match(frame, matcher, bars)
        begun = time.thread_time()
        matcher.scores(unpack_vectors(frame), index)
        done.cpu_s += time.thread_time() - begun
        done.posts += len(posts)
        alerting = {m.post_id for m in matched.matches if m.level == "alert" and m.query_id != query_id}
        for match in matched.matches:
            if match.query_id == query_id and match.level == "alert":
                post = posts[match.post_id]
                done.alerts.append((post, match))
                done.already += match.post_id in alerting
                done.by_hour[int(post.created_at // HOUR_S)] += 1
            done.suggestions += match.query_id == query_id and match.level == "suggestion"
        for post in posts.values():
            done.first_at, done.last_at = min(done.first_at, post.created_at), max(done.last_at, post.created_at)
    return done


def posts_of(settings: Settings, where: str, ready: Ready) -> Iterator[EmbeddedFrame]:
    """The posts of a file, or of the last 6h that the broker keeps, embedded by this version. Repeats are folded."""
    if Path(where).is_file():
        yield from _of_file(settings, Path(where), ready)
        return
    for value in read_values(settings, "posts.matched", seconds(where)):
        with suppress(Rejected):  # somebody else wrote to our topic
            frame = decode_frame(value, MatchedFrame)
            if frame.posts:
                own = frame.encoder_version == ready.encoder.version
                yield frame if own else restate(frame, ready.encoder)


def _of_file(settings: Settings, path: Path, ready: Ready) -> Iterator[EmbeddedFrame]:
    folder = MemoryFolder()
    with open_lines(path, settings.ingest.writer.line_bytes) as lines:
        for number, raw in enumerate(read_frames(iter(lines))):
            parsed = stages.parse(raw, Origin(0, number), path.stat().st_mtime, OFFLINE)
            frame = stages.fold(parsed, folder.claim_now(parsed.claims))
            # A budget an hour is judged by when posts were written: a file is read in a moment.
            posts = [msgspec.structs.replace(p, seen_at=p.created_at) for p in frame.posts]
            if posts:
                yield stages.embed(msgspec.structs.replace(frame, posts=posts), ready.encoder)
