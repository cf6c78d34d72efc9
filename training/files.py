"""The one reader of the files that jobs read: lines, tables and JSON, plain or .gz, and a hash of what was read.

A line ends with a newline (and what Windows puts before it); every other sign that Unicode calls a line's end is part
of the text. What is missing, damaged or of another form is a DataError that names the file and the line.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from models.errors import CrisisError
from training.sets import DATA_SETS

__all__ = [
    "DataError",
    "data_dir",
    "files_of",
    "hash_rows",
    "numbered_lines",
    "read_aligned",
    "read_json",
    "read_lines",
    "read_rows",
    "read_table",
    "read_texts",
]


class DataError(CrisisError):
    """A data file is missing, damaged or misaligned; the message has the file, the counts and the line."""


def data_dir() -> Path:
    """CRISIS_DATA, or `../shared/data` beside the checkout. Raises DataError where there is none."""
    named = os.environ.get("CRISIS_DATA")
    path = Path(named or Path(__file__).resolve().parents[2] / "shared" / "data")
    if not path.is_dir():
        wrong = f"CRISIS_DATA={named} is no folder" if named else f"CRISIS_DATA is not set and there is no {path}"
        raise DataError(
            f"no data folder: {wrong}: set CRISIS_DATA to the folder that holds the data sets; "
            "`python -m training.data` tells which there are and where each can be had"
        )
    return path


def files_of(folder: Path, pattern: str) -> list[Path]:
    """A folder's files of that pattern, by name. Raises DataError if there are none; it tells where they can be had."""
    found = sorted(folder.glob(pattern))
    if not found:
        raise DataError(f"missing data files {folder / pattern}{_had(folder)}")
    return found


def _had(folder: Path) -> str:
    """Where the set of that folder can be had, and where more is said of it, as the end of an error; "" if unknown."""
    told = [f"it holds {known.holds}, from {known.origin}"] if (known := DATA_SETS.get(folder.name)) else []
    told += [f"see {about}"] if (about := folder / "README.md").exists() else []
    return f": {'; '.join(told)}" if told else ""


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number from 1, line without its end) of a UTF-8 text file. Raises DataError if it is missing or damaged."""
    number = 0
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, 1):
                yield number, line.removesuffix("\n").removesuffix("\r")
    except FileNotFoundError:
        raise DataError(f"missing data file {path}{_had(path.parent)}") from None
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"damaged data file {path} after line {number}: {error}") from None


def read_lines(path: Path) -> list[str]:
    """All lines, the empty ones too."""
    return [line for _, line in numbered_lines(path)]


def read_texts(path: Path) -> list[str]:
    """All lines but the empty ones."""
    return [line for line in read_lines(path) if line.strip()]


def read_rows(path: Path) -> Iterator[dict[str, str]]:
    """Rows of a TSV with a header, cells as they stand: nothing is quoted."""
    return (row for _, row in _rows(path))


def read_json(path: Path) -> Iterator[dict]:
    """The objects of a file with one to a line; empty lines are passed over."""
    return (row for _, row in _objects(path))


def read_table(path: Path, columns: Iterable[str], optional: Iterable[str] = ()) -> list[dict[str, str]]:
    """Rows of a .tsv or .jsonl file (or either with .gz), reduced to the columns asked for.

    A JSON list counts as its first item. Raises DataError naming the file, the line and the column at fault.
    """
    wanted, may = tuple(columns), tuple(optional)
    suffixes = path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:]
    if suffixes[:1] == [".tsv"]:
        found = _rows(path)
    elif suffixes[:1] in ([".jsonl"], [".ndjson"]):
        found = _objects(path)
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


def read_aligned(folder: Path, langs: list[str] | None = None) -> dict[str, list[str]]:
    """Line-aligned `xx.txt.gz` files of a folder by language. Raises DataError if two differ in length."""
    found = [path.name.removesuffix(".txt.gz") for path in files_of(folder, "*.txt.gz")]
    texts = {lang: read_lines(folder / f"{lang}.txt.gz") for lang in (langs or found)}
    if "en" not in texts:
        raise DataError(f"{folder} has no en.txt.gz to align with")
    for lang, lines in texts.items():
        if len(lines) != len(texts["en"]):
            raise DataError(
                f"misaligned: {folder / lang}.txt.gz has {len(lines)} lines, en.txt.gz {len(texts['en'])};"
                f" the first without a partner is line {min(len(lines), len(texts['en'])) + 1}"
            )
    return texts


def hash_rows(rows: Iterable[object]) -> str:
    """sha256 over the rows in order: which data a run saw."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(repr(row).encode("utf-8", "surrogatepass") + b"\x1e")
    return digest.hexdigest()


def _cell(value: object) -> str:
    return _cell(value[0]) if isinstance(value, list) else str(value)


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    lines = numbered_lines(path)
    header = next(lines, (1, ""))[1].split("\t")
    if header == [""]:
        raise DataError(f"empty data file {path}: it has not even a header")
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) != len(header):
            raise DataError(f"{path}, line {number}: {len(cells)} columns, the header has {len(header)}")
        yield number, dict(zip(header, cells, strict=True))


def _objects(path: Path) -> Iterator[tuple[int, dict]]:
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DataError(f"{path}, line {number}: {error}") from None
        if not isinstance(row, dict):
            raise DataError(f"{path}, line {number}: not a JSON object")
        yield number, row
