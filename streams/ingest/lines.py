"""Files and streams of bytes → JSON lines, one post each. Nothing is dropped: what cannot be read stays a line that
`parse_post` will refuse and count.
"""

from __future__ import annotations

import base64
import codecs
import contextlib
import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from models.errors import ConfigError
from models.undecodable import UNDECODABLE
from streams.config.sections import WriterConfig

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
ROW_CHARS = 1 << 20  # of a row of a table; the longest line that is read is shorter
FRAME_LINES = 100  # of a raw record made here
LINE_BYTES = WriterConfig.line_bytes
SEE_REJECTED = "`crisis rejected list` counts those that workers refuse"  # no source judges its posts
# What tables call our fields. Ours come first, so a table that has both is read by ours.
COLUMNS = {
    "id": ("id", "post_id", "tweet_id", "tweetid", "status_id", "message_id"),
    "text": ("text", "tweet_text", "tweet", "message", "content", "body", "raw_text"),
    "created_at": ("created_at", "timestamp", "datetime", "time", "date", "epoch"),
    "lang": ("lang", "language"),
    "source": ("source", "network", "channel", "platform"),
    "author": ("author", "user_name", "username", "user", "screen_name"),
    "url": ("url", "uri", "link"),
    "reply_to": ("reply_to",),
    "repost_of": ("repost_of",),
    "kind": ("kind",),
    "lat": ("lat", "latitude", "geo+lat"),
    "lon": ("lon", "lng", "long", "longitude", "geo+lon"),
}


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


def read_table(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """Rows of a CSV with a header → JSON lines. Rows without an id get one from the file's name and their number.

    Raises ConfigError if there is no column that could be the text.
    """
    csv.field_size_limit(ROW_CHARS)
    # Undecodable bytes go through unchanged, so that the post is refused as bad UTF-8 with its bytes.
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
    try:
        yield from _rows(text, name)
    finally:
        text.detach()  # the stream is the caller's to close


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    """Lines in bounded memory: what is longer than any table's comes in pieces, which are rows that cannot be read."""
    while line := text.readline(ROW_CHARS):
        yield line


def _rows(text: io.TextIOWrapper, name: str) -> Iterator[bytes]:
    header = text.readline(ROW_CHARS)
    delimiter = max(",;\t|", key=header.count)
    titles = [title.strip().lstrip("#").lower() for title in next(csv.reader([header], delimiter=delimiter), [])]
    places = {
        field: next(titles.index(name) for name in names if name in titles)
        for field, names in COLUMNS.items()
        if any(name in titles for name in names)
    }
    if "text" not in places:
        wanted, found = " or ".join(COLUMNS["text"]), ", ".join(titles)[:500] or "none"
        raise ConfigError(f"{name}: no column named {wanted}; it has {found}")
    for number, row in enumerate(_cells(_lines(text), delimiter), 1):
        if isinstance(row, csv.Error):
            yield json.dumps(f"{name}, row {number}: {row}").encode()  # refused as not an object
        elif row:
            yield _row_line(row, places, f"{name}/{number}")


def _cells(text: Iterable[str], delimiter: str) -> Iterator[list[str] | csv.Error]:
    """The cells of each row. A quote that is opened and never closed quotes nothing: else one stray quote would make
    one post of all the rows after it.
    """
    taken: list[str] = []  # lines of the row that is being read
    ended = False

    def lines() -> Iterator[str]:
        nonlocal ended
        for line in text:
            taken.append(line)
            yield line
        ended = True

    rows = csv.reader(lines(), delimiter=delimiter)
    while True:
        try:
            row: list[str] | csv.Error | None = next(rows, None)
        except csv.Error as error:
            row = error
        if (ended or isinstance(row, csv.Error)) and len(taken) > 1 and sum(line.count('"') for line in taken) % 2:
            yield from csv.reader(taken, delimiter=delimiter, quoting=csv.QUOTE_NONE)
        elif row is None:
            return
        else:
            yield row
        taken.clear()


def _row_line(row: list[str], places: dict[str, int], default_id: str) -> bytes:
    cells = {field: row[i] for field, i in places.items() if i < len(row) and row[i].strip()}
    lat, lon = cells.pop("lat", None), cells.pop("lon", None)
    post: dict[str, object] = {"id": default_id, **cells}
    post.setdefault("text", "")
    try:
        if lat and lon:
            post["geo"] = {"lat": float(lat), "lon": float(lon)}
    except ValueError:
        pass  # a place that cannot be read is no reason to lose the post
    return json.dumps(post, ensure_ascii=False).encode("utf-8", "surrogateescape")


class Lines:
    """The lines of a file that is open: iterate, once. `number` of them were read, `share` of the file's bytes."""

    def __init__(self, path: Path, disk: BinaryIO, stream: BinaryIO, longest: int) -> None:
        self.number = 0
        self._path, self._disk, self._stream, self._longest = path, disk, stream, longest
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
        for row in read_table(self._stream, self._path.name):
            yield row if len(row) <= self._longest else oversize_marker(row, len(row))

    def _refuse_utf_16(self) -> None:
        """As spreadsheets save "Unicode text": each line would be refused, with reasons that tell nobody why."""
        start = self._stream.peek(2)[:2]  # type: ignore[attr-defined]
        if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) or (len(start) == 2 and b"\0" in start):
            raise ConfigError(f"{self._path} is UTF-16: save it as UTF-8 (iconv -f UTF-16 -t UTF-8)")


@contextlib.contextmanager
def open_lines(path: Path, longest: int = LINE_BYTES) -> Iterator[Lines]:
    """The lines of a JSONL file, or the rows of a CSV or TSV as JSON lines; gzip by the suffix. The one reader of files
    of posts: what it gives is what live ingest sends.

    longest: bytes; a longer line comes as its oversize marker, which is refused like any other bad post. Raises
    ConfigError for a file that cannot be read and, when it is read, for a .gz that is none or is cut off, for UTF-16,
    and for a table without a text.
    """
    try:
        disk = path.open("rb")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    with disk, contextlib.ExitStack() as stack:
        stream = stack.enter_context(gzip.open(disk, "rb")) if path.suffix == ".gz" else disk
        yield Lines(path, disk, stream, longest)  # type: ignore[arg-type]


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
