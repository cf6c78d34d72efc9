"""Moments in time. Inside, a moment is a float: seconds since 1970, UTC, in a name that ends in `_at` or is `at`.

Outside it is RFC 3339: in alerts, cluster events, dead letters, search hits, exported labels, receipts and result
files. What only these programs read (frames, Redis, the topics `queries`, `encoders` and `labels`) holds seconds, and
Kafka's own milliseconds are turned where a client is called (streams/broker/reading.py).
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from models.errors import Rejected

__all__ = ["epoch_s", "has_zone", "rfc3339", "told"]


def rfc3339(at: float, timespec: str = "milliseconds") -> str:
    """Epoch seconds → "2026-11-20T06:00:00.000Z"."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def told(at: float) -> str:
    """Epoch seconds → "2026-11-20 06:00", UTC, for people."""
    return rfc3339(at)[:16].replace("T", " ")


def epoch_s(raw: str | int | float) -> float:
    """Epoch seconds of what platforms write for a time: RFC 3339, Twitter's and e-mail's dates, epoch seconds,
    milliseconds and microseconds, as numbers or text. Raises Rejected for anything else.
    """
    try:
        number = float(raw)
    except OverflowError:  # an integer beyond any clock
        return float("inf")
    except ValueError:  # not a number: a date
        for read in (datetime.fromisoformat, _twitter_date, parsedate_to_datetime):
            try:
                moment = read(str(raw).strip())
                return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
            except (ValueError, OverflowError, TypeError, IndexError):
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


def _twitter_date(text: str) -> datetime:
    """ "Fri Nov 20 10:00:00 +0000 2026", as dumps of Twitter have it."""
    return datetime.strptime(text, "%a %b %d %H:%M:%S %z %Y")
