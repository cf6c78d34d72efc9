"""`crisis alerts`: print or follow the alerts topic, in one of the formats of streams/outputs."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from models.errors import QueryError, ServiceError
from models.records import KINDS
from streams.commands import attribute
from streams.config import Settings
from streams.outputs import FORMATS, Options, Told
from streams.outputs.span import Span

if TYPE_CHECKING:
    from streams.broker.labels import Labels

__all__ = ["alerts"]

JUDGED = ("csv", "geojson")  # formats that also tell what people said of an alert


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Keep waiting for new alerts; Ctrl-C ends it.")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    help="Default: text on a terminal, json lines elsewhere.",
)
@click.option("--level", type=click.Choice(["alert", "suggestion"]), help="Only this level.")
@click.option("--kind", type=click.Choice(KINDS), help="Only this kind.")
@click.option("--query", help="Only this query, such as need.water.")
@click.option("--lang", help="Only posts in this language, such as ar.")
@click.option("--area", help="Only posts that are, or name a place, in Jacmel, or in south,west,north,east (degrees).")
@click.option("--last", "last_s", type=Span(), help="Only the last 90s, 15m, 2h, 1d …")
@click.option("--from-beginning", is_flag=True, help="With --follow: first everything the broker still holds.")
@click.option("--group", help="Read as a Kafka consumer group: the place is kept, several readers share the work.")
@click.option(
    "--cap-status",
    type=click.Choice(["Test", "Exercise", "Draft", "Actual"]),
    default="Test",
    show_default=True,
    help="CAP status. Actual tells receivers to act: nobody has checked these.",
)
@click.option(
    "--cap-sender", default="crisis-streams@localhost", show_default=True, help="CAP sender: a name of yours."
)
@click.pass_obj
def alerts(
    settings: Settings,
    follow: bool,
    form: str | None,
    level: str | None,
    kind: str | None,
    query: str | None,
    lang: str | None,
    area: str | None,
    last_s: float | None,
    from_beginning: bool,
    group: str | None,
    cap_status: str,
    cap_sender: str,
) -> None:
    """Print the alerts the broker holds, or follow them as they come.

    Every revision is printed once: an alert again when its cluster is likely, known or none after all, or its post was
    edited, and a withdrawal when the post was deleted. One line each (text: three), flushed at once.

    \b
    crisis alerts --last 2h --level alert
    crisis alerts --follow --format json | jq .post.text
    crisis alerts --format geojson > alerts.geojson        the open alerts as one FeatureCollection
    crisis alerts --format csv > handover.csv              as a table; both say who judged what, and when
    crisis alerts --area Haiti --kind need                 what is needed there
    crisis alerts --follow --format cap --cap-status Exercise --cap-sender desk@example.org
    """
    from models.areas import area_of
    from streams.outputs.follow import Teller, Wanted, read_alerts

    there = area_of(area) if area is not None else None
    if isinstance(there, str):
        raise QueryError(there)
    lang = _known(settings, query, lang)
    name = form or ("text" if sys.stdout.isatty() else "json")
    said = _said(settings) if name in JUDGED and not follow else None  # no alert comes again for what is said of it
    write = attribute(FORMATS[name][0])(Options(follow, cap_status, cap_sender, said))
    teller = Teller(Wanted(level, kind, query, lang, there))

    def told() -> Iterator[Told]:
        for alert in read_alerts(settings, follow=follow, group=group, last_s=last_s, beginning=from_beginning):
            if (news := teller.news(alert)) is not None:
                yield alert, news[0]

    try:
        write(told())
    except KeyboardInterrupt:
        if not follow:
            raise
    except BrokenPipeError:  # whoever reads has enough, as `head` has: no failure, nor when Python flushes at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _said(settings: Settings) -> Labels | None:
    """What people said of alerts; None, with a warning, where the topic cannot be read: nobody shall take an alert for
    one that nobody has judged.
    """
    from streams.broker.labels import read_labels

    try:
        return read_labels(settings)
    except ServiceError as error:
        click.secho(f"crisis: it is not told which alerts are judged, and by whom: {error}", fg="yellow", err=True)
        return None


def _known(settings: Settings, query: str | None, lang: str | None) -> str | None:
    """Warn of a query and a language that nothing can be of, where that can be told: no alert looks as if all were
    quiet. The language as posts carry it.

    Nothing is refused: a query that was removed has alerts still, and so may have what an earlier version took.
    """
    from models.language_tags import post_language
    from streams.broker.queries import read_queries
    from streams.commands.meant import no_query

    told = []
    if query is not None:
        with contextlib.suppress(ServiceError):  # without the topic of the queries alerts are told all the same
            known = read_queries(settings)
            told += [f"{no_query(query, known)}; if it was removed, its alerts are told"] * (query not in known)
    if lang is not None:
        try:
            lang = post_language(lang)
        except QueryError as error:
            told.append(str(error))
    for warning in told:
        click.secho(f"crisis: {warning}", fg="yellow", err=True)
    return lang
