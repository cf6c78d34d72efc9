"""Moments in time. Inside, a moment is a float: seconds since 1970, UTC, in a name that ends in `_at` or is `at`.

Outside it is RFC 3339: in alerts, cluster events, dead letters, search hits, exported labels, receipts and result
files. What only these programs read (frames, Redis, the topics `queries`, `encoders` and `labels`) holds seconds, and
Kafka's own milliseconds are turned where a client is called (streams/broker/reading.py).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from models.errors import Rejected

__all__ = ["epoch_s", "has_zone", "rfc3339", "told"]

_NAMES = "january february march april may june july august september october november december".split()
_MONTHS = {name[:n]: month for month, name in enumerate(_NAMES, 1) for n in (3, 9)} | {"sept": 9}
_DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_IDLE = {name[:n] for name in _DAYS for n in (3, 9)} | {"tues", "thur", "thurs", "at"}  # say nothing new
_WORD = re.compile(r"[^\W_]+")
_ASIDE = re.compile(r"\([^()]*\)")  # "(India Standard Time)", behind an offset
# Zones of RFC 5322, and those that one region alone calls so. IST is India's, Israel's and Ireland's: it is not known.
_HOURS: dict[float, str] = {
    -8: "pst",
    -7: "mst pdt",
    -6: "cst mdt",
    -5: "est cdt",
    -4: "edt ast",
    -3: "adt",
    0: "z ut utc gmt wet",
    1: "cet wat",
    2: "cest eet cat sast",
    3: "eest eat msk",
    5: "pkt",
    5.75: "npt",
    7: "wib",
    8: "pht",
    9: "jst kst",
}
_ZONES = {name: timezone(timedelta(hours=hours)) for hours, names in _HOURS.items() for name in names.split()}
_CLOCK = re.compile(
    r"(?<![\d:])(\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?(?![\d:])"
    r"(?:\s?([ap])\.?m\b\.?)?"
    r"(?:\s?(?:utc|gmt)?\s?([+-]\d\d?):?(\d\d)?(?!\d)(?:\s[a-z]{3,5}$)?|\s?(" + "|".join(_ZONES) + r")\b)?",
    re.IGNORECASE,
)


@lru_cache(maxsize=1024)  # the posts of a record were seen in one moment
def rfc3339(at: float, timespec: str = "milliseconds") -> str:
    """Epoch seconds → "2026-11-20T06:00:00.000Z"."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def told(at: float) -> str:
    """Epoch seconds → "2026-11-20 06:00", UTC, for people."""
    return rfc3339(at)[:16].replace("T", " ")


def epoch_s(raw: str | int | float) -> float:
    """Epoch seconds of what platforms write for a time: RFC 3339, Twitter's and e-mail's dates and what is like them
    ("Nov 20, 2026 10:00 PM EST", "2026/11/20 10:00 UTC"), epoch seconds, milliseconds and microseconds, as numbers or
    text. Raises Rejected for anything else, so for a zone that is not known.
    """
    try:
        number = float(raw)
    except OverflowError:  # an integer beyond any clock
        return float("inf")
    except ValueError:  # not a number: a date
        for read in (datetime.fromisoformat, _in_words):
            try:
                moment = read(str(raw).strip())
                return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
            except (ValueError, KeyError, OverflowError):
                continue
        raise Rejected(
            "bad_time", f"created_at {str(raw)[:60]!r} is neither RFC 3339 (2026-02-06T04:17:35Z) nor epoch seconds"
        ) from None
    if number >= 1e14:
        return number / 1e6  # microseconds
    return number / 1e3 if number >= 1e11 else number  # milliseconds from 1973 on; seconds until the year 5138


def has_zone(text: str) -> bool:
    """Is it RFC 3339 with its time zone?"""
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _in_words(text: str) -> datetime:
    """A day by the name of its month, or with its year first, and a clock that may have am or pm and a zone: "Fri Nov
    20 10:00:00 +0000 2026" (Twitter), "Fri, 20 Nov 2026 10:00:00 EST" (e-mail). Raises ValueError, or KeyError for
    another month, where anything is left over: what was passed over could be the zone.
    """
    if "(" in text:
        text = _ASIDE.sub("", text).rstrip()
    zone, hour, rest = UTC, 0, (0, 0, 0)
    if clock := _CLOCK.search(text):
        hours, minute, second, fraction, half, offset, offset_minutes, name = clock.groups()
        text = f"{text[: clock.start()]} {text[clock.end() :]}"
        hour, rest = _hour(int(hours), half), (int(minute), int(second or 0), int((fraction or "")[:6].ljust(6, "0")))
        if offset:
            away = timedelta(hours=abs(int(offset)), minutes=int(offset_minutes or 0))
            zone = timezone(-away if offset[0] == "-" else away)
        elif name:
            zone = _ZONES[name.lower()]
    return datetime(
        *_day([word for word in _WORD.findall(text.lower()) if word not in _IDLE]), hour, *rest, tzinfo=zone
    )


def _hour(hour: int, half: str | None) -> int:
    if half is None or (hour > 12 and half in "pP"):  # "22:00 PM"
        return hour
    if hour > 12:
        raise ValueError(f"{hour} in the morning")
    return hour % 12 + 12 * (half in "pP")


def _day(words: list[str]) -> tuple[int, int, int]:
    """Year, month and day of "20 nov 2026", "nov 20 2026", "2026 11 20"."""
    one, two, three = words
    if len(one) == 4 and one.isdigit():
        return int(one), int(two), int(three)
    day, name = (two, one) if one in _MONTHS else (one, two)
    return int(three) if len(three) > 2 else 2000 + int(three), _MONTHS[name], int(day)
