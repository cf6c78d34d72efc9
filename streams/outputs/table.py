"""Alerts as CSV with the hashtags of HXL 1.1 (https://hxlstandard.org) in the second row: for spreadsheets, and for the
tools of humanitarian data that read them.

A line is an alert as it stands; followed, one comes again with each change of it, withdrawn ones without their text and
place. What a spreadsheet would take for a formula gets an apostrophe before it, also where ; or | parts the cells:
posts are written by strangers (OWASP, "CSV Injection").
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from models.feedback.records import Label
from models.records import Alert, Geo, NamedPlace
from streams.outputs import Options, Print, Told, open_alerts, print_lines
from streams.outputs.judged import Judged, judged
from streams.outputs.printable import printable, web_link
from streams.outputs.sureness import how_sure

__all__ = ["MARK", "as_csv", "csv_lines"]

MARK = "\ufeff"  # at the start of a file: without it a spreadsheet reads UTF-8 as something else

# Where a cell may begin in a spreadsheet that takes ; or | for a comma, and what it takes for a formula there
_FORMULA = re.compile(r"""(^|[;|])(?=[\s"']*[=+\-@＝＋－＠])""")

Cell = str | float | None


def _named(alert: Alert) -> NamedPlace | None:
    here = alert.status == "active" and alert.post.places and alert.post.geo is None
    return alert.post.places[0] if here else None


def _where(alert: Alert) -> Geo | NamedPlace | None:
    return (alert.post.geo or _named(alert)) if alert.status == "active" else None


def _of(part: object, name: str) -> Cell:
    found: Cell = getattr(part, name, None)
    return found


# heading, HXL hashtag, what stands there
COLUMNS: tuple[tuple[str, str, Callable[[Alert], Cell]], ...] = (
    ("kind", "#item+kind", lambda a: a.kind),
    ("category", "#subsector+name", lambda a: a.label),
    ("sector", "#sector+name", lambda a: a.iasc),
    ("hxl", "#meta+hxl", lambda a: a.hxl),
    ("text", "#description+post", lambda a: a.post.text if a.status == "active" else ""),
    ("language", "#meta+language", lambda a: a.post.lang),
    ("priority", "#severity+priority", lambda a: a.priority),
    ("level", "#status+level", lambda a: a.level),
    ("how sure", "#meta+sureness", how_sure),
    ("probability of the category", "#indicator+probability", lambda a: a.probability),
    ("place", "#loc+name", lambda a: _of(_named(a), "name")),
    ("lat", "#geo+lat", lambda a: _of(_where(a), "lat")),
    ("lon", "#geo+lon", lambda a: _of(_where(a), "lon")),
    ("within km", "#geo+radius", lambda a: _of(_where(a), "radius_km")),
    ("place probability", "#indicator+place+probability", lambda a: _of(_named(a), "confidence")),
    ("posted", "#date+posted", lambda a: a.post.created_at),
    ("seen", "#date+seen", lambda a: a.seen_at),
    ("source", "#meta+source", lambda a: a.post.source),
    ("link", "#meta+url", lambda a: web_link(a.post.url) if a.status == "active" else ""),
    ("cluster", "#meta+cluster", lambda a: a.cluster_id),
    ("status", "#status+alert", lambda a: a.status),
    ("alert", "#meta+id", lambda a: a.alert_id),
)
# the same of what people said, where that is known
JUDGED: tuple[tuple[str, str, Callable[[Judged], Cell]], ...] = (
    ("judged", "#meta+judged", lambda j: j.judged),
    ("judged by", "#meta+judged+by", lambda j: j.judged_by),
    ("judged at", "#date+judged", lambda j: j.judged_at),
)


def as_csv(options: Options) -> Print:
    """The open alerts, marked as UTF-8 for the spreadsheet that opens them; followed, a line a change, for programs."""
    if options.follow:
        return lambda told: print_lines(csv_lines(alert for alert, _ in told))

    def marked(told: Iterator[Told]) -> Iterator[str]:
        heads, *rows = csv_lines(open_alerts(alert for alert, _ in told), options.said)
        return iter((MARK + heads, *rows))

    return lambda told: print_lines(marked(told))


def csv_lines(alerts: Iterable[Alert], said: Mapping[str, Label] | None = None) -> Iterator[str]:
    """The table line by line, the two rows of heads first.

    said: what people said of alerts, by post and query, as the last columns.
    """
    last = JUDGED if said is not None else ()
    yield _line(head for head, _, _ in (*COLUMNS, *last))
    yield _line(tag for _, tag, _ in (*COLUMNS, *last))
    for alert in alerts:
        found = judged(alert, said or {})
        yield _line(_safe(cell) for cell in (*(of(alert) for _, _, of in COLUMNS), *(of(found) for _, _, of in last)))


def _safe(cell: Cell) -> Cell:
    if not isinstance(cell, str):
        return cell
    return _FORMULA.sub(r"\1'", printable(cell))


def _line(row: Iterable[Cell]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="").writerow(row)
    return written.getvalue()
