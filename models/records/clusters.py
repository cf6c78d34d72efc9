"""What changed of a cluster."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

__all__ = ["ClusterEvent", "EventKind", "Example"]

EventKind = Literal["new", "grow", "merge", "expire", "relabel"]


class Example(Struct, frozen=True):
    """A post that shows what a cluster is about."""

    post_id: str
    text: str
    lang: str


class ClusterEvent(Struct, frozen=True, omit_defaults=True):
    """A change of one cluster. (cluster_id, version) is unique, so applying it twice is harmless."""

    event: EventKind
    cluster_id: str
    version: int
    posts: int  # posts in it, repeats included
    weight: float  # decayed number of posts
    first_at: str  # created_at of its first and newest post, RFC 3339 UTC
    last_at: str
    label: str
    encoder_version: str
    medoid: Example | None = None
    examples: list[Example] = []
    burst: float = 0.0
    categories: dict[str, int] = {}  # query id → matched posts
    languages: dict[str, int] = {}  # posts of the 50 most frequent
    sources: dict[str, int] = {}  # likewise
    into: str | None = None  # merge: the cluster that lives on
