"""The cells of a CSV or TSV, whatever parts them, in bounded memory; stray quotes swallow no rows."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import TextIO

__all__ = ["Row", "open_cells"]

ROW_CHARS = 1 << 20  # of a row; the longest line that is read is shorter
Row = list[str] | Exception  # its cells, or why there are none


def open_cells(text: TextIO, name: str) -> tuple[list[str], str, Iterator[Row]]:
    """The titles of a table, what parts its cells, and its rows. name: of the file."""
    csv.field_size_limit(ROW_CHARS)
    header = text.readline(ROW_CHARS)
    delimiter = _delimiter(header, name)
    titles = next(csv.reader([header], delimiter=delimiter), [])
    return titles, delimiter, _rows(_lines(text), delimiter, len(titles))


def _delimiter(header: str, name: str) -> str:
    """A tab where a .tsv has one; where the header names one column, what no text holds."""
    if "\t" in header and ".tsv" in name.lower():
        return "\t"
    most = max(",;\t|", key=header.count)
    return most if most in header else "\x1f"


def _lines(text: TextIO) -> Iterator[str]:
    """Lines in bounded memory: what is longer than any table's comes in pieces, which are rows that cannot be read."""
    while line := text.readline(ROW_CHARS):
        yield line


def _rows(text: Iterable[str], delimiter: str, width: int) -> Iterator[Row]:
    """The cells of each row. A quote that is opened and never closed quotes nothing, nor one that is closed in a later
    row of a TSV: else one stray quote would make one post of all the rows after it.
    """
    taken: list[str] = []  # lines of the row that is being read
    ended = False

    def lines() -> Iterator[str]:
        nonlocal ended
        for line in text:
            taken.append(line)
            yield line
        ended = True

    def are_rows() -> bool:
        fits = isinstance(row, list) and len(row) <= width
        if (ended or not fits) and sum(line.count('"') for line in taken) % 2:
            return True
        return delimiter == "\t" and min(width, len(taken)) > 1 and all(line.count("\t") == width - 1 for line in taken)

    rows = csv.reader(lines(), delimiter=delimiter)
    while True:
        try:
            row: Row | None = next(rows, None)
        except csv.Error as error:
            row = error
        if are_rows():
            for line in taken:  # what is quoted in whole lines stays quoted
                quoting = csv.QUOTE_NONE if line.count('"') % 2 or delimiter == "\t" else csv.QUOTE_MINIMAL
                yield from csv.reader([line], delimiter=delimiter, quoting=quoting)
        elif row is None:
            return
        else:
            yield row
        taken.clear()
