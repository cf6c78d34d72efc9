"""What an edit, a repeat and a deletion do to clusters."""

from __future__ import annotations

import numpy as np

from models.clustering import Clusterer
from models.records import Deletion, Post, Repeat
from tests.models.clustering_lab import DIM, SMALL, frame, post, run, tiny


def test_a_repeat_counts_with_its_original_once_and_can_be_deleted():
    clusterer, _ = tiny(3)
    repeats = [Repeat("r1", "p0", 200.0), Repeat("r1", "p0", 200.0), Repeat("r2", "p1", 200.0), Repeat("r3", "?", 1.0)]
    clusterer.add(frame(50, [], [], repeats=repeats))
    (cluster,) = clusterer.live()
    assert cluster.posts == 5 and clusterer.counters.unplaced == 1
    assert clusterer.cluster_of("r1") == cluster.id
    clusterer.add(frame(51, [], [], deletions=[Deletion("r1", 1.0)]))
    assert cluster.posts == 4 and clusterer.cluster_of("r1") is None


def test_a_deleted_example_is_withdrawn_from_view_at_once():
    clusterer, _ = tiny(4)
    (event,) = clusterer.add(frame(50, [], [], deletions=[Deletion("p1", 1.0)]))
    assert event.event == "relabel" and event.posts == 3
    assert "p1" not in {event.medoid.post_id, *(e.post_id for e in event.examples)}


def test_a_post_sent_twice_and_then_deleted_is_shown_no_more():
    clusterer, _ = tiny(4)
    clusterer.add(frame(50, [], [], repeats=[Repeat("p1", "p1", 200.0)]))
    clusterer.add(frame(51, [], [], deletions=[Deletion("p1", 1.0)]))
    (cluster,) = clusterer.live()
    assert cluster.posts == 3 and clusterer.cluster_of("p1") is None
    assert "p1" not in {m.post_id for m in cluster.examples}


def test_a_repeat_that_is_edited_is_a_post_of_its_own():
    clusterer, _ = tiny(3)
    clusterer.add(frame(50, [], [], repeats=[Repeat("r1", "p0", 200.0)]))
    clusterer.add(frame(51, [Post("r1", "all is well", 200.0, 200.0, kind="update")], [np.eye(DIM)[3]]))
    assert clusterer.cluster_of("r1") != clusterer.cluster_of("p0")
    assert [c.posts for c in clusterer.live()] == [3, 1]


def test_deleting_every_post_ends_the_cluster():
    clusterer, _ = tiny(3)
    events = clusterer.add(frame(50, [], [], deletions=[Deletion(f"p{i}", 1.0) for i in range(3)]))
    assert events[-1].event == "expire" and clusterer.live() == []
    assert clusterer.add(frame(51, [], [], deletions=[Deletion("p0", 1.0)])) == []
    assert clusterer.counters.unplaced == 1


def test_an_edited_post_moves_to_where_its_new_text_belongs():
    vectors = np.eye(DIM)[[0, 0, 1]]
    clusterer, _ = run([post(i, 5.0) for i in range(3)], vectors)
    edited = post(1, 6.0, kind="update", text="medicine")
    clusterer.add(frame(50, [edited], np.eye(DIM)[[1]]))
    assert clusterer.cluster_of("p1") == clusterer.cluster_of("p2") != clusterer.cluster_of("p0")
    assert [c.posts for c in clusterer.live()] == [1, 2]


def test_a_lone_post_edited_again_and_again_never_gets_an_old_id():
    clusterer, ids = Clusterer(SMALL, DIM, "v1"), []
    for i in range(20):
        clusterer.add(frame(i, [post(0, 5.0, seen_at=5.0 + i // 2, kind="update")], np.eye(DIM)[[i % DIM]]))
        ids.append(clusterer.cluster_of("p0"))
    assert len(set(ids)) == 20
