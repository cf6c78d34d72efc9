"""The times of a table's rows, as spreadsheets write them → text that the pipeline reads, or none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from models.errors import Rejected
from models.moments import epoch_s, rfc3339

__all__ = ["RowTimes"]

_DAY = re.compile(r"(\d\d?)([/.-])(\d\d?)\2(\d{4}|\d\d)\b")
_MIDNIGHT = re.compile(r"[ T]00:00(?::00(?:\.0+)?)?$")
_SERIAL = re.compile(r"\d{5}(?:[.,]\d+)?")
SERIAL_1970 = 25_569  # days since the end of 1899, as spreadsheets count
DAY_S = 86_400
YEAR_1990_AT, YEAR_2100_AT = 631_152_000.0, 4_102_444_800.0  # what is outside is no time of a post


class RowTimes:
    """Reads the times of one table. 5/11/2026 can be of May or of November: the other times of the table tell which.

    `unread` could not be read, `first_unread` is the first of them: a post is not lost for its time.
    """

    def __init__(self) -> None:
        self.unread, self.first_unread = 0, ""
        self._orders: set[bool] = set()  # whether the day stands first, of those that leave no choice

    def learn(self, parts: Iterable[str]) -> None:
        """Look at a row before any is read."""
        for part in parts:
            if (found := _DAY.match(part.strip())) and found[2] != ".":
                one, two = int(found[1]), int(found[3])
                if max(one, two) > 12 >= min(one, two):
                    self._orders.add(one > 12)

    def read(self, parts: Sequence[str]) -> str | None:
        """A row's time, from one cell or from two, day and clock."""
        parts = [part.strip() for part in parts]
        if len(parts) > 1:
            day = _MIDNIGHT.sub("", parts[0])  # of a day that was kept as a moment
            # A day alone is no time where a clock stands beside it that was not understood.
            parts = [" ".join((day, *parts[1:])), *([p for p in parts if ":" in p] or parts)]
        for text in parts:
            if (read := _read(self._rewritten(text))) is not None:
                return read
        self.unread += 1
        self.first_unread = self.first_unread or parts[0]
        return None

    def _rewritten(self, text: str) -> str:
        """With the year first, where it can be told which number is the day."""
        if text[4:5] == "-":  # it is
            return text
        if _SERIAL.fullmatch(text):
            return rfc3339(round((float(text.replace(",", ".")) - SERIAL_1970) * DAY_S), "seconds")
        if not (found := _DAY.match(text)):
            return text
        one, two = int(found[1]), int(found[3])
        if found[2] == "." or one > 12 or one == two:
            day_first = True
        elif two > 12:
            day_first = False
        elif len(self._orders) == 1:
            (day_first,) = self._orders
        else:
            return ""
        day, month = (one, two) if day_first else (two, one)
        year = found[4] if len(found[4]) == 4 else f"20{found[4]}"
        return f"{year}-{month:02}-{day:02} {text[found.end() :].strip(' ,')}".strip()


def _read(text: str) -> str | None:
    """What says the same and is read at once; None if the text is no time of a post."""
    try:
        at = epoch_s(text)
    except Rejected:
        return None
    if not YEAR_1990_AT <= at < YEAR_2100_AT:
        return None
    return text if text[:4].isdigit() else rfc3339(at)
