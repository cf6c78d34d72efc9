"""Rows of a CSV or TSV with a header → JSON lines, one post each, whatever its columns are called."""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import chain
from typing import BinaryIO

from models.errors import ConfigError
from streams.ingest.cells import Row, open_cells
from streams.ingest.row_times import RowTimes

__all__ = ["read_table"]

HEAD_ROWS = 1000  # that are read before the first is given, to learn how the table writes its times
HEAD_CHARS = 1 << 20  # the same, where rows are long
EQUAL_ROWS = 1 << 20  # without an id, among which equal ones are counted: they take some 100 MB
NOTE_CHARS = 500
# What tables call our fields. Ours come first, so a table that has both is read by ours. A blank parts the names of two
# columns that are read together.
COLUMNS = {
    "id": ("id", "post_id", "tweet_id", "tweetid", "status_id", "message_id"),
    "text": ("text", "tweet_text", "tweet", "message", "content", "body", "raw_text", "full_text"),
    "created_at": ("created_at", "timestamp", "datetime", "post_created", "posted", "date time", "time", "date",
        "epoch"),
    "lang": ("lang", "language"),
    "source": ("source", "network", "channel", "platform"),
    "author": ("author", "user_name", "username", "user", "screen_name"),
    "url": ("url", "uri", "link"),
    "reply_to": ("reply_to",),
    "repost_of": ("repost_of",),
    "kind": ("kind",),
    "lat": ("lat", "latitude", "geo+lat"),
    "lon": ("lon", "lng", "long", "longitude", "geo+lon"),
}  # fmt: skip
KINDS = ("create", "update", "delete")  # a column of other kinds, such as need and offer in our own export, is not ours
_ROUNDED = re.compile(r"\d(?:[.,]\d+)?E\+\d+", re.IGNORECASE)  # what a spreadsheet makes of a long id: of many the same
_TAG = re.compile(r"#[a-z]\w*(?:\s*\+\w+)*", re.IGNORECASE)  # https://hxlstandard.org/standard/1-1final/
_BETWEEN = re.compile(r"[\s_-]+")


def read_table(stream: BinaryIO, name: str, on_note: Callable[[str], None] = lambda told: None) -> Iterator[bytes]:
    """Rows of a CSV with a header → JSON lines. A row without an id gets one from the file's name and what is read of
    it, so that it is the same post when it is read again, in a newer export too. What is no row becomes a line that is
    refused.

    on_note: is told which column is read as what and, at the end, which cells could not be read. Raises ConfigError if
    there is no column that could be the text.
    """
    # Undecodable bytes go through unchanged, so that the post is refused as bad UTF-8 with its bytes.
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
    try:
        titles, delimiter, rows = open_cells(text, name)
        table = _Table(name, titles, delimiter)
        on_note(table.columns())
        yield from table.lines(rows)
        for told in table.unread():
            on_note(told)
    finally:
        text.detach()  # the stream is the caller's to close


