"""Posts with alerts that wait for their cluster: they are told the likely one, and what became of it."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from models.records import Match, MatchedFrame, Origin, Post
from streams.pipeline.clusters import LIKELY_AFTER_S, ClusterStage
from tests.models.clustering_lab import plain

AHEAD = math.acos(0.97)  # an angle nearer than t_attach
CONFIG = plain(
    t_attach=0.96, t_merge=0.8, merge_every_posts=1_000, merge_soon_posts=100, merge_every_s=60.0, merge_least_posts=1
)


class Lane:
    """A stage, and one frame after another of posts that all alert, at angles in a plane."""

    def __init__(self) -> None:
        self.stage, self.offset = ClusterStage.new(CONFIG, 2, "v1"), 0

    def come(self, at_s: float, **angles: float) -> tuple[dict[str, str], dict[str, str | None]]:
        """What is known of their clusters, and what is likely."""
        rows = np.array([[math.cos(a), math.sin(a)] for a in angles.values()], "<f2").reshape(-1, 2)
        posts = [Post(name, f"water is needed here {name}", at_s, at_s) for name in angles]
        matches = [Match(name, "need.water", "1", "alert", 1.0, 0.5) for name in angles]
        origin, self.offset = Origin(0, self.offset), self.offset + 1
        frame = MatchedFrame(origin, posts, encoder_version="v1", dim=2, vectors=rows.tobytes(), matches=matches)
        _, known = self.stage.add_all([frame])
        return known, self.stage.likely()


@pytest.fixture
def lane() -> Lane:
    """With a cluster of three posts that was told."""
    lane = Lane()
    lane.come(0.0, a0=0.0, a1=0.01, a2=0.02)
    known, likely = lane.come(61.0, far=math.pi)
    assert known.keys() == {"a0", "a1", "a2"} and not likely
    return lane


NEAR = math.acos(0.85)  # to the told cluster: a full merge joins what is so near


def test_a_post_is_told_the_cluster_that_a_merge_would_put_it_into_once_it_has_waited(lane):
    (told,) = set(lane.stage.clusterer.assignments().values()) - {lane.stage.clusterer.arrival_of("far")}
    assert lane.come(62.0, near=NEAR) == ({}, {})
    assert lane.come(62.0 + LIKELY_AFTER_S, other=-math.pi / 2) == ({}, {"near": told})
    assert lane.come(63.0, third=math.pi / 2 + NEAR) == ({}, {}), "once is enough"
    known, likely = lane.come(130.0, fourth=-2.0)
    assert known == {"near": told} and not likely


def test_a_likely_cluster_that_did_not_take_the_post_in_is_taken_back(lane):
    lane.come(62.0, near=NEAR)
    assert lane.come(63.0, nearer=NEAR + AHEAD * 1.2)[1].keys() == {"near"}
    known, likely = lane.come(130.0, fourth=-2.0)
    assert lane.stage.clusterer.cluster_of("near") == lane.stage.clusterer.cluster_of("nearer")
    assert not known and likely == {"near": None}


def test_it_is_taken_back_after_a_restart_too(lane):
    lane.come(62.0, near=NEAR)
    lane.come(63.0, nearer=NEAR + AHEAD * 1.2)
    encoder = SimpleNamespace(version="v1")
    lane.stage = ClusterStage.restore(lane.stage.changes().put, CONFIG, encoder)
    assert lane.come(130.0, fourth=-2.0) == ({}, {"near": None})


def test_where_a_merge_is_as_soon_nothing_is_guessed(lane):
    lane.come(62.0, near=NEAR)
    many = {f"m{i}": -math.pi / 2 for i in range(CONFIG.merge_soon_posts)}
    assert lane.come(62.0 + LIKELY_AFTER_S, **many)[1] == {}
