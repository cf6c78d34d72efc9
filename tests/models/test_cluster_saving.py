"""Laws of what is saved: a restored clusterer goes on as if it had never stopped."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from models.clustering import Clusterer
from models.clusters import labels
from models.clusters.trail import Ledger, Segment
from models.records import Deletion, Repeat
from tests.models.clustering_lab import CUTS, DIM, WORDY, frame, frames_of, post, run, streams


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


def test_what_went_as_the_oldest_and_is_taken_out_then_is_in_no_segment_after_the_next_save():
    ledger, parts = Ledger("x", keep=300), {}
    for number in range(600):
        ledger.put(f"post-{number:04}", f"text {number:04}")
        written, dead = ledger.trail.save(ledger)
        parts = {n: p for n, p in parts.items() if n not in dead} | written
    assert "post-0270" not in ledger and b"post-0270" in b"".join(parts.values())
    assert ledger.forget("post-0270") is None
    parts |= ledger.trail.save(ledger)[0]
    held = b"".join(parts.values())
    assert b"0270" not in held and b"text 0301" in held


def test_a_state_that_an_earlier_version_saved_goes_on_with_its_repeats():
    """It named the original of each repeat, and did not say which posts were told."""
    clusterer, _ = run([post(n) for n in range(3)], np.eye(DIM)[[0, 0, 1]], config=WORDY)
    clusterer.add(frame(50, [], [], repeats=[Repeat(f"r{n}", f"p{n}", 0.0) for n in range(3)]))
    parts = dict(clusterer.changes().put)
    for name, part in parts.items():
        read = msgspec.msgpack.decode(part) if name != "lexicon" else None
        if name == "head":
            assert read.pop("counted")
        elif name.startswith("cluster/"):
            del read[2]["told"]
        elif name.startswith("repeats/"):
            read[1] = {"r0": "p0", "r1": "p1", "r2": "p2", "r3": "forgotten"}
            span = msgspec.msgpack.decode(parts["head"])["spans"]["repeats"]
        parts[name] = msgspec.msgpack.encode(read) if read is not None else part
    head = msgspec.msgpack.decode(parts["head"])
    head["spans"]["repeats"] = [*span[:2], 4]
    parts["head"] = msgspec.msgpack.encode(head)
    resumed = Clusterer.resume(parts, WORDY)
    assert [resumed.cluster_of(f"r{n}") for n in range(4)] == [*(clusterer.cluster_of(f"r{n}") for n in range(3)), None]
    changes = resumed.changes()
    parts = {name: part for name, part in parts.items() if name not in changes.gone} | changes.put
    again = Clusterer.resume(parts, WORDY)
    assert again.snapshot() == resumed.snapshot()
    again.add(frame(51, [], [], deletions=[Deletion("p0", 1.0), Deletion("r0", 1.0)]))
    assert sum(c.posts for c in again.live()) == 4
