"""Frames on the wire: msgpack in, msgpack out, one float16 block of vectors, split before they grow too large."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import msgspec
import numpy as np

from models.errors import Rejected, VersionMismatch
from models.records import EmbeddedFrame, Frame, MatchedFrame, Origin

F = TypeVar("F", Frame, EmbeddedFrame, MatchedFrame)

_encode = msgspec.msgpack.Encoder().encode
_decoders = {kind: msgspec.msgpack.Decoder(kind) for kind in (Frame, EmbeddedFrame, MatchedFrame)}


def encode_frame(frame: Frame) -> bytes:
    """The record value of a frame."""
    return _encode(frame)


def decode_frame(value: bytes, kind: type[F]) -> F:
    """A frame of the given kind. Fields a newer writer added are ignored. Raises Rejected if the value is none."""
    try:
        return _decoders[kind].decode(value)
    except msgspec.MsgspecError as error:
        raise Rejected("bad_frame", f"not a {kind.__name__}: {error}") from error


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


def split_frame(frame: Frame, most_posts: int, most_bytes: int, vector_bytes: int = 1024) -> Iterator[Frame]:
    """The frame in pieces of at most `most_posts` posts and about `most_bytes` bytes; order kept, nothing dropped.

    Room for a vector of `vector_bytes` per post is left, so a clean frame that fits still fits once it is embedded.
    Repeats and deletions travel with the last piece: what they refer to lies before them.
    """
    pieces: list[list] = [[]]
    size = 0
    for post in frame.posts:
        cost = len(post.text.encode()) * 2 + vector_bytes + 600  # twice: its matches repeat part of the text
        if pieces[-1] and (len(pieces[-1]) >= most_posts or size + cost > most_bytes):
            pieces.append([])
            size = 0
        pieces[-1].append(post)
        size += cost
    for part, posts in enumerate(pieces):
        last = part == len(pieces) - 1
        yield Frame(
            origin=Origin(frame.origin.partition, frame.origin.offset, part), posts=posts,
            repeats=frame.repeats if last else [], deletions=frame.deletions if last else [],
        )  # fmt: skip
