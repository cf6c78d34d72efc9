"""The clusterer is held to a plain program that takes one post at a time and compares everything with everything."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.clustering import Clusterer
from models.clusters.kernel import to_grid
from models.clusters.labels import terms_of
from models.clusters.lexicon import Lexicon
from models.cutting import count_items, cut
from models.records import Deletion, Match, Repeat
from tests.models.clustering_lab import CUTS, DIM, SMALL, WORDY, OneAtATime, frame, frames_of, plain, post, run, streams


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


@given(streams(), CUTS, st.sets(st.integers(1, 60)))
@settings(max_examples=150, deadline=None)
def test_settling_while_nobody_comes_puts_no_post_elsewhere(stream, cuts, pauses):
    """Where the next post comes so much later that it would settle first anyhow. Nothing ends of age here: a cluster
    that would end then may be joined before."""
    posts, vectors = stream
    config, later = replace(WORDY, ttl_posts=10_000, ttl_single_posts=10_000), 0.0
    for n, each in enumerate(posts):
        later += config.settle_every_s if n in pauses else 0.0
        posts[n] = msgspec.structs.replace(each, created_at=each.created_at + later, seen_at=each.seen_at + later)
    straight, _ = run(posts, vectors, cuts, config)
    rested = Clusterer(config, DIM, "v1")
    for n, each in enumerate(posts):
        before = max((p.created_at for p in posts[:n]), default=0.0)
        if n in pauses and each.created_at >= before + config.settle_every_s:
            rested.settle(merge=False)
        rested.add(frame(n, [each], vectors[n : n + 1]))
    assert rested.assignments() == straight.assignments()


@given(streams(), CUTS, CUTS, st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_frames_applied_together_give_what_they_give_one_after_another(stream, cuts, groups, rng):
    """With repeats and deletions in between, edited posts whose matches are others, and frames that come again."""
    posts, vectors = stream
    frames = []
    for made in frames_of(posts, vectors, cuts):
        ids = [post.id for post in posts]
        queries = [Match(p, f"q{rng.randrange(3)}", "v1", "alert", 0.9, 0.5, "v1") for p in {q.id for q in made.posts}]
        extra = {
            "matches": rng.sample(queries, rng.randint(0, len(queries))),
            "repeats": [Repeat(f"r{rng.randrange(9)}", rng.choice(ids), 0.0)] if rng.random() < 0.2 else [],
            "deletions": [Deletion(rng.choice(ids), 1e6)] if rng.random() < 0.2 else [],
        }
        frames.append(msgspec.structs.replace(made, **extra))
        frames += rng.sample(frames, 1) if rng.random() < 0.1 else []
    one, together = Clusterer(WORDY, DIM, "v1"), Clusterer(WORDY, DIM, "v1")
    events = [event for each in frames for event in one.add(each)]
    edges = [0, *sorted(groups & set(range(1, len(frames)))), len(frames)]
    parts = [frames[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    assert [event for part in parts for event in together.add_all(part)] == events
    assert together.snapshot() == one.snapshot()


def test_a_post_that_is_edited_in_a_later_frame_counts_for_the_queries_of_both_texts_in_turn():
    posts, rows = [post(1), post(2), post(1, 1.0)], np.eye(DIM)[[0, 0, 0]]
    frames = [
        frame(n, [posts[n]], rows[[n]], matches=[Match(posts[n].id, f"q{n}", "v1", "alert", 0.9, 0.5, "v1")])
        for n in range(3)
    ]
    clusterer = Clusterer(plain(), DIM, "v1")
    clusterer.add_all(frames)
    (cluster,) = clusterer.live()
    assert cluster.categories == {"q1": 1, "q2": 1}


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
