"""`crisis ingest SOURCE` (commands/ingest.py): where posts come from. One file per source; all write frames through
`writer.FrameWriter`.
"""

from __future__ import annotations

__all__ = ["SOURCES"]

# name → (module:attribute, help). Imported on use: no source loads another's libraries.
SOURCES = {
    "file": ("streams.ingest.file:file", "Posts of a JSONL, NDJSON or CSV file (.gz too), at will or replayed."),
    "stdin": ("streams.ingest.stdin:stdin", "Posts from standard input, one JSON object per line."),
    "http": ("streams.ingest.http:http", "Serve POST /posts for NDJSON or a JSON array, behind a token."),
    "bluesky": ("streams.ingest.bluesky:bluesky", "Every public Bluesky post, from a Jetstream server."),
    "mastodon": ("streams.ingest.mastodon:mastodon", "A Mastodon server's public, local or hashtag stream."),
}
