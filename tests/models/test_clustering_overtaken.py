"""A post that its own deletion overtook, or that of its account, is in no cluster: another worker had it in hand."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.clustering import Clusterer
from models.cutting import count_items, cut
from models.records import Deletion, Repeat
from tests.models.clustering_lab import DIM, WORDY, frame, post

OVERTAKEN = msgspec.structs.replace(post(7, 9.0, text="says ada"), id="~ada/7")
ONE = np.eye(DIM)


def deletion_of(*names, offset=50):
    return frame(offset, [], [], partition=1, deletions=[Deletion(name, 5.0) for name in names])


def begun(*frames):
    clusterer = Clusterer(WORDY, DIM, "v1")
    clusterer.add_all([frame(1, [post(n) for n in range(3)], ONE[[0, 0, 0]]), *frames])
    return clusterer


@pytest.mark.parametrize("restart", ["goes on", "restored", "resumed"])
@pytest.mark.parametrize("deleted", ["~ada/7", "~ada"], ids=["the post", "its account"])
def test_a_post_that_comes_after_its_deletion_is_in_no_cluster_no_event_and_no_part_of_the_state(deleted, restart):
    clusterer = begun(deletion_of(deleted))
    if restart == "restored":
        clusterer = Clusterer.restore(clusterer.snapshot(), WORDY)
    elif restart == "resumed":
        clusterer = Clusterer.resume(clusterer.changes().put, WORDY)
    late = frame(2, [OVERTAKEN, post(8, 9.0)], ONE[[0, 0]], repeats=[Repeat("~ada/7", "p0", 9.0)])
    events = clusterer.add(late) + clusterer.settle()
    assert [event.posts for event in events] == [4] and clusterer.cluster_of("~ada/7") is None
    assert clusterer.counters.late == 2 and clusterer.counters.posts == 4
    for held in (clusterer.snapshot(), *clusterer.changes().put.values(), msgspec.json.encode(events)):
        assert b"ada" not in held


def test_it_leaves_the_others_as_if_it_had_never_come():
    late, never = begun(deletion_of("~ada/7")), begun(deletion_of("~ada/7"))
    late.add(frame(2, [post(8, 9.0), OVERTAKEN, post(9, 9.0)], ONE[[0, 1, 0]]))
    never.add(frame(2, [post(8, 9.0), post(9, 9.0)], ONE[[0, 0]]))
    assert late.counters.late == 1
    late.counters.late, late.applied = 0, never.applied
    assert late.snapshot() == never.snapshot()


@given(
    st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.booleans()), min_size=1, max_size=40),
    st.sets(st.integers(1, 120)),
    st.sets(st.integers(0, 39)),
)
@settings(max_examples=100, deadline=None)
def test_what_is_overtaken_does_not_depend_on_how_frames_are_cut_or_applied_together(doings, cuts, together):
    """Each raw frame holds a post, and may delete it or the account of another: the pieces it came in tell nothing."""
    whole = [
        frame(
            offset,
            [msgspec.structs.replace(post(n, float(offset)), id=f"a{n % 3}/{n}")],
            ONE[[n % DIM]],
            deletions=[Deletion(f"a{n % 3}/{n}", 0.0)] * gone + [Deletion(f"a{offset % 3}", 0.0)] * closed,
        )
        for offset, (n, gone, closed) in enumerate(doings)
    ]
    one, two = Clusterer(WORDY, DIM, "v1"), Clusterer(WORDY, DIM, "v1")
    events = [event for each in whole for event in one.add(each)]
    pieces = []
    for number, each in enumerate(whole):
        edges = [0, *(at for at in range(1, count_items(each)) if 3 * number + at in cuts), count_items(each)]
        pieces += [cut(each, a, b) for a, b in zip(edges, edges[1:], strict=False)]
    edges = sorted({0, len(pieces), *(at for at in together if at < len(pieces))})
    assert [event for a, b in zip(edges, edges[1:], strict=False) for event in two.add_all(pieces[a:b])] == events
    assert two.snapshot() == one.snapshot()


def test_a_state_that_an_earlier_version_saved_remembers_what_is_deleted_from_then_on():
    parts = dict(begun(deletion_of("~ada/7")).changes().put)
    parts = {name: part for name, part in parts.items() if not name.startswith("gone/")}
    head = msgspec.msgpack.decode(parts["head"])
    del head["spans"]["gone"], head["counters"]["late"]
    parts["head"] = msgspec.msgpack.encode(head)
    clusterer = Clusterer.resume(parts, WORDY)
    clusterer.add(deletion_of("~ada/7", offset=51))
    parts |= clusterer.changes().put
    again = Clusterer.resume(parts, WORDY)
    assert again.snapshot() == clusterer.snapshot()
    again.add(frame(2, [OVERTAKEN], ONE[[0]]))
    assert again.counters.late == 1 and again.cluster_of("~ada/7") is None