class _Table:
    """What the header says, and what could not be read so far."""

    def __init__(self, name: str, titles: list[str], delimiter: str) -> None:
        self.width = len(titles)
        self._name, self._titles, self._delimiter = name, titles, delimiter
        places = _places(titles)
        if "text" not in places:
            wanted, found = " or ".join(COLUMNS["text"]), ", ".join(titles).lower()[:NOTE_CHARS] or "none"
            raise ConfigError(f"{name}: no column named {wanted}; it has {found}")
        self._when = places.pop("created_at", ())
        self._places = {field: at for field, (at,) in places.items()}
        self._times = RowTimes()
        self._equal: dict[bytes, int] = {}
        self._rounded, self._first_rounded = 0, ""

    def columns(self) -> str:
        """Which column is read as what."""
        read = [f"{field} from {self._titles[at]!r}" for field, at in self._places.items()]
        if self._when:
            read.append(f"created_at from {' and '.join(repr(self._titles[at]) for at in self._when)}")
        return f"{self._name}: {', '.join(read)[:NOTE_CHARS]}"

    def unread(self) -> Iterator[str]:
        """Which cells could not be read."""
        if self._times.unread:
            yield (
                f"{self._name}: {self._times.unread:,} times could not be read, the first is "
                f"{self._times.first_unread[:60]!r}: these posts count as written when they are read. Write times as "
                "2026-02-06T04:17:35Z"
            )
        if self._rounded:
            yield (
                f"{self._name}: {self._rounded:,} ids were rounded by a spreadsheet, the first is "
                f"{self._first_rounded!r}: their rows get others. Keep ids as text there"
            )

    def lines(self, rows: Iterator[Row]) -> Iterator[bytes]:
        """A JSON line for each row; one that cannot be read is a string, which is refused as not an object."""
        for number, row in enumerate(self._looked_into(rows), 1):
            if isinstance(row, Exception):
                why = str(row)
            elif not row or (number == 1 and _are_tags(row)):
                continue
            elif fitted := self._fitted(row):
                yield self._post(fitted)
                continue
            else:
                why = f"{len(row)} cells under {self.width} titles: quote a text that holds {self._delimiter!r}"
            yield json.dumps(f"{self._name}, row {number}: {why}").encode()

    def _looked_into(self, rows: Iterator[Row]) -> Iterator[Row]:
        """The rows, once the first ones told how the table writes its times."""
        head: list[Row] = []
        chars = 0
        while self._when and len(head) < HEAD_ROWS and chars < HEAD_CHARS and (row := next(rows, None)) is not None:
            head.append(row)
            if not isinstance(row, Exception):
                self._times.learn(self._time_of(row))
                chars += sum(map(len, row))
        return chain(head, rows)

    def _fitted(self, row: list[str]) -> list[str] | None:
        """The row, no wider than its header; None where a cell may stand under the title of another."""
        if len(row) <= self.width or not any(cell.strip() for cell in row[self.width :]):
            return row
        if (last := self.width - 1) == self._places["text"]:  # a text that nobody quoted
            return [*row[:last], self._delimiter.join(row[last:])]
        return None

    def _time_of(self, row: list[str]) -> list[str]:
        return [row[at] for at in self._when if at < len(row) and row[at].strip()]

    def _post(self, row: list[str]) -> bytes:
        cells = {field: row[at] for field, at in self._places.items() if at < len(row) and row[at].strip()}
        when = self._time_of(row)
        if "id" in cells and _ROUNDED.fullmatch(cells["id"].strip()):
            self._rounded += 1
            self._first_rounded = self._first_rounded or cells["id"].strip()
            del cells["id"]
        if (kind := cells.pop("kind", "").strip().lower()) in KINDS:
            cells["kind"] = kind
        post_id = cells.pop("id", None) or self._own_id(cells, when)
        lat, lon = cells.pop("lat", None), cells.pop("lon", None)
        post: dict[str, object] = {"id": post_id, "text": "", **cells}
        if when and (at := self._times.read(when)) is not None:
            post["created_at"] = at
        if lat and lon and (geo := _geo(lat, lon)):
            post["geo"] = geo
        return json.dumps(post, ensure_ascii=False).encode("utf-8", "surrogateescape")

    def _own_id(self, cells: dict[str, str], when: list[str]) -> str:
        """Of what is read of the row, and how many equal ones stood before it: several people may say the same."""
        read = "\x1f".join([*cells, *cells.values(), *when]).encode("utf-8", "surrogateescape")
        digest = blake2b(read, digest_size=8).digest()
        if len(self._equal) == EQUAL_ROWS:
            self._equal.clear()
        before = self._equal[digest] = self._equal.get(digest, -1) + 1
        return f"{self._name}/{digest.hex()}-{before}" if before else f"{self._name}/{digest.hex()}"


def _places(titles: list[str]) -> dict[str, tuple[int, ...]]:
    """Where our fields stand, by the first name that the header has."""
    names = [_BETWEEN.sub("_", title.strip().lstrip("#").lower()) for title in titles]
    return {
        field: next(tuple(map(names.index, name.split())) for name in wanted if set(name.split()) <= set(names))
        for field, wanted in COLUMNS.items()
        if any(set(name.split()) <= set(names) for name in wanted)
    }


def _are_tags(row: list[str]) -> bool:
    """The row of hashtags under the titles that HXL has; one alone may be what somebody wrote."""
    tags = [cell.strip() for cell in row if cell.strip()]
    return len(tags) > 1 and all(map(_TAG.fullmatch, tags))


def _geo(lat: str, lon: str) -> dict[str, float] | None:
    """18.54 or 18,54; a place that cannot be read is no reason to lose the post."""
    with contextlib.suppress(ValueError):
        if math.isfinite(north := float(lat.replace(",", "."))) and math.isfinite(east := float(lon.replace(",", "."))):
            return {"lat": north, "lon": east}
    return None
