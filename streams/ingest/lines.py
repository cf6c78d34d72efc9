"""Files and streams of bytes → JSON lines, one post each. Nothing is dropped: what cannot be read stays a line that
`parse_post` will refuse and count.
"""

from __future__ import annotations

import base64
import codecs
import contextlib
import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from models.errors import ConfigError
from models.undecodable import UNDECODABLE
from streams.config.sections import WriterConfig
from streams.ingest.tables import read_table

__all__ = [
    "SEE_REJECTED",
    "Head",
    "head_of",
    "is_table",
    "key_of",
    "open_lines",
    "oversize_marker",
    "read_frames",
    "read_lines",
    "refused_line",
]

CSV_SUFFIXES = (".csv", ".tsv")
HEAD_BYTES = 1024  # of an oversized line that are kept
FRAME_LINES = 100  # of a raw record made here
LINE_BYTES = WriterConfig.line_bytes
SEE_REJECTED = "`crisis rejected list` counts those that workers refuse"  # no source judges its posts


class Head(Struct):
    """What the ingester itself needs of a line: its key and, for a replay, its time."""

    id: str | int | None = None
    created_at: str | int | float | None = None


_head = msgspec.json.Decoder(Head).decode


def head_of(line: bytes) -> Head:
    """Id and time of a line; empty where it has none or is not readable."""
    try:
        return _head(line)
    except UNDECODABLE:
        return Head()


def key_of(head: Head) -> str | None:
    """The key that keeps all lines about one post in order."""
    return None if head.id is None else str(head.id)


def is_table(path: Path) -> bool:
    """CSV or TSV by its name, compressed or not."""
    return Path(path.name.removesuffix(".gz")).suffix.lower() in CSV_SUFFIXES


def oversize_marker(head: bytes, size: int) -> bytes:
    """What stands in for a line of `size` bytes that no broker would take: it becomes a reject like any other."""
    marker = {"oversize": size, "head": base64.b64encode(head[:HEAD_BYTES]).decode()}
    return msgspec.json.encode(marker)


def refused_line(unread: bytes) -> bytes:
    """What stands in for a line that a source could not read: a JSON string of it, which is refused as not an object
    and keeps every byte.

    As it came it could be read further on after all, where more is stripped or less is asked for, and be the edit or
    the deletion of a post of somebody else.
    """
    text = unread.decode("utf-8", "surrogateescape")  # bytes that are no UTF-8 stay what they are, and are refused too
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogateescape")


def read_lines(stream: BinaryIO, longest: int) -> Iterator[bytes]:
    """Lines of a stream in bounded memory: one of more than `longest` bytes comes as its oversize marker."""
    while piece := stream.readline(longest + 1):
        if len(piece) <= longest or piece.endswith(b"\n"):
            yield piece
            continue
        size = len(piece)
        while rest := stream.readline(1 << 16):
            size += len(rest)
            if rest.endswith(b"\n"):
                break
        yield oversize_marker(piece, size)


class Lines:
    """The lines of a file that is open: iterate, once. `number` of them were read, `share` of the file's bytes."""

    def __init__(
        self, path: Path, disk: BinaryIO, stream: BinaryIO, longest: int, on_note: Callable[[str], None]
    ) -> None:
        self.number = 0
        self._path, self._disk, self._stream, self._longest, self._on_note = path, disk, stream, longest, on_note
        self._size = max(1, path.stat().st_size)

    @property
    def share(self) -> float:
        """How much of the file was read, of a compressed one too: 0 to 1."""
        return self._disk.tell() / self._size

    def __iter__(self) -> Iterator[bytes]:
        try:
            for line in self._read():
                self.number += 1
                yield line
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ConfigError(
                f"{self._path}, after line {self.number}: this is not a whole gzip file ({error}): copy or compress it "
                "again"
            ) from error
        except OSError as error:
            raise ConfigError(f"{self._path}, after line {self.number}: {error}") from error

    def _read(self) -> Iterator[bytes]:
        self._refuse_utf_16()
        if not is_table(self._path):
            yield from read_lines(self._stream, self._longest)
            return
        for row in read_table(self._stream, self._path.name, self._on_note):
            yield row if len(row) <= self._longest else oversize_marker(row, len(row))

    def _refuse_utf_16(self) -> None:
        """As spreadsheets save "Unicode text": each line would be refused, with reasons that tell nobody why."""
        start = self._stream.peek(2)[:2]  # type: ignore[attr-defined]
        if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) or (len(start) == 2 and b"\0" in start):
            raise ConfigError(f"{self._path} is UTF-16: save it as UTF-8 (iconv -f UTF-16 -t UTF-8)")


@contextlib.contextmanager
def open_lines(
    path: Path, longest: int = LINE_BYTES, on_note: Callable[[str], None] = lambda told: None
) -> Iterator[Lines]:
    """The lines of a JSONL file, or the rows of a CSV or TSV as JSON lines; gzip by the suffix. The one reader of files
    of posts: what it gives is what live ingest sends.

    longest: bytes; a longer line comes as its oversize marker, which is refused like any other bad post. on_note: is
    told how a table is read. Raises ConfigError for a file that cannot be read and, when it is read, for a .gz that is
    none or is cut off, for UTF-16, and for a table without a text.
    """
    try:
        disk = path.open("rb")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    with disk, contextlib.ExitStack() as stack:
        stream = stack.enter_context(gzip.open(disk, "rb")) if path.suffix == ".gz" else disk
        yield Lines(path, disk, stream, longest, on_note)  # type: ignore[arg-type]


def read_frames(lines: Iterator[bytes], size: int = FRAME_LINES) -> Iterator[bytes]:
    """Raw records of `size` lines, as `crisis ingest file` would write them."""
    batch: list[bytes] = []
    for line in lines:
        if line.strip():
            batch.append(line.rstrip(b"\r\n"))
        if len(batch) == size:
            yield b"\n".join(batch)
            batch = []
    if batch:
        yield b"\n".join(batch)
