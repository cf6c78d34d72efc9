"""A vector for each post."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from models.encoders.protocol import Encoder
from models.records import (
    EmbeddedFrame,
    Frame,
)
from models.text import READ_CHARS
from streams.pipeline.frames import pack_vectors

__all__ = ["embed", "embed_many"]

CALL_CHARS = (
    200_000  # read in one encoder call: 1,500 ordinary posts, and a call that ends in a second whatever they say
)


def embed(frame: Frame, encoder: Encoder) -> EmbeddedFrame:
    """Add one vector per post. Blocking: call it in the encoder's thread."""
    return embed_many([frame], encoder)[0]


def embed_many(frames: Sequence[Frame], encoder: Encoder) -> list[EmbeddedFrame]:
    """The same for several frames in one encoder call, or few: batches are what makes an encoder fast."""
    calls = _calls([post.text for frame in frames for post in frame.posts])
    vectors = np.concatenate([encoder.encode(texts) for texts in calls])
    embedded, at = [], 0
    for frame in frames:
        rows = vectors[at : at + len(frame.posts)]
        at += len(frame.posts)
        embedded.append(
            EmbeddedFrame(
                origin=frame.origin,
                posts=frame.posts,
                repeats=frame.repeats,
                deletions=frame.deletions,
                elsewhere=frame.elsewhere,
                encoder_version=encoder.version,
                dim=encoder.dim,
                vectors=pack_vectors(rows),
            )
        )
    return embedded


def _calls(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """The texts in runs of at most CALL_CHARS characters that are read; at least one run."""
    begins = chars = 0
    for at, text in enumerate(texts):
        read = min(len(text), READ_CHARS)
        if chars + read > CALL_CHARS:
            yield texts[begins:at]
            begins, chars = at, 0
        chars += read
    yield texts[begins:]
