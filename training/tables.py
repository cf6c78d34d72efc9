"""Labelled rows and plain texts from files of the usual forms, and a small set of posts that is always there."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from models.queries import aid_queries, background_texts
from training.data import DataError

__all__ = ["bundled_posts", "hash_rows", "read_table"]


class BundledPost(Struct, frozen=True):
    """A sentence of the bundled query packs or of the background: invented, so that smoke presets need no data."""

    text: str
    lang: str  # "" for the background
    query: str  # the query's id, "background" for the rest


def bundled_posts() -> list[BundledPost]:
    """About 2,700 sentences of needs and offers of the query packs and 375 of the background, in file order."""
    asked = [BundledPost(text, lang, query.id) for query in aid_queries() for lang, text in query.texts()]
    return asked + [BundledPost(text, "", "background") for text in background_texts()]


def read_texts(path: Path) -> list[str]:
    """The lines of a text file, plain or .gz, without the empty ones. Raises DataError if it is missing or damaged."""
    return [line for _, line in _lines(path) if line.strip()]


def read_table(path: Path, columns: Iterable[str], optional: Iterable[str] = ()) -> list[dict[str, str]]:
    """Rows of a .tsv or .jsonl file (or either with .gz), reduced to the columns asked for.

    A JSON list counts as its first item. Raises DataError naming the file, the line and the column at fault.
    """
    wanted, may = tuple(columns), tuple(optional)
    suffixes = path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:]
    if suffixes[:1] == [".tsv"]:
        found = _tsv(path)
    elif suffixes[:1] in ([".jsonl"], [".ndjson"]):
        found = _jsonl(path)
    else:
        raise DataError(f"{path} is neither .tsv nor .jsonl (.gz allowed): cannot tell its columns")
    rows = []
    for number, row in found:
        missing = [name for name in wanted if row.get(name) in (None, "", [])]
        if missing:
            raise DataError(f"{path}, line {number}: no {', '.join(missing)}; it has {', '.join(row)}")
        rows.append({name: _cell(row[name]) for name in (*wanted, *may) if row.get(name) not in (None, "", [])})
    if not rows:
        raise DataError(f"{path} holds no row")
    return rows


def hash_rows(rows: Iterable[object]) -> str:
    """sha256 over the rows in order: which data a run saw."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(repr(row).encode("utf-8", "surrogatepass") + b"\x1e")
    return digest.hexdigest()


def _cell(value: object) -> str:
    return _cell(value[0]) if isinstance(value, list) else str(value)


def _tsv(path: Path) -> Iterator[tuple[int, dict]]:
    lines = _lines(path)
    header = next(lines, (1, ""))[1].split("\t")
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) != len(header):
            raise DataError(f"{path}, line {number}: {len(cells)} columns, the header has {len(header)}")
        yield number, dict(zip(header, cells, strict=True))


def _jsonl(path: Path) -> Iterator[tuple[int, dict]]:
    for number, line in _lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DataError(f"{path}, line {number}: {error}") from None
        if not isinstance(row, dict):
            raise DataError(f"{path}, line {number}: not a JSON object")
        yield number, row


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):  # noqa: B007 - named in the error below
                yield number, line.rstrip("\n")
    except FileNotFoundError:
        raise DataError(f"missing data file {path}") from None
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"damaged data file {path} after line {number}: {error}") from None
