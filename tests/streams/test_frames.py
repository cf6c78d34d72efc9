"""Frames on the wire."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, msgpack

from models.errors import Rejected, VersionMismatch
from models.records import Deletion, EmbeddedFrame, Frame, Geo, Origin, Post, Repeat
from streams.frames import decode_frame, encode_frame, pack_vectors, split_frame, unpack_vectors

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
times = st.floats(0, 4e9)
origins = st.builds(Origin, st.integers(0, 100), st.integers(0, 2**40), st.integers(0, 50))
posts = st.builds(
    Post, id=texts, text=texts, created_at=times, seen_at=times, lang=st.sampled_from(["en", "ht", "und"]),
    geo=st.none() | st.builds(Geo, st.floats(-90, 90), st.floats(-180, 180)), url=st.none() | texts,
)  # fmt: skip
frames = st.builds(
    Frame, origin=origins, posts=st.lists(posts, max_size=8),
    repeats=st.lists(st.builds(Repeat, id=texts, of=texts, seen_at=times), max_size=3),
    deletions=st.lists(st.builds(Deletion, id=texts, seen_at=times), max_size=3),
)  # fmt: skip


@given(frames)
def test_decoding_gives_back_the_frame(frame):
    assert decode_frame(encode_frame(frame), Frame) == frame


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


@given(frames, st.integers(1, 5), st.integers(500, 20_000))
def test_a_split_frame_keeps_every_post_repeat_and_deletion_in_order(frame, most_posts, most_bytes):
    pieces = list(split_frame(frame, most_posts, most_bytes))
    assert [p for piece in pieces for p in piece.posts] == frame.posts
    assert [r for piece in pieces for r in piece.repeats] == frame.repeats
    assert [d for piece in pieces for d in piece.deletions] == frame.deletions
    assert [piece.origin.part for piece in pieces] == list(range(len(pieces)))
    assert all(len(piece.posts) <= most_posts for piece in pieces)
    assert sorted(piece.origin for piece in pieces) == [piece.origin for piece in pieces]


def test_split_pieces_stay_under_the_byte_limit_even_with_vectors():
    many = [Post(str(i), "x" * 5_000, 0.0, 0.0) for i in range(400)]
    for piece in split_frame(Frame(Origin(0, 0), many), 1_000, 800_000, vector_bytes=1024):
        vectors = pack_vectors(np.zeros((len(piece.posts), 512), np.float32))
        whole = EmbeddedFrame(
            origin=piece.origin, posts=piece.posts, encoder_version="v", dim=512, vectors=vectors
        )  # fmt: skip
        assert len(encode_frame(whole)) < 800_000


def test_vectors_survive_as_float16():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((3, 8)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    frame = EmbeddedFrame(
        origin=Origin(0, 0), posts=[Post(str(i), "x", 0.0, 0.0) for i in range(3)], encoder_version="v", dim=8,
        vectors=pack_vectors(rows),
    )  # fmt: skip
    assert np.allclose(unpack_vectors(frame), rows, atol=1e-3)


def test_a_vector_block_of_the_wrong_size_is_refused_with_the_numbers():
    frame = EmbeddedFrame(
        origin=Origin(0, 7), posts=[Post("a", "x", 0.0, 0.0)], encoder_version="v9", dim=4, vectors=b"123"
    )  # fmt: skip
    with pytest.raises(VersionMismatch, match=r"3 bytes.*1 posts of dim 4.*v9.*need 8"):
        unpack_vectors(frame)
