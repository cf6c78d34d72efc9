"""Clusters in two levels: one worker is the clusterer, several hardly lose by not seeing each other's posts."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from models.clustering import Clusterer
from tests.models.clustering_lab import CUTS, DIM, WORDY, plain, post, run, streams, topic_stream
from training.evaluate_clusters import b_cubed
from training.two_levels import TwoLevels


@given(streams(), CUTS)
@settings(max_examples=60, deadline=None)
def test_with_one_worker_it_is_the_clusterer(stream, cuts):
    posts, vectors = stream
    one, events = run(posts, vectors, cuts, WORDY)
    two, other_events = run(posts, vectors, cuts, clusterer=TwoLevels(WORDY, DIM, "v1", 1))
    assert two.assignments() == one.assignments() and other_events == events


def test_what_two_workers_found_beside_each_other_is_joined_when_the_window_ends():
    same = np.tile(np.eye(DIM)[0], (4, 1))
    config = plain(settle_every_posts=4)
    clusterer, _ = run([post(i) for i in range(4)], same, clusterer=TwoLevels(config, DIM, "v1", 2))
    assert clusterer.counters.founded == 2, "each has seen its own posts alone"
    assert len(set(clusterer.assignments().values())) == 1


def test_four_workers_lose_hardly_any_of_a_stream_of_topics_that_come_and_go():
    posts, vectors, topics = topic_stream(2_000)
    config = plain(settle_every_posts=200, merge_every_posts=400, merge_every_s=1e9, remember_posts=2_000)
    found = []
    for clusterer in (Clusterer(config, 32, "v1"), TwoLevels(config, 32, "v1", 4)):
        run(posts, vectors, range(0, 2_000, 200), clusterer=clusterer)
        clusterer.settle()
        found.append(b_cubed(topics.tolist(), [clusterer.cluster_of(p.id) for p in posts])[2])
    one, two = found
    assert one > 0.9 and abs(one - two) < 0.01
