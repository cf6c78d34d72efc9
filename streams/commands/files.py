"""The files that commands read and write: named rightly, written whole or not at all, and how far one has come."""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from models.errors import Rejected
from models.moments import epoch_s
from streams.ingest.lines import head_of, open_lines

__all__ = ["FILE", "OUT", "Looked", "at_rest", "look_through", "not_the_input", "note", "progress", "tell", "whole"]

note = Console(stderr=True)

STREAM = Path("-")  # standard input where a file is read, standard output where one is written
HEAD_BYTES = 4096
MAX_AHEAD_S = 86_400.0  # as far as a post may be ahead of our clock; what is further ahead tells no time
SHOWN_EACH = 1000  # lines that are looked through between two looks at how far that is
TOLD_EACH_S = 30.0  # where there is no terminal for a bar


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


FILE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
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
    """To write a file that is there in full or, after an error, as it was before. A pipe, a terminal or `-`, standard
    output, is written to at once. Raises OSError naming the file.
    """
    if path is None:
        yield None
    elif path == STREAM:
        out = click.get_binary_stream("stdout")
        yield out
        out.flush()
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
    files = [out for out in outs if out is not None and out != STREAM]
    named = [out.resolve() for out in files if out.is_file() or not out.exists()]
    for out in named:
        if file is not None and out == file.resolve():
            raise click.ClickException(f"{out} is the file that is read: name another one to write")
        if named.count(out) > 1:
            raise click.ClickException(f"{out} is named twice: what is written first would be lost")


@contextlib.contextmanager
def at_rest(file: Path) -> Iterator[Path]:
    """The file; of what can be read only once, a pipe or `-`, a copy that is gone afterwards: it is looked through
    before it is read.
    """
    if file != STREAM and file.is_file():
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="crisis-") as folder:
        copy = Path(folder) / ("stdin" if file == STREAM else file.name)
        with click.open_file(str(file), "rb") as pipe, io.BufferedWriter(Named(copy, copy)) as out:
            shutil.copyfileobj(pipe, out)
        yield copy


def tell(line: str) -> None:
    """Print a line on standard error, whole and as it is."""
    note.print(line, highlight=False, markup=False, soft_wrap=True)


class Looked(NamedTuple):
    """What one look through a file of posts found, before it is read."""

    posts: int
    clock_at: float  # epoch seconds: what stands for our clock while it is read
    clock: str  # which time that is
    head: bytes  # how it begins, unpacked


def look_through(
    path: Path,
    check: Callable[[int, bytes], object] = lambda number, line: None,
    show: Callable[[float, int], object] = lambda share, posts: None,
) -> Looked:
    """Count the posts of a file and find the time it is of: the latest that one of them tells, which copies and
    archives keep, or where none tells one, when the file was written. How a table is read is told on standard error.

    check: is given each line that is not blank and its number, from 1 on. show: how far it is.
    """
    posts, latest_at, head = 0, 0.0, b""
    soon_at = time.time() + MAX_AHEAD_S
    with open_lines(path, on_note=tell) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            posts += 1
            head += line[: HEAD_BYTES - len(head)]
            with contextlib.suppress(Rejected):
                at = epoch_s(head_of(line).created_at or 0.0)
                latest_at = at if latest_at < at <= soon_at else latest_at
            check(number, line)
            if posts % SHOWN_EACH == 0:
                show(lines.share, posts)
    if path.suffix.lower() != ".gz":
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)  # as it is: rows of a table are lines of ours
    if latest_at:
        return Looked(posts, latest_at, "the latest time in the file", head)
    return Looked(posts, path.stat().st_mtime, "when the file was written", head)


@contextlib.contextmanager
def progress(
    path: Path,
    what: str,
    rows: int | None = None,
    check: Callable[[int, bytes], object] = lambda number, line: None,
) -> Iterator[tuple[Looked, Callable[[int], None]]]:
    """A progress bar over the posts of a file, which is looked through first; without a terminal, a line now and then.
    Yields what was found, and advance(n). Refuses a file that has not `rows` posts, if given.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]} posts"))
    with Progress(*columns, TimeRemainingColumn(), console=note) as bar:
        told_at, done = time.monotonic(), 0

        def show(task: TaskID, completed: float, told: str) -> None:
            nonlocal told_at
            bar.update(task, completed=completed, told=told)
            if not note.is_terminal and (now := time.monotonic()) - told_at > TOLD_EACH_S:
                told_at = now
                tell(f"{bar.tasks[0].description}: {told} posts")

        def advance(n: int) -> None:
            nonlocal done
            done += n
            show(task, done, f"{done:,}/{looked.posts:,}")

        counting = bar.add_task("count", total=1.0, told="0")
        looked = look_through(path, check, lambda share, posts: show(counting, share, f"{posts:,}"))
        bar.remove_task(counting)
        if rows is not None and rows != looked.posts:
            raise click.ClickException(
                f"{rows:,} rows of vectors for the {looked.posts:,} posts of {path}: row i must be line i"
            )
        task = bar.add_task(what, total=looked.posts, told=f"0/{looked.posts:,}")
        yield looked, advance
        if done != looked.posts:
            raise click.ClickException(
                f"{path} had {looked.posts:,} lines when they were counted and {done:,} when they were read: it is "
                "being written, so read it again when it is whole"
            )
