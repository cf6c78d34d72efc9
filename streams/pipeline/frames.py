"""Frames on the wire: msgpack in, msgpack out, one float16 block of vectors, split before they grow too large.

A record holds one frame, or an array of frames that follow on one another: what a record costs by itself (120 µs in
Faust, four times over) small frames share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np

from models.cutting import count_items, cut
from models.errors import Rejected, VersionMismatch
from models.records import EmbeddedFrame, Frame, MatchedFrame
from models.undecodable import UNDECODABLE

__all__ = [
    "decode_frame",
    "decode_frames",
    "encode_frame",
    "join_frames",
    "pack_vectors",
    "split_frame",
    "unpack_vectors",
]

F = TypeVar("F", Frame, EmbeddedFrame, MatchedFrame)

_encode = msgspec.msgpack.Encoder().encode
_decoders: dict[type, msgspec.msgpack.Decoder[Any]] = {
    kind: msgspec.msgpack.Decoder(kind) for kind in (Frame, EmbeddedFrame, MatchedFrame)
}

_joined: dict[type, msgspec.msgpack.Decoder[Any]] = {
    kind: msgspec.msgpack.Decoder(kind | list[kind])  # type: ignore[valid-type]
    for kind in (Frame, EmbeddedFrame, MatchedFrame)
}


def encode_frame(frame: Frame) -> bytes:
    """The record value of a frame."""
    return _encode(frame)


def decode_frame(value: bytes, kind: type[F]) -> F:
    """A frame of the given kind. Fields a newer writer added are ignored. Raises Rejected if the value is none."""
    try:
        found: F = _decoders[kind].decode(value)
    except UNDECODABLE as error:
        raise Rejected("bad_frame", f"not a {kind.__name__}: {error}") from error
    return found


def join_frames(frames: Sequence[bytes]) -> bytes:
    """One record's value of several, at most 65,535, that each hold one frame. One frame stays as it is."""
    n = len(frames)
    head = b"" if n == 1 else bytes([0x90 | n]) if n < 16 else b"\xdc" + n.to_bytes(2)  # msgpack's array of n
    return head + b"".join(frames)


def decode_frames(value: bytes, kind: type[F]) -> list[F]:
    """The frames of a record, in order. Raises Rejected as `decode_frame` does: for all of them."""
    try:
        found = _joined[kind].decode(value)
    except UNDECODABLE as error:
        raise Rejected("bad_frame", f"not a {kind.__name__}: {error}") from error
    return found if isinstance(found, list) else [found]


def pack_vectors(vectors: np.ndarray) -> bytes:
    """(n, d) float32 unit rows → contiguous little-endian float16 bytes: half the size, cosine kept to 1e-3."""
    return np.ascontiguousarray(vectors, dtype="<f2").tobytes()


def unpack_vectors(frame: EmbeddedFrame) -> np.ndarray:
    """The frame's vectors as (n, d) float32. Raises VersionMismatch if the block does not fit n posts × dim."""
    expected = len(frame.posts) * frame.dim * 2
    if len(frame.vectors) != expected:
        raise VersionMismatch(
            f"frame {frame.origin} holds {len(frame.vectors)} bytes of vectors, {len(frame.posts)} posts of dim "
            f"{frame.dim} ({frame.encoder_version}) need {expected}"
        )
    return np.frombuffer(frame.vectors, dtype="<f2").reshape(len(frame.posts), frame.dim).astype(np.float32)


def split_frame(frame: F, most_bytes: int, most_posts: int | None = None, vector_bytes: int = 0) -> Iterator[F]:
    """The frame in pieces (models/cutting.py) of at most `most_posts` posts whose records have at most `most_bytes`
    bytes.

    Room for a vector of `vector_bytes` per post is left, so that a clean frame that fits still fits once it is
    embedded. Only a post whose matches alone are too many loses some: those furthest below their thresholds. Their
    alerts are made before and are not affected; the clusterer counts a post fewer in a category.
    """
    items, posts = count_items(frame), len(frame.posts)
    step = most_posts or max(posts, 1)
    for start in range(0, max(posts, 1), step):
        stop = start + step if start + step < posts else items
        yield from _halved(cut(frame, start, stop), most_bytes, vector_bytes)


def _halved(frame: F, most_bytes: int, vector_bytes: int) -> Iterator[F]:
    items = count_items(frame)
    if len(encode_frame(frame)) + vector_bytes * len(frame.posts) <= most_bytes:
        yield frame
    elif items > 1:
        yield from _halved(cut(frame, 0, items // 2), most_bytes, vector_bytes)
        yield from _halved(cut(frame, items // 2, items), most_bytes, vector_bytes)
    elif isinstance(frame, MatchedFrame) and frame.matches:  # the best come first
        fewer = msgspec.structs.replace(frame, matches=frame.matches[: len(frame.matches) // 2])
        yield from _halved(fewer, most_bytes, vector_bytes)
    else:  # nothing left to take away; no setting allows a limit below what a bare post can have
        yield frame
