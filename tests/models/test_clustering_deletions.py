"""What a person took back is counted and shown nowhere, however old it is, and many who take back cost no more each."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from unittest.mock import patch

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.clustering import Clusterer
from models.clusters import live, memory
from models.clusters.memory import Memory
from models.records import Deletion, Post, Repeat
from tests.models.clustering_lab import CUTS, DIM, SMALL, frame, plain, post, run, streams

DOINGS = st.lists(st.tuples(st.sampled_from("pprrd"), st.integers(0, 4), st.integers(0, 4)), min_size=20, max_size=60)


@given(DOINGS, st.integers(0, 60), st.sampled_from([1, 2, 100]))
@settings(max_examples=200, deadline=None)
def test_sizes_are_those_counted_by_hand_after_any_posts_edits_repeats_and_deletions(doings, restart, remembered):
    """And deletions that overtook what they delete, as many as are remembered."""
    with patch.object(memory, "GONE", remembered):
        sizes_are_those_counted_by_hand(doings, restart, remembered)


def sizes_are_those_counted_by_hand(doings, restart, remembered):
    clusterer, gone, late = Clusterer(SMALL, DIM, "v1"), [], 0
    posts: dict[str, str] = {}  # id → the cluster it was counted in, and the same of repeats
    repeats: dict[str, str] = {}
    for n, (do, one, other) in enumerate(doings):
        name, of = f"p{one}", f"p{other}"
        if do != "d" and name in gone:
            come = {"repeats": [Repeat(name, of, 0.0)]} if do == "r" else {}
            clusterer.add(frame(n, [] if come else [post(one, float(n))], [] if come else np.eye(DIM)[[0]], **come))
            late += 1
            assert clusterer.counters.late == late and clusterer.cluster_of(name) is None
            continue
        if do == "r":
            where = clusterer.find(repeats.get(of) or posts.get(of, ""))
            if where in {c.id for c in clusterer.live()}:
                repeats.setdefault(name, where)
            clusterer.add(frame(n, [], [], repeats=[Repeat(name, of, 0.0)]))
            continue
        for known in (posts, repeats):
            known.pop(name, None)
        if do == "d":
            clusterer.add(frame(n, [], [], deletions=[Deletion(name, 0.0)]))
            gone = [*(other for other in gone if other != name), name][-remembered:]
        else:
            clusterer.add(frame(n, [post(one, float(n))], np.eye(DIM)[[other % DIM]]))
            posts[name] = clusterer.arrival_of(name)
        if n == restart:
            clusterer = Clusterer.restore(clusterer.snapshot(), SMALL)
        counted = Counter(clusterer.find(c) for c in (*posts.values(), *repeats.values()))
        sizes = {c.id: c.posts for c in clusterer.live()}
        assert sizes == {name: counted[name] for name in sizes} and 0 not in sizes.values()


def test_a_repeat_is_taken_back_where_it_was_counted_though_its_original_moved_or_went():
    clusterer, one = Clusterer(plain(), DIM, "v1"), np.eye(DIM)
    clusterer.add(frame(1, [post(n) for n in range(3)], one[[0, 0, 0]]))
    clusterer.add(frame(2, [], [], repeats=[Repeat(f"r{n}", "p0", 2.0) for n in range(3)]))
    clusterer.add(frame(3, [post(0, kind="update", seen_at=3.0)], one[[1]]))
    clusterer.add(frame(4, [], [], deletions=[Deletion("r0", 4.0)]))
    assert [c.posts for c in clusterer.live()] == [4, 1]
    clusterer.add(frame(5, [Post("r1", "water", 5.0, 5.0)], one[[0]], deletions=[Deletion("p0", 5.0)]))
    assert [c.posts for c in clusterer.live()] == [4]
    assert clusterer.cluster_of("r2") == clusterer.cluster_of("r1") == clusterer.cluster_of("p1")
    clusterer.add(frame(6, [], [], deletions=[Deletion("r2", 6.0), Deletion("r1", 6.0)]))
    assert [c.posts for c in clusterer.live()] == [2]


def shown_though_forgotten():
    """A told cluster of four posts of one account that are no longer remembered, but for being its examples."""
    config = plain(merge_every_posts=4, remember_posts=5, remember_members=3)
    posts = [msgspec.structs.replace(post(n, text=f"word{n}"), id=f"acc/{n}" if n < 4 else f"p{n}") for n in range(12)]
    clusterer, events = run(posts, np.eye(DIM)[[0] * 4 + [1] * 8], config=config)
    assert clusterer.cluster_of("acc/0") is None and "acc/0" in {m.post_id for m in clusterer.live()[0].examples}
    return Clusterer.restore(clusterer.snapshot(), config), clusterer


def test_a_deleted_example_that_is_older_than_what_is_remembered_is_shown_no_more():
    for clusterer in shown_though_forgotten():
        (event,) = clusterer.add(frame(50, [], [], deletions=[Deletion("acc/0", 1.0)]))
        assert event.event == "relabel" and event.posts == 3 and clusterer.counters.unplaced == 0
        assert "acc/0" not in {m.post_id for m in clusterer.live()[0].examples}
        assert "acc/0" not in {event.medoid.post_id, *(e.post_id for e in event.examples)}
        np.testing.assert_allclose(clusterer.means()[1][0], np.eye(DIM)[0], atol=1e-3)


def test_an_edited_example_that_is_older_than_what_is_remembered_is_shown_no_more_as_it_was():
    for clusterer in shown_though_forgotten():
        edited = msgspec.structs.replace(post(0, kind="update", text="all is well"), id="acc/0")
        (event,) = clusterer.add(frame(50, [edited], np.eye(DIM)[[2]]))
        assert event.event == "relabel" and [c.posts for c in clusterer.live()] == [3, 8, 1]


def test_a_closed_account_takes_examples_along_that_are_older_than_what_is_remembered():
    for clusterer in shown_though_forgotten():
        (event,) = clusterer.add(frame(50, [], [], deletions=[Deletion("acc", 1.0)]))
        assert event.event == "expire" and [c.posts for c in clusterer.live()] == [8]


@given(streams(), CUTS, st.sets(st.integers(0, 59)), st.sampled_from([1, 3, 100]), st.sampled_from([0, 1_024]))
@settings(max_examples=150, deadline=None)
def test_what_is_deleted_is_in_no_sample_and_no_last_event_however_old_it_is(stream, cuts, gone, remember, outlived):
    posts, vectors = stream
    config = replace(SMALL, remember_posts=remember, remember_members=1, announce_at=2, examples_kept=2)
    told = {}
    with patch.object(live, "OUTLIVED", outlived):
        clusterer, events = run(posts, vectors, cuts, config)
        restored = Clusterer.restore(clusterer.snapshot(), config)
        deleted = frame(99, [], [], deletions=[Deletion(f"p{n}", 0.0) for n in sorted(gone)])
        after = clusterer.add(deleted)
        assert restored.add(deleted) == after and restored.snapshot() == clusterer.snapshot()
    for event in events + after:
        told[event.cluster_id] = {e.post_id for e in (event.medoid, *event.examples) if e is not None}
    names = {f"p{n}" for n in gone}
    assert not names & set().union(*told.values(), *({m.post_id for m in c.examples} for c in clusterer.live()))
    shown = {m.post_id for c in clusterer.live() for m in c.examples}.union(*(c.told for c in clusterer.live()))
    assert shown - clusterer.assignments().keys() <= clusterer.live_clusters.memory.outlived.keys()


def test_a_told_post_that_the_sample_lost_since_is_taken_back_when_it_is_deleted_or_edited():
    clusterer, (new,) = run([post(n) for n in range(3)], np.eye(DIM)[[0, 0, 0]], config=plain(merge_every_posts=3))
    told, lost, number = {new.medoid.post_id, *(e.post_id for e in new.examples)}, set(), 3
    (cluster,) = clusterer.live()
    while len(lost) < 2:
        cluster.step = 10**6  # nothing new is told of it
        assert clusterer.add(frame(number, [post(number)], np.eye(DIM)[[0]])) == []
        lost, number = told - {m.post_id for m in cluster.examples}, number + 1
    first, second = sorted(lost)
    saved = clusterer.snapshot()
    for gone, changed in (
        ({first}, frame(9_000, [], [], deletions=[Deletion(first, 1.0)])),
        ({second}, frame(9_000, [post(int(second[1:]), kind="update")], np.eye(DIM)[[1]])),
    ):
        (event,) = Clusterer.restore(saved, clusterer.config).add(changed)
        assert event.event == "relabel" and not gone & {event.medoid.post_id, *(e.post_id for e in event.examples)}


@pytest.mark.parametrize("named", [["a1"] * 50, [f"a{n}" for n in range(50)]], ids=["one account", "fifty"])
def test_accounts_that_close_are_looked_for_once_a_frame_and_again_only_when_they_posted(named):
    clusterer = Clusterer(SMALL, DIM, "v1")

    def come(offset, deletions):
        posts = [msgspec.structs.replace(post(n), id=f"a{n}/{offset}") for n in range(50)]
        clusterer.add(frame(offset, posts, np.eye(DIM)[[0] * 50], deletions=[Deletion(i, 1.0) for i in deletions]))
        assert not [i for i in clusterer.assignments() if i.partition("/")[0] in deletions]

    with patch.object(Memory, "_of_accounts", autospec=True, side_effect=Memory._of_accounts) as reads:
        come(1, named)
        clusterer.add(frame(2, [], [], deletions=[Deletion(i, 1.0) for i in named]))
        assert reads.call_count == 1
        clusterer.live_clusters.memory.gone.clear()  # so long ago that they may post again
        come(3, named)
        assert reads.call_count == 2
    assert clusterer.counters.deletions == 150


def test_a_post_that_is_sent_and_deleted_thousands_of_times_gets_new_ids_at_the_cost_of_a_few():
    ids = []
    with patch.object(live, "cluster_id", side_effect=live.cluster_id) as made, patch.object(memory, "GONE", 1):
        clusterer = Clusterer(plain(), DIM, "v1")
        for n in range(1_500):
            clusterer.add(frame(n, [post(0)], np.eye(DIM)[[0]]))
            ids.append(clusterer.cluster_of("p0"))
            clusterer.add(frame(n, [], [], partition=1, deletions=[Deletion("p0", 1.0), Deletion("another", 1.0)]))
            if n == 700:
                clusterer = Clusterer.restore(clusterer.snapshot(), clusterer.config)
        assert made.call_count < 1_500 * 25
    assert len(set(ids)) == 1_500
