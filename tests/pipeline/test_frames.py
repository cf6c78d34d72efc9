"""Frames on the wire."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, msgpack
from msgspec.structs import replace

from models.cutting import count_items, cut, end_of, still_due
from models.errors import Rejected, VersionMismatch
from models.records import Deletion, EmbeddedFrame, Frame, Geo, Match, MatchedFrame, Origin, Post, PutBy, Repeat
from streams.pipeline import stages
from streams.pipeline.frames import (
    decode_frame,
    decode_frames,
    encode_frame,
    join_frames,
    pack_vectors,
    split_frame,
    unpack_vectors,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
times = st.floats(0, 4e9)
origins = st.builds(Origin, st.integers(0, 100), st.integers(0, 2**40), st.integers(0, 50))
posts = st.builds(
    Post,
    id=texts,
    text=texts,
    created_at=times,
    seen_at=times,
    lang=st.sampled_from(["en", "ht", "und"]),
    geo=st.none() | st.builds(Geo, st.floats(-90, 90), st.floats(-180, 180)),
    url=st.none() | texts,
)
repeats = st.lists(st.builds(Repeat, id=texts, of=texts, seen_at=times), max_size=6)
deletions = st.lists(st.builds(Deletion, id=texts, seen_at=times), max_size=6)
frames = st.builds(
    Frame,
    origin=origins,
    posts=st.lists(posts, max_size=8),
    repeats=repeats,
    deletions=deletions,
    elsewhere=st.integers(0, 5),
)
DIM = 4


@st.composite
def matched_frames(draw):
    """A matched frame as match makes them: of a post that occurs twice, the matches are those of its last text."""
    some = draw(st.lists(posts, max_size=8))
    rows = np.arange(len(some) * DIM, dtype=np.float32).reshape(-1, DIM)
    matches = [
        Match(post_id, f"need.{n}", "1", "alert", 0.5, 0.4, nearest=draw(texts))
        for post_id in {p.id: None for p in some}
        for n in range(draw(st.integers(0, 5)))
    ]
    return MatchedFrame(
        draw(origins),
        some,
        draw(repeats),
        draw(deletions),
        draw(st.integers(0, 5)),
        encoder_version="v",
        dim=DIM,
        vectors=pack_vectors(rows),
        matches=matches,
    )


@given(frames)
def test_decoding_gives_back_the_frame(frame):
    assert decode_frame(encode_frame(frame), Frame) == frame


@given(st.sampled_from([1, 2, 15, 16, 300]))
def test_frames_that_share_a_record_come_out_as_they_went_in(count):
    several = [Frame(Origin(1, n), []) for n in range(count)]
    assert decode_frames(join_frames([encode_frame(frame) for frame in several]), Frame) == several


@given(frames)
def test_a_frame_alone_in_its_record_is_written_and_read_as_before_records_held_several(frame):
    assert join_frames([encode_frame(frame)]) == encode_frame(frame)
    assert decode_frames(encode_frame(frame), Frame) == [frame]


class _NewerFrame(Struct):
    origin: Origin
    posts: list[Post]
    invented_later: dict[str, int]


def test_a_newer_writers_extra_field_is_ignored():
    value = msgpack.encode(_NewerFrame(Origin(1, 2), [], {"x": 1}))
    assert decode_frame(value, Frame) == Frame(Origin(1, 2), [])


@given(st.binary(max_size=60))
def test_bytes_that_are_no_frame_are_rejected_and_nothing_else(value):
    try:
        decode_frame(value, Frame)
    except Rejected as why:
        assert why.reason == "bad_frame"


def together(parts):
    """Everything the pieces hold, in order, by the field it lies in."""
    names = [n for n in parts[0].__struct_fields__ if n not in ("origin", "encoder_version", "dim", "elsewhere")]
    held = {name: [x for part in parts for x in getattr(part, name)] for name in names}
    return held | {"elsewhere": sum(part.elsewhere for part in parts)}


@given(frames | matched_frames(), st.integers(1, 5), st.integers(0, 3_000))
def test_any_frame_splits_into_pieces_within_the_limits_that_together_hold_everything_once_in_order(
    frame, most_posts, more_bytes
):
    items = range(count_items(frame))
    most_bytes = more_bytes + max([100, *(len(encode_frame(cut(frame, i, i + 1))) for i in items)])
    pieces = list(split_frame(frame, most_bytes, most_posts))
    assert all(len(encode_frame(piece)) <= most_bytes for piece in pieces)
    assert all(len(piece.posts) <= most_posts for piece in pieces)
    held, expected = together(pieces), together([frame])
    matches = held.pop("matches", []), expected.pop("matches", [])  # with the last text of their post
    assert sorted(map(msgpack.encode, matches[0])) == sorted(map(msgpack.encode, matches[1]))
    assert held == expected
    for piece in pieces:
        assert {m.post_id for m in getattr(piece, "matches", [])} <= {p.id for p in piece.posts}
        assert "vectors" not in held or len(piece.vectors) == 2 * DIM * len(piece.posts)


@given(frames | matched_frames(), st.integers(1_000, 20_000))
def test_each_piece_begins_where_the_one_before_it_ends_also_when_pieces_are_cut_again(frame, most_bytes):
    pieces = [again for piece in split_frame(frame, 20_000, 3) for again in split_frame(piece, most_bytes)]
    assert [piece.origin for piece in pieces] == [frame.origin, *(end_of(piece) for piece in pieces[:-1])]
    assert end_of(pieces[-1]) == end_of(frame)


@given(matched_frames(), st.integers(1_000, 5_000), st.integers(1_000, 5_000), st.integers(0, 20))
def test_a_redelivered_frame_that_is_cut_elsewhere_is_applied_once(frame, first_bytes, then_bytes, told):
    """A crash after `told` pieces; then all of it again, in other pieces (more matches, another encoder)."""
    first, again = list(split_frame(frame, first_bytes)), list(split_frame(frame, then_bytes))
    done, applied = Origin(frame.origin.partition, -1), []
    for piece in (*first[:told], *again):
        if end_of(piece) > done:
            applied.append(still_due(piece, done))
            done = end_of(piece)
    for name in ("posts", "repeats", "deletions"):
        assert [x for piece in applied for x in getattr(piece, name)] == getattr(frame, name)


def test_a_clean_frame_leaves_room_for_its_vectors():
    many = [Post(str(i), "x" * 5_000, 0.0, 0.0) for i in range(400)]
    pieces = list(split_frame(Frame(Origin(0, 0), many), 800_000, 1_000, vector_bytes=1024))
    for piece in pieces:
        vectors = pack_vectors(np.zeros((len(piece.posts), 512), np.float32))
        whole = EmbeddedFrame(piece.origin, piece.posts, encoder_version="v", dim=512, vectors=vectors)
        assert len(encode_frame(whole)) < 800_000
    assert len(pieces) > 1


def test_a_post_with_too_many_matches_for_one_record_keeps_the_best():
    found = [Match("a", f"q{n}", "1", "alert", 0.9 - n / 1000, 0.1, nearest="x" * 400) for n in range(500)]
    frame = MatchedFrame(
        Origin(0, 0), [Post("a", "x", 0.0, 0.0)], encoder_version="v", dim=1, vectors=b"\0\0", matches=found
    )
    (piece,) = split_frame(frame, 100_000)
    assert len(encode_frame(piece)) <= 100_000
    assert piece.matches == found[: len(piece.matches)] and len(piece.matches) > 50


def test_vectors_survive_as_float16():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((3, 8)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    frame = EmbeddedFrame(
        origin=Origin(0, 0),
        posts=[Post(str(i), "x", 0.0, 0.0) for i in range(3)],
        encoder_version="v",
        dim=8,
        vectors=pack_vectors(rows),
    )
    assert np.allclose(unpack_vectors(frame), rows, atol=1e-3)


def test_a_vector_block_of_the_wrong_size_is_refused_with_the_numbers():
    frame = EmbeddedFrame(
        origin=Origin(0, 7), posts=[Post("a", "x", 0.0, 0.0)], encoder_version="v9", dim=4, vectors=b"123"
    )
    with pytest.raises(VersionMismatch, match=r"3 bytes.*1 posts of dim 4.*v9.*need 8"):
        unpack_vectors(frame)


@given(st.lists(posts, max_size=8), st.lists(st.integers(0, 3), min_size=8, max_size=8), origins, deletions)
def test_however_a_frame_is_divided_into_turns_each_part_ends_where_the_frame_ends(some, turns, origin, gone):
    """So that of two ways to divide it, after a redelivery, one counts."""
    whole = Frame(origin, some, deletions=gone)
    waiting = [
        replace(post, put_by=PutBy(1.0, turn, "order", 0.5)) for post, turn in zip(some, turns, strict=False) if turn
    ]
    now = [post for post, turn in zip(some, turns, strict=False) if not turn]
    vectors = b"\0" * 2 * DIM * len(now)
    read = EmbeddedFrame(origin, now, deletions=gone, encoder_version="v", dim=DIM, vectors=vectors, waiting=waiting)
    parts = stages.by_turn(read)
    assert end_of(read) == end_of(whole)
    for part in parts:
        assert end_of(part) == replace(end_of(whole), turn=part.origin.turn)
        assert {post.put_by.turn for post in part.posts} == {part.origin.turn}
    assert sorted(p.id for part in (read, *parts) for p in part.posts) == sorted(p.id for p in some)
    pieces = [cut(read, at, at + 1) for at in range(count_items(read))]
    assert [p for piece in pieces for p in piece.waiting] == waiting
    assert not pieces or end_of(pieces[-1]) == end_of(whole)
