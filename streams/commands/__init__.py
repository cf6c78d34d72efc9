"""The subcommands of `crisis`, one file each, and the group that imports one when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

__all__ = ["LazyGroup", "attribute"]


def attribute(place: str) -> Any:
    """What `module:attribute` names, imported now."""
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)


class LazyGroup(click.Group):
    """A group of commands of which none is imported before it is used.

    table: name → (module:attribute, one line of help); title: what the help calls them.
    """

    def __init__(
        self, *args: Any, table: Mapping[str, tuple[str, str]], title: str = "Commands", **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._table, self._title = table, title

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self._table:
            return None
        return attribute(self._table[name][0])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section(self._title):
            formatter.write_dl([(name, text) for name, (_, text) in self._table.items()])
