"""The sources of posts, their names and the ids that are theirs. It lies here, below all rooms: `crisis ingest` runs
them (streams/ingest), and workers count by their names.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SOURCES", "Source"]


class Source(NamedTuple):
    """No token of `crisis ingest http` may have a source's name or prefix: it would speak for its posts."""

    place: str  # module:attribute of the command, imported on use: no source loads another's libraries
    told: str
    prefix: str | None  # before the colon of its posts' ids; None: it passes posts on, whose ids are their sender's


SOURCES = {
    "file": Source(
        "streams.ingest.file:file", "Posts of a JSONL, NDJSON or CSV file (.gz too), at will or replayed.", None
    ),
    "stdin": Source("streams.ingest.stdin:stdin", "Posts from standard input, one JSON object per line.", None),
    "http": Source("streams.ingest.http:http", "Serve POST /posts for NDJSON or a JSON array, behind a token.", None),
    "bluesky": Source("streams.ingest.bluesky:bluesky", "Every public Bluesky post, from a Jetstream server.", "bsky"),
    "mastodon": Source(
        "streams.ingest.mastodon:mastodon", "A Mastodon server's public, local or hashtag stream.", "masto"
    ),
}
