"""`crisis alerts --format FORMAT` (commands/alerts.py): what alerts are told as. One file per format.

A format is a function `Options → print`; `print` takes the alerts that are to be told, in order, and prints each as it
comes. tests/checks/formats.py says what every format must keep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from models.records import Alert

if TYPE_CHECKING:
    from models.feedback.records import Label  # loads what masks texts

__all__ = ["FORMATS", "Options", "Print", "Told", "open_alerts", "print_lines"]

Told = tuple[Alert, Alert | None]  # an alert and its state as told before
Print = Callable[[Iterator[Told]], None]


class Options(Struct, frozen=True):
    """What was asked for on the command line."""

    follow: bool = False
    cap_status: str = "Test"
    cap_sender: str = "crisis-streams@localhost"
    said: Mapping[str, Label] | None = None  # what people said of the alerts (judged.py); None: not known


# name → (module:attribute, help). Imported on use: no format loads another's libraries.
FORMATS = {
    "text": ("streams.outputs.human:as_text", "for people: three lines an alert"),
    "json": ("streams.outputs.lines:as_json", "one JSON object a line, as on the topic"),
    "geojson": ("streams.outputs.geojson:as_geojson", "one FeatureCollection, or a Feature a line with --follow"),
    "csv": ("streams.outputs.table:as_csv", "a table for spreadsheets, with HXL hashtags in its second row"),
    "cap": ("streams.outputs.cap:as_cap", "CAP 1.2 messages, one XML document a line"),
}


def open_alerts(alerts: Iterable[Alert]) -> list[Alert]:
    """Each alert as it stands at the end, without the withdrawn ones."""
    newest: dict[str, Alert] = {}
    for alert in alerts:
        newest[alert.alert_id] = alert
    return [alert for alert in newest.values() if alert.status == "active"]


def print_lines(lines: Iterable[Any]) -> None:
    """Print each line and flush it at once: whoever reads along sees it."""
    for line in lines:
        click.echo(line)
