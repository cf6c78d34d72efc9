"""The clusterer is held to a plain program that takes one post at a time and compares everything with everything."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.clustering import Clusterer
from models.clusters import labels
from models.clusters.kernel import to_grid
from models.clusters.labels import terms_of
from models.clusters.lexicon import Lexicon
from models.clusters.trail import Ledger, Segment
from models.cutting import count_items, cut
from models.records import Deletion, Repeat
from tests.models.clustering_lab import DIM, SMALL, WORDY, OneAtATime, frame, frames_of, plain, post, run


@st.composite
def streams(draw, edits=True):
    """Posts near a few directions, many of them equal, so that ties happen; times that stall, jump and run back."""
    n = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    corners = np.concatenate([np.eye(DIM), np.eye(DIM) + np.roll(np.eye(DIM), 1, axis=0)])
    noise = draw(st.sampled_from([0.0, 0.2, 0.5]))
    vectors = corners[rng.integers(0, len(corners), n)] + noise * rng.standard_normal((n, DIM))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype("<f2")
    steps = draw(st.lists(st.sampled_from([0.0, 0.0, 1.0, 5.0, -7.0, 60.0]), min_size=n, max_size=n))
    times = 1e6 + np.cumsum(steps)
    numbers = list(range(n))
    if edits:
        for i in draw(st.lists(st.integers(0, n - 1), max_size=5)):
            numbers[i] = draw(st.integers(0, max(i - 1, 0)))
    return [post(k, float(t)) for k, t in zip(numbers, times, strict=True)], vectors


CUTS = st.sets(st.integers(1, 60))


@given(streams(), CUTS, st.sampled_from([0.0, 0.5]))
@settings(max_examples=150, deadline=None)
def test_it_equals_one_post_at_a_time_however_the_posts_are_framed(stream, cuts, lexical):
    posts, vectors = stream
    config = replace(SMALL, lexical=lexical)
    one, lexicon = OneAtATime(config), Lexicon(DIM, lexical)
    for p, x in zip(posts, vectors, strict=True):
        one.add(p, lexicon.rows(x[None], [terms_of(p.text)])[0][0])
    clusterer, _ = run(posts, vectors, cuts, config)
    assert clusterer.assignments() == one.assignments()
    assert [c.id for c in clusterer.live()] == [c["id"] for c in one.clusters]
    assert [c.posts for c in clusterer.live()] == [len(c["members"]) for c in one.clusters]


@given(streams(), CUTS, CUTS)
@settings(max_examples=60, deadline=None)
def test_events_and_state_do_not_depend_on_frame_boundaries(stream, cuts, other_cuts):
    posts, vectors = stream
    one, events = run(posts, vectors, cuts, WORDY)
    two, other_events = run(posts, vectors, other_cuts, WORDY)
    assert events == other_events
    two.applied = one.applied = {}
    assert one.snapshot() == two.snapshot()


@given(streams(), st.integers(1, 59))
@settings(max_examples=60, deadline=None)
def test_a_restored_snapshot_goes_on_identically(stream, at):
    posts, vectors = stream
    whole, events = run(posts, vectors, {at}, WORDY)
    at = min(at, len(posts))
    first, before = run(posts[:at], vectors[:at], config=WORDY)
    data = first.snapshot()
    second = Clusterer.restore(data, WORDY)
    assert second.snapshot() == data
    after = second.add(frame(at, posts[at:], vectors[at:])) if at < len(posts) else []
    assert before + after == events
    assert second.assignments() == whole.assignments()
    whole.applied = second.applied = {}
    assert second.snapshot() == whole.snapshot()


@given(streams(), CUTS, st.data())
@settings(max_examples=100, deadline=None)
def test_parts_saved_now_and_then_restore_what_one_snapshot_would(stream, cuts, data):
    """Against the whole state, written at once: after posts, edits, repeats, deletions, a restart, a new encoder."""
    posts, vectors = stream
    half_life_s = data.draw(st.sampled_from([0.3, 1e4]))  # the first moves the reference of the terms now and then
    config = replace(WORDY, remember_posts=12, remember_members=8, remember_ids=10, half_life_s=half_life_s)
    clusterer, parts = Clusterer(config, DIM, "v1"), {}
    with patch.object(labels, "STREAM_TERMS", data.draw(st.sampled_from([2, 50_000]))):
        _save_now_and_then(frames_of(posts, vectors, cuts), clusterer, parts, data)


def _save_now_and_then(frames, clusterer, parts, data):
    config = clusterer.config
    for number, one in enumerate(frames):
        clusterer.add(one)
        named = [p.id for p in one.posts]
        repeats = [Repeat(f"r{number}-{i}", i, 0.0) for i in data.draw(st.lists(st.sampled_from(named), max_size=3))]
        gone = [Deletion(i, 0.0) for i in data.draw(st.lists(st.sampled_from([*named, "r0-p0"]), max_size=2))]
        clusterer.add(frame(1_000 + number, [], [], partition=1, repeats=repeats, deletions=gone))
        match data.draw(st.sampled_from(["save", "save", "restart", "lose", "rebase", "wait"])):
            case "wait":
                continue
            case "lose":
                parts.clear()
                clusterer.start_over()
            case "rebase":
                clusterer.rebase("v1", DIM, lambda texts: np.roll(np.eye(DIM), len(texts), 0)[[0] * len(texts)])
            case "restart" if parts:
                clusterer = Clusterer.resume(parts, config)
                continue
        changes = clusterer.changes()
        if changes.whole:
            parts.clear()
        parts = {name: part for name, part in parts.items() if name not in changes.gone} | changes.put
        restored = Clusterer.resume(parts, config)
        assert restored.snapshot() == clusterer.snapshot()
        head = {f"cluster/{c.id}" for c in clusterer.live()} | {f"examples/{c.id}" for c in clusterer.live()}
        assert {n for n in parts if n.startswith(("cluster/", "examples/"))} == head  # nothing dead is kept


@given(st.lists(st.tuples(st.sampled_from("ppppfs"), st.integers(0, 9)), max_size=80), st.integers(1, 6))
@settings(max_examples=200, deadline=None)
def test_segments_give_a_bounded_map_again_and_do_not_pile_up(doings, keep):
    ledger, parts = Ledger("x", keep), {}
    ledger.trail.full = 3
    for number, (do, key) in enumerate(doings):
        if do == "p":
            ledger.put(str(key), str(number))
        elif do == "f":
            ledger.forget(str(key))
        else:
            written, dead = ledger.trail.save(ledger)
            parts = {n: p for n, p in parts.items() if n not in dead} | written
            span, again = ledger.trail.span(len(ledger)), Ledger("x", keep)
            names = [f"x/{n}" for n in range(span.first, span.end)]
            segments = [msgspec.msgpack.decode(parts.pop(name), type=Segment[str]) for name in names]
            assert not parts  # every segment that is kept is of use
            again.load(span, segments)
            assert list(again.items()) == list(ledger.items())
            parts = {name: msgspec.msgpack.encode(s) for name, s in zip(names, segments, strict=True)}


@given(streams(), CUTS)
@settings(max_examples=40, deadline=None)
def test_a_redelivered_frame_changes_nothing(stream, cuts):
    posts, vectors = stream
    clusterer = Clusterer(SMALL, DIM, "v1")
    frames = frames_of(posts, vectors, cuts)
    for i, one in enumerate(frames):
        clusterer.add(one)
        before = clusterer.assignments()
        assert all(clusterer.add(old) == [] for old in frames[: i + 1])
        assert clusterer.assignments() == before
    assert clusterer.counters.posts == len(posts)
    assert clusterer.counters.redelivered == len(frames) * (len(frames) + 1) // 2


@given(streams(), CUTS, CUTS, st.integers(0, 60))
@settings(max_examples=40, deadline=None)
def test_a_frame_that_comes_again_in_other_pieces_is_applied_once(stream, cuts, other_cuts, told):
    """As after a crash between two pieces, where the frame is cut elsewhere the second time."""
    posts, vectors = stream
    repeats = [Repeat(f"r{n}", posts[0].id, 0.0) for n in range(3)] if posts else []
    whole = frame(7, posts, vectors, repeats=repeats)
    ends = {0, count_items(whole)}
    edges = [sorted(ends | {at for at in some if at < max(ends)}) for some in (cuts, other_cuts)]
    first, again = ([cut(whole, a, b) for a, b in zip(e, e[1:], strict=False)] for e in edges)
    once, twice = Clusterer(WORDY, DIM, "v1"), Clusterer(WORDY, DIM, "v1")
    events = once.add(whole)
    assert [event for part in (*first[:told], *again) for event in twice.add(part)] == events
    twice.counters.redelivered = 0
    assert twice.snapshot() == once.snapshot()


@given(streams(edits=False), st.floats(0, 1e5))
@settings(max_examples=60, deadline=None)
def test_the_decayed_weight_equals_its_closed_form(stream, later):
    posts, vectors = stream
    config = plain(t_attach=0.7, t_merge=0.6, half_life_s=50.0, merge_every_posts=7, merge_every_s=1e9)
    clusterer, _ = run(posts, vectors, {5, 11}, config)
    at = {p.id: p.created_at for p in posts}
    for cluster in clusterer.live():
        mine = [at[p] for p, c in clusterer.assignments().items() if c == cluster.id]
        closed = sum(2.0 ** (-(clusterer.clock + later - t) / 50.0) for t in mine)
        cluster.rates.forward(clusterer.clock + later, 50.0, 600.0, 6000.0)
        assert cluster.rates.weight == pytest.approx(closed, rel=1e-9, abs=1e-12)


@given(streams(edits=False), st.sets(st.integers(0, 59), max_size=20))
@settings(max_examples=60, deadline=None)
def test_a_deleted_post_leaves_as_if_its_cluster_never_had_it(stream, gone):
    posts, vectors = stream
    clusterer, _ = run(posts, vectors)
    gone = {f"p{k}" for k in gone if k < len(posts)}
    clusterer.add(frame(99, [], [], deletions=[Deletion(p, 0.0) for p in sorted(gone)]))
    rows = dict(zip((p.id for p in posts), to_grid(vectors), strict=True))
    at = {p.id: p.created_at for p in posts}
    left = {p: c for p, c in clusterer.assignments().items() if p not in gone}
    assert clusterer.assignments() == left
    live, means = clusterer.means()
    for cluster, mean in zip(live, means, strict=True):
        mine = [p for p, c in left.items() if c == cluster.id]
        assert cluster.posts == len(mine) == sum(cluster.languages.values())
        np.testing.assert_allclose(mean, np.mean([rows[p] for p in mine], axis=0), atol=1e-6)
        weight = sum(2.0 ** (-(clusterer.clock - at[p]) / SMALL.half_life_s) for p in mine)
        cluster.rates.forward(clusterer.clock, SMALL.half_life_s, SMALL.burst_fast_s, SMALL.burst_slow_s)
        assert cluster.rates.weight == pytest.approx(weight, abs=1e-6)
        assert not gone & {m.post_id for m in cluster.examples}


@given(streams())
@settings(max_examples=40, deadline=None)
def test_ids_are_never_given_twice_and_versions_count_up(stream):
    posts, vectors = stream
    _, events = run(posts, vectors)
    seen: dict[str, int] = {}
    ended = set()
    for event in events:
        assert event.cluster_id not in ended
        assert event.version == seen.get(event.cluster_id, 0) + 1
        assert (event.event == "new") == (event.version == 1)
        seen[event.cluster_id] = event.version
        if event.event in ("merge", "expire"):
            ended.add(event.cluster_id)
        assert event.event != "merge" or (event.into in seen and event.into != event.cluster_id)


@given(streams(edits=False), st.lists(st.sampled_from("abc"), min_size=60, max_size=60), CUTS)
@settings(max_examples=60, deadline=None)
def test_a_closed_account_leaves_as_if_each_of_its_posts_and_repeats_were_deleted(stream, accounts, cuts):
    posts, vectors = stream
    posts = [
        msgspec.structs.replace(p, id=f"{a}/{p.id}", text=f"by {a}") for p, a in zip(posts, accounts, strict=False)
    ]
    repeats = [Repeat(f"{a}/again{i}", posts[i // 2].id, 1e6) for i, a in enumerate(accounts[: len(posts)])]
    at_once, one_by_one = (run(posts, vectors, cuts)[0] for _ in range(2))
    for clusterer in (at_once, one_by_one):
        clusterer.add(frame(97, [], [], repeats=repeats))
    named = [r.id for r in repeats if r.id.startswith("a/")] + [p.id for p in posts if p.id.startswith("a/")]
    restored = Clusterer.restore(at_once.snapshot(), SMALL)
    closed = frame(98, [], [], deletions=[Deletion("a", 1e6)])
    events = at_once.add(closed)
    assert restored.add(closed) == events and restored.snapshot() == at_once.snapshot()
    one_by_one.add(frame(98, [], [], deletions=[Deletion(i, 1e6) for i in named]))
    assert at_once.assignments() == one_by_one.assignments()
    assert [(c.id, c.posts, c.examples) for c in at_once.live()] == [
        (c.id, c.posts, c.examples) for c in one_by_one.live()
    ]
    assert not [i for i in (*at_once.assignments(), *at_once.live_clusters.memory.repeats) if i.startswith("a/")]
    assert "by a" not in {e.text for event in events for e in (event.medoid, *event.examples) if e is not None}


def test_what_is_taken_out_is_in_no_segment_after_the_next_save():
    ledger, parts = Ledger("x", keep=2_000), {}
    for number in range(1_000):
        ledger.put(f"post-{number:04}", f"text {number:04}")
        if number % 100 == 0:
            parts.update(ledger.trail.save(ledger)[0])
    for taken in ("post-0003", "post-0500", "post-0999"):
        ledger.forget(taken)
    written, dead = ledger.trail.save(ledger)
    parts.update(written)
    held = b"".join(part for name, part in parts.items() if name not in dead)
    assert not [word for n in ("0003", "0500", "0999") for word in (b"post-", b"text ") if word + n.encode() in held]
    assert b"post-0004" in held and b"post-0501" in held
