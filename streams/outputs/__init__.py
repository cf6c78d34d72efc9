"""`crisis alerts`: print or follow the alerts topic, as text, JSON lines, GeoJSON or CAP 1.2."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator

import click
import msgspec

from models.errors import ConfigError
from models.records import Alert
from streams.config import Settings
from streams.outputs.printable import safe_json

Told = tuple[Alert, Alert | None]  # an alert and its state as told before

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(text: str) -> float:
    """Turn "90s", "15m", "2h", "1.5d" into seconds; a bare number is seconds. Raises ConfigError for anything else."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text.strip().lower())
    if not found:
        raise ConfigError(f"{text!r} is no time span: write 90s, 15m, 2h or 1d")
    return float(found[1]) * _UNITS_S[found[2] or "s"]


class Span(click.ParamType):
    """A time span on the command line."""

    name = "span"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return value if isinstance(value, float) else seconds(str(value))
        except ConfigError as error:
            self.fail(str(error), param, ctx)


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Keep waiting for new alerts; Ctrl-C ends it.")
@click.option("--format", "form", type=click.Choice(["text", "json", "geojson", "cap"]),
              help="Default: text on a terminal, json lines elsewhere.")  # fmt: skip
@click.option("--level", type=click.Choice(["alert", "suggestion"]), help="Only this level.")
@click.option("--kind", type=click.Choice(["need", "offer"]), help="Only this kind.")
@click.option("--query", help="Only this query, such as need.water.")
@click.option("--lang", help="Only posts in this language, such as ar.")
@click.option("--last", "last_s", type=Span(), help="Only the last 90s, 15m, 2h, 1d …")
@click.option(
    "--from-beginning", is_flag=True, help="With --follow: first everything the broker still holds."
)
@click.option(
    "--group", help="Read as a Kafka consumer group: the place is kept, several readers share the work."
)
@click.option("--cap-status", type=click.Choice(["Test", "Exercise", "Draft", "Actual"]), default="Test",
              show_default=True, help="CAP status. Actual tells receivers to act: nobody has checked these.")  # fmt: skip
@click.option(
    "--cap-sender", default="crisis-streams@localhost", show_default=True, help="CAP sender: a name of yours."
)
@click.pass_obj
def alerts(
    settings: Settings, follow: bool, form: str | None, level: str | None, kind: str | None, query: str | None,
    lang: str | None, last_s: float | None, from_beginning: bool, group: str | None, cap_status: str, cap_sender: str,
) -> None:  # fmt: skip
    """Print the alerts the broker holds, or follow them as they come.

    Every revision is printed once: an alert again when its cluster is known or its post was edited, and a withdrawal
    when the post was deleted. One line each (text: three), flushed at once.

    \b
    crisis alerts --last 2h --level alert
    crisis alerts --follow --format json | jq .post.text
    crisis alerts --format geojson > alerts.geojson        the open alerts as one FeatureCollection
    crisis alerts --follow --format cap --cap-status Exercise --cap-sender desk@example.org
    """
    from streams.outputs.cap import CapConfig, check_sender
    from streams.outputs.follow import Teller, Wanted, read_alerts

    write = _writer(
        form or ("text" if sys.stdout.isatty() else "json"), follow,
        CapConfig(sender=check_sender(cap_sender), status=cap_status),
    )  # fmt: skip
    teller = Teller(Wanted(level, kind, query, lang))

    def told() -> Iterator[Told]:
        for alert in read_alerts(
            settings, follow=follow, group=group, last_s=last_s, beginning=from_beginning
        ):
            if (news := teller.take(alert)) is not None:
                yield alert, news[0]

    try:
        write(told())
    except KeyboardInterrupt:
        if not follow:
            raise


def _writer(form: str, follow: bool, cap_config: object) -> Callable[[Iterator[Told]], None]:
    """A function that prints all it is given, in the format."""
    if form == "text":
        return _write_text
    if form == "json":
        return _lines(lambda told: (safe_json(msgspec.json.encode(alert)) for alert, _ in told))
    if form == "geojson":
        from streams.outputs.geojson import collection_lines, feature_line

        if follow:
            return _lines(lambda told: (feature_line(alert) for alert, _ in told))
        return _lines(lambda told: collection_lines(alert for alert, _ in told))
    from streams.outputs.cap import CapWriter

    writer = CapWriter(cap_config)
    return _lines(lambda told: (line for alert, _ in told if (line := writer.write(alert)) is not None))


def _lines(make: Callable[[Iterator[Told]], Iterator[str]]) -> Callable[[Iterator[Told]], None]:
    def write(told: Iterator[Told]) -> None:
        for line in make(told):
            click.echo(line)  # echo flushes

    return write


def _write_text(told: Iterator[Told]) -> None:
    from rich.console import Console

    from streams.outputs.human import show

    console = Console(highlight=False, soft_wrap=True)
    for alert, before in told:
        show(console, alert, before)
