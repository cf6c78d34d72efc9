"""The vectors of a frame that is to be clustered, or why it cannot be."""

from __future__ import annotations

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


def widened(frame: MatchedFrame, encoder: Encoder) -> MatchedFrame:
    """The frame with the vectors of a mixture, where its own are those of the mixture's first part; else as it is.

    Raises EncoderError for broken ones. Blocking: the other parts read the posts.
    """
    if not frame.posts or not isinstance(encoder, Mixture) or frame.encoder_version != encoder.first.version:
        return frame
    own = vectors_of(frame, encoder.first.version, encoder.first.dim).astype(np.float32)
    vectors = encoder.joined(own, [post.text for post in frame.posts]).astype("<f2")
    return msgspec.structs.replace(frame, encoder_version=encoder.version, dim=encoder.dim, vectors=vectors.tobytes())
