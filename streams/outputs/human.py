"""Alerts for people at a terminal. Text of posts is never read as markup and cannot move the cursor."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from models.explanation import in_words
from models.records import Alert
from streams.outputs import Options, Print, Told
from streams.outputs.printable import printable, web_link
from streams.outputs.sureness import how_sure

__all__ = ["as_text"]

COLOURS = {"need": "yellow", "offer": "cyan", "warning": "magenta", "order": "magenta", "report": "blue"}
PRIORITY_STYLES = {"urgent": "bold red", "soon": "bold", "routine": "dim"}


def as_text(options: Options) -> Print:
    """For a terminal, or a pipe of one."""

    def write(told: Iterator[Told]) -> None:
        console = Console(highlight=False, soft_wrap=True)
        for alert, before in told:
            show(console, alert, before)

    return write


def show(console: Console, alert: Alert, before: Alert | None) -> None:
    """Print one alert, or one line about how it changed."""
    if alert.status == "withdrawn":
        console.print(_change(alert, f"withdrawn, its post was {alert.withdrawn_because}", "red"))
    elif before is not None and before.post.text == alert.post.text and before.level == alert.level:
        if alert.cluster_id != before.cluster_id:
            console.print(_change(alert, f"now in cluster {printable(alert.cluster_id or '–')}", "dim"))
        else:
            console.print(_change(alert, f"revision {alert.revision}", "dim"))
    else:
        console.print(_alert(alert, edited=before is not None))


def _head(alert: Alert) -> Text:
    sure = alert.level == "alert"
    head = Text(alert.post.created_at.replace("T", " ")[:19] + "  ", style="dim")
    head.append(f"{alert.kind.upper():<7}", style=f"bold {COLOURS[alert.kind]}" + (" reverse" if sure else ""))
    head.append(f" {printable(alert.label)}", style="bold")
    if alert.priority is not None and alert.status == "active":
        head.append(f"  {alert.priority}", style=PRIORITY_STYLES[alert.priority])
    return head.append("" if sure else "  (suggestion)", style="dim")


def _alert(alert: Alert, edited: bool) -> Text:
    text = _head(alert)
    if edited:
        text.append("  edited", style="magenta")
    text.append(f"  {how_sure(alert)}\n", style="dim")
    text.append(f"  {printable(alert.post.text)}\n")
    facts = [printable(alert.post.lang), printable(alert.post.source)]
    facts += [web_link(alert.post.url)] if web_link(alert.post.url) else []
    facts += [f"{alert.post.geo.lat:.5f}, {alert.post.geo.lon:.5f}"] if alert.post.geo else []
    facts += [f"names {printable(p.name)} ({p.confidence:.0%})" for p in alert.post.places]
    near = alert.evidence
    facts.append(f"near “{printable(near.nearest)}” ({printable(near.nearest_lang)}, {near.nearest_cosine:.2f})")
    text.append("  " + " · ".join(facts) + f" · {alert.alert_id[:8]}", style="dim")
    because = [", ".join(near.signs)] if near.signs else []
    because += [in_words(near.terms)] if near.terms else []
    because += [f"like the query’s “{printable(near.told)}” ({printable(near.told_lang)})"] if near.told else []
    return text.append("\n  " + " · ".join(because), style="dim") if because else text


def _change(alert: Alert, what: str, style: str) -> Text:
    return _head(alert).append(f"  {alert.alert_id[:8]} ", style="dim").append(what, style=style)
