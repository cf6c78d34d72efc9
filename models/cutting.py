"""Frames cut into pieces, and what of a frame is still to be applied.

The items of a frame are its posts, then its repeats, then its deletions: the order in which they are applied; then what
takes another turn, so that a frame ends where it would have if all of it had been read at once. A piece
is a run of items, and its origin says which item of the raw frame it begins with. So pieces can be cut again, and
each item is applied once even where a redelivered frame is cut elsewhere (its matches may have become longer).
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from models.records import EmbeddedFrame, Frame, MatchedFrame, Origin, Post

__all__ = ["count_items", "cut", "end_of", "still_due"]

F = TypeVar("F", bound=Frame)


def count_items(frame: Frame) -> int:
    """Posts, repeats, deletions, and what of the frame takes another turn."""
    return len(frame.posts) + len(frame.repeats) + len(frame.deletions) + len(_waiting(frame)) + frame.elsewhere


def _waiting(frame: Frame) -> list[Post]:
    return frame.waiting if isinstance(frame, EmbeddedFrame) else []


def end_of(frame: Frame) -> Origin:
    """Where a piece would begin that follows on this one."""
    at = frame.origin
    return msgspec.structs.replace(at, item=at.item + count_items(frame))


def cut(frame: F, start: int, stop: int) -> F:
    """Items start..stop of a frame, 0 ≤ start ≤ stop, with the vectors and matches of the posts among them."""
    at, repeats = frame.origin, len(frame.posts)
    deletions = repeats + len(frame.repeats)
    waiting = deletions + len(frame.deletions)
    elsewhere = waiting + len(_waiting(frame))
    changes: dict[str, Any] = {
        "origin": msgspec.structs.replace(at, item=at.item + start),
        "posts": frame.posts[start:stop],
        "repeats": frame.repeats[max(0, start - repeats) : max(0, stop - repeats)],
        "deletions": frame.deletions[max(0, start - deletions) : max(0, stop - deletions)],
        "elsewhere": max(0, min(stop - elsewhere, frame.elsewhere)) - max(0, min(start - elsewhere, frame.elsewhere)),
    }
    if isinstance(frame, EmbeddedFrame):
        changes["waiting"] = frame.waiting[max(0, start - waiting) : max(0, stop - waiting)]
        changes["vectors"] = frame.vectors[2 * frame.dim * start : 2 * frame.dim * stop]
    if isinstance(frame, MatchedFrame):  # of a post that occurs twice, they are those of its last text
        row = {post.id: i for i, post in enumerate(frame.posts)}
        changes["matches"] = [m for m in frame.matches if start <= row[m.post_id] < stop]
    return msgspec.structs.replace(frame, **changes)


def still_due(frame: F, done: Origin) -> F:
    """What of a frame lies beyond `done`, the end of what was applied of its raw partition."""
    if frame.origin.offset != done.offset or frame.origin >= done:
        return frame
    items = count_items(frame)
    return cut(frame, min(items, done.item - frame.origin.item), items)
