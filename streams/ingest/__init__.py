"""`crisis ingest SOURCE`: where posts come from. One file per source; all write frames through `writer.FrameWriter`."""

from __future__ import annotations

import importlib

import click

# name → (module:attribute, help). Imported on use: no source loads another's libraries.
SOURCES = {
    "file": ("streams.ingest.file:file", "Posts of a JSONL, NDJSON or CSV file (.gz too), at will or replayed."),
    "stdin": ("streams.ingest.stdin:stdin", "Posts from standard input, one JSON object per line."),
    "http": ("streams.ingest.http:http", "Serve POST /posts for NDJSON or a JSON array, behind a token."),
    "bluesky": ("streams.ingest.bluesky:bluesky", "Every public Bluesky post, from a Jetstream server."),
    "mastodon": ("streams.ingest.mastodon:mastodon", "A Mastodon server's public, local or hashtag stream."),
}


class _Sources(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SOURCES)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in SOURCES:
            return None
        module, attribute = SOURCES[name][0].split(":")
        return getattr(importlib.import_module(module), attribute)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Sources"):
            formatter.write_dl([(name, text) for name, (_, text) in SOURCES.items()])


@click.command(cls=_Sources)
def ingest() -> None:
    """Read posts from a source into posts.raw.

    Every source keeps what it has not yet seen acknowledged: stopped and started again it goes on where the broker's
    last answer was (`--cursor`), so nothing is lost and at the most the last moments are sent twice.
    """
