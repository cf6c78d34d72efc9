"""What every source keeps (streams/config/sources.py)."""

from __future__ import annotations

from collections.abc import Sequence

import click

from models.posts import parse_post, split_lines
from models.records import Deletion, Post, account_of
from streams.commands import attribute
from streams.config.sources import Source
from streams.ingest.lines import head_of, key_of

AT = 1_771_000_000.0  # seen then: after the posts of the tests


def check_source(name: str, source: Source, lines: Sequence[bytes], posts: int, deletions: int = 0) -> None:
    """A command with help; every post it reads is one line of JSON with its id as key, and the pipeline takes it. Posts
    that are its own bear its name, and their ids begin with its prefix, which nobody else may use.

    lines: what it gave to the writer for `posts` good posts and `deletions`, in their order.
    """
    command = attribute(source.place)
    assert source.told.endswith(".")
    assert isinstance(command, click.Command) and command.help and len(command.help) > 30
    assert all(
        parameter.name and (getattr(parameter, "help", "") or isinstance(parameter, click.Argument))
        for parameter in command.params
    )
    assert len(lines) == posts + deletions
    read = []
    for line in lines:
        assert list(split_lines(line)) == [line], "a post is one line"
        found = parse_post(line, seen_at=AT, author_key=b"key")
        assert key_of(head_of(line)) == found.id, "the key that keeps a post's lines in order is its id"
        assert found.id.startswith(f"{source.prefix}:" if source.prefix else ""), "its ids begin with its prefix"
        read.append(found)
    assert sum(isinstance(found, Post) for found in read) == posts
    assert sum(isinstance(found, Deletion) for found in read) == deletions
    own = [found.source == name for found in read if isinstance(found, Post)]
    assert all(own) if source.prefix else not any(own), "posts bear its name where its row gives their prefix"
    for found in read:  # what stands before the slash is what a deletion of a whole account names
        assert account_of(found.id) is None or found.id.startswith(f"{account_of(found.id)}/")
