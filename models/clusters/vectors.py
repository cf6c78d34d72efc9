"""The vectors of a frame that is to be clustered, or why it cannot be."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from models.encoders.mixture import Mixture
from models.encoders.protocol import Encoder
from models.errors import EncoderError, VersionMismatch
from models.records import MatchedFrame

__all__ = ["vectors_of", "widened"]


def vectors_of(frame: MatchedFrame, encoder_version: str, dim: int) -> np.ndarray:
    """(n, dim) float16, a row a post.

    Raises VersionMismatch for vectors of another encoder or dimension than the clusters', EncoderError for broken ones.
    """
    if not frame.posts:  # repeats and deletions only: no vectors, so of no encoder
        return np.zeros((0, dim))
    if (frame.encoder_version, frame.dim) != (encoder_version, dim):
        raise VersionMismatch(
            f"frame {frame.origin} has vectors of {frame.encoder_version} ({frame.dim} dims), the clusters are of "
            f"{encoder_version} ({dim} dims): encode its posts again, or rebase the clusters"
        )
    if len(frame.vectors) != 2 * len(frame.posts) * dim:
        raise EncoderError(
            f"frame {frame.origin} has {len(frame.vectors)} bytes of vectors, its {len(frame.posts)} posts need "
            f"{2 * len(frame.posts) * dim}: encode it again"
        )
    vectors = np.frombuffer(frame.vectors, "<f2").reshape(len(frame.posts), dim)
    if not np.isfinite(vectors).all():
        raise EncoderError(f"frame {frame.origin} holds vectors that are not finite: check its encoder")
    return vectors


def widened(frames: Sequence[MatchedFrame], encoder: Encoder) -> list[MatchedFrame]:
    """The frames with the vectors of a mixture, where their own are those of its first part; others as they are.

    Raises EncoderError for broken ones. Blocking: the other parts read the posts, those of all frames together.
    """
    if not isinstance(encoder, Mixture):
        return list(frames)
    first = encoder.first
    own = [frame for frame in frames if frame.posts and frame.encoder_version == first.version]
    if not own:
        return list(frames)
    rows = np.concatenate([vectors_of(frame, first.version, first.dim) for frame in own]).astype(np.float32)
    joined = encoder.joined(rows, [post.text for frame in own for post in frame.posts]).astype("<f2")
    blocks = iter(np.split(joined, np.cumsum([len(frame.posts) for frame in own])[:-1]))
    new = {"encoder_version": encoder.version, "dim": encoder.dim}
    made = {id(frame): msgspec.structs.replace(frame, vectors=next(blocks).tobytes(), **new) for frame in own}
    return [made.get(id(frame), frame) for frame in frames]
