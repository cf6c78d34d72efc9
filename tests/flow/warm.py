"""Clusters that live before the first post comes: a worker that was started again finds so many in Redis."""

from __future__ import annotations

import asyncio

import msgspec

from models.encoders.ready import Ready, load, ready
from models.queries import load_queries
from models.records import Origin
from streams.commands.bench_growth import Stream
from streams.commands.bench_scenarios import START
from streams.config import Settings
from streams.pipeline.clusters import ClusterStage
from streams.view.connect import connect
from streams.view.snapshots import Kept, Snapshots

__all__ = ["keep_clusters", "kept_clusters"]

AT_ONCE = 1_000  # posts
MOST = 50_000  # posts for it
LANE = 9_999  # a partition that no post comes from
RATE = 1_000  # posts a second of the stream's time, all of it before the first post that is measured


def keep_clusters(settings: Settings, number: int) -> None:
    """Save a clusterer with at least so many live ones, of invented posts each about something else."""
    made = ready(load(settings.encoder.ref), load_queries(), settings.match)
    stage, version = _empty(settings, made), made.clustered_by.version
    stream = Stream(alone=1.0)
    assert stream.dim == made.clustered_by.dim, f"{settings.encoder.ref} has another dimension than the stream"
    while stage.clusterer.size < number:  # by thresholds as low as flood's a few of such posts join, and always fewer
        assert stream.sent < MOST, f"{stage.clusterer.size} clusters of {stream.sent} posts"
        for frame in stream.frames(AT_ONCE):
            at, origin = START - (MOST - frame.origin.offset) / RATE, Origin(LANE, frame.origin.offset)
            posts = [msgspec.structs.replace(post, created_at=at, seen_at=at) for post in frame.posts]
            stage.add_all([msgspec.structs.replace(frame, posts=posts, origin=origin, encoder_version=version)])
        stage.finish()

    async def save() -> Kept:
        async with connect(settings.redis) as redis:
            return await Snapshots(redis, settings).save(stage.changes())

    assert asyncio.run(save()) is Kept.SAVED


def kept_clusters(settings: Settings, made: Ready) -> ClusterStage:
    """Those that were saved, else none."""

    async def saved() -> dict[str, bytes] | None:
        async with connect(settings.redis) as redis:
            return await Snapshots(redis, settings).load()

    parts = asyncio.run(saved())
    config = settings.clusters_under(made.clusters)
    return ClusterStage.restore(parts, config, made.clustered_by) if parts else _empty(settings, made)


def _empty(settings: Settings, made: Ready) -> ClusterStage:
    read_by = made.clustered_by
    return ClusterStage.new(settings.clusters_under(made.clusters), read_by.dim, read_by.version)
