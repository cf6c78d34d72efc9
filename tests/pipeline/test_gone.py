"""What was deleted goes no further than the match stage, and moves nothing else in its frame."""

from __future__ import annotations

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from models.alerts import withdraw
from models.cutting import count_items, cut, end_of, still_due
from models.records import Deletion, Match, MatchedFrame, Origin, Post, Repeat
from streams.pipeline import stages
from streams.pipeline.frames import encode_frame, split_frame, unpack_vectors
from streams.pipeline.memory import MemoryAlerts
from tests.view.samples import alert_for

IDS = st.lists(st.sampled_from("abcdef"), max_size=12)
GONE = st.sets(st.sampled_from("abcdef"))


def frame(ids, repeats=2, elsewhere=1):
    posts = [Post(name, f"{name}{n}", 1.0, float(n)) for n, name in enumerate(ids)]
    return MatchedFrame(
        Origin(1, 7, item=3),
        posts,
        [Repeat(f"r{n}", "a", 1.0) for n in range(repeats)],
        [Deletion("z", 1.0)],
        elsewhere,
        encoder_version="v1",
        dim=1,
        vectors=np.arange(len(ids), dtype="<f2").tobytes(),
        matches=[Match(name, "need.water", "1", "alert", 0.5, 0.4) for name in dict.fromkeys(ids)],
    )


def places(pieces):
    """Which item of the raw frame each thing is, what waits elsewhere apart."""
    found = {}
    for piece in pieces:
        for n, row in enumerate(unpack_vectors(piece)[:, 0]):
            found[piece.origin.item + n] = (piece.posts[n].text, float(row))
        for n, other in enumerate([*piece.repeats, *piece.deletions], piece.origin.item + len(piece.posts)):
            found[n] = other.id
    return found


@given(IDS, GONE)
def test_what_is_left_keeps_its_place_its_vector_and_its_matches_and_the_frame_its_end(ids, gone):
    whole = frame(ids)
    pieces = stages.without(whole, gone)
    assert places(pieces) == {
        at: said for at, said in places([whole]).items() if isinstance(said, str) or said[0][0] not in gone
    }
    assert sorted(m.post_id for piece in pieces for m in piece.matches) == sorted(set(ids) - gone)
    assert all({m.post_id for m in piece.matches} <= {p.id for p in piece.posts} for piece in pieces)
    assert end_of(pieces[-1]) == end_of(whole) and sum(map(count_items, pieces)) == count_items(whole)
    assert [piece.origin for piece in pieces[1:]] == [end_of(piece) for piece in pieces[:-1]]
    assert not [name for name in gone if any(p.id == name for piece in pieces for p in piece.posts)]


@given(IDS, GONE, GONE, st.integers(0, 16))
def test_each_item_is_applied_once_though_more_is_gone_when_the_frame_is_read_again(ids, gone, since, applied):
    """As after a crash between two pieces of a frame that was cut for its size."""
    whole = frame(ids)
    first = [
        small for piece in stages.without(whole, gone) for small in split_frame(piece, len(encode_frame(piece)) // 2)
    ]
    done, seen = Origin(1, 7), {}
    for piece in [*first[:applied], *stages.without(whole, gone | since)]:
        if end_of(piece) > done:
            new = places([still_due(piece, done)])
            assert not new.keys() & seen.keys()
            seen |= new
            done = end_of(piece)
    assert done == end_of(whole)
    all_of_it = places([whole])
    must = {at for at, said in all_of_it.items() if isinstance(said, str) or said[0][0] not in gone | since}
    assert must <= seen.keys() and all(all_of_it[at] == said for at, said in seen.items())


def test_a_frame_of_which_nothing_is_gone_goes_on_as_it_is():
    whole = frame("abc")
    assert stages.without(whole, set()) == stages.without(whole, {"x"}) == [whole]
    assert stages.without(cut(whole, 0, 0), {"a"}) == [cut(whole, 0, 0)]


def test_what_was_given_is_taken_back_once_where_its_post_is_gone_by_now():
    mine, other = alert_for("ann/1"), alert_for("bob/1")
    placed = msgspec.structs.replace(mine, revision=mine.revision + 1)
    (taken,) = stages.taken_back([mine, other, placed], {"ann/1"})
    assert (taken.alert_id, taken.status, taken.withdrawn_because, taken.post.text) == (
        mine.alert_id,
        "withdrawn",
        "deleted",
        "",
    )
    assert taken.revision > placed.revision
    withdrawn = withdraw(mine, Deletion("ann/1", 2_000.0))
    assert stages.taken_back([mine, withdrawn], {"ann/1"}) == [] == stages.taken_back([mine], set())


async def test_an_alert_of_one_who_died_before_he_took_it_back_is_withdrawn_when_its_frame_is_read_again():
    known, alert = MemoryAlerts(), alert_for("ann/1")
    await known.put_alerts([alert])
    await known.mark_gone(["ann"])
    again = frame(["ann/1"])
    (taken,) = await known.put_alerts(await stages.with_withdrawals(again, [alert], known))
    assert (taken.status, taken.withdrawn_because, taken.post.text) == ("withdrawn", "deleted", "")
    assert await stages.with_withdrawals(again, [alert], known) == []
