"""The files that commands read and write: named rightly, written whole or not at all, and how far one has come."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from streams.ingest.lines import open_lines

__all__ = ["FILE", "OUT", "not_the_input", "note", "progress", "whole"]

note = Console(stderr=True)


class OutFile(click.Path):
    """A file to write, in a folder that is there: told at once, not when hours of work are to be written."""

    name = "file"

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=Path)

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(super().convert(value, param, ctx))
        if not path.parent.is_dir():
            self.fail(f"there is no folder {str(path.parent)!r}", param, ctx)
        return path


FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
OUT = OutFile()


class Named(io.FileIO):
    """A file that is written; an error names it, as those of opening do: a full disk shows here."""

    def __init__(self, path: Path, shown: Path) -> None:
        super().__init__(path, "w")
        self._shown = shown

    def write(self, given: Any) -> int:
        try:
            return super().write(given)
        except OSError as error:
            error.filename = str(self._shown)
            raise


@contextlib.contextmanager
def whole(path: Path | None) -> Iterator[BinaryIO | None]:
    """To write a file that is there in full or, after an error, as it was before. A pipe or terminal is written to at
    once. Raises OSError naming the file.
    """
    if path is None:
        yield None
    elif path.exists() and not path.is_file():
        with io.BufferedWriter(Named(path, path)) as out:
            yield out
    else:
        path = path.resolve()  # through a link, not in its place
        draft = path.with_name(f".{path.name}.part")
        try:
            with io.BufferedWriter(Named(draft, path)) as out:
                yield out
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)


def not_the_input(file: Path | None, *outs: Path | None) -> None:
    """Raises ClickException if a file to write is the file that is read, or is named twice."""
    named = [out.resolve() for out in outs if out is not None and (out.is_file() or not out.exists())]
    for out in named:
        if file is not None and out == file.resolve():
            raise click.ClickException(f"{out} is the file that is read: name another one to write")
        if named.count(out) > 1:
            raise click.ClickException(f"{out} is named twice: what is written first would be lost")


@contextlib.contextmanager
def progress(path: Path, what: str, rows: int | None = None) -> Iterator:
    """A progress bar over the posts of a file; yields advance(n). Refuses a file that has not `rows`
    posts, if given.
    """
    with open_lines(path) as lines:
        total = sum(bool(line.strip()) for line in lines)
    if rows is not None and rows != total:
        raise click.ClickException(f"{rows:,} rows of vectors for the {total:,} posts of {path}: row i must be line i")
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("posts"), TimeRemainingColumn())
    with Progress(*columns, console=note) as bar:
        task = bar.add_task(what, total=total)
        yield lambda n: bar.advance(task, n)
