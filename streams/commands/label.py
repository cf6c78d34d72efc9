"""`crisis label`: teach by saying which alerts are right; see, take back and carry off what was taught."""

from __future__ import annotations

import asyncio
import getpass
import time
from collections import Counter
from typing import Any, BinaryIO

import click
import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from models.errors import LabelError, QueryError, Rejected
from models.feedback.records import (
    VERDICTS,
    Label,
    Verdict,
    check_label,
    in_place_of,
    label_alert,
    read_label,
    without,
)
from models.language_tags import UNKNOWN, post_language
from models.moments import rfc3339, told
from models.records import Alert
from models.undecodable import UNDECODABLE
from streams.broker.labels import publish_labels, read_labels
from streams.broker.queries import read_queries
from streams.commands.meant import no_query
from streams.config import Settings
from streams.outputs.printable import printable, safe_json, shorten
from streams.view.pseudonyms import load_pseudonyms

__all__ = ["label"]

out = Console()
WORDS = {"right": "right", "handled": "handled", "wrong": "wrong", "other": "other category", "none": "not a need"}


class _Labels(click.Group):
    """A group whose first word may be a post: `crisis label POST VERDICT`."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        return super().resolve_command(ctx, args if args[0] in self.commands else ["give", *args])


@click.group(cls=_Labels)
def label() -> None:
    """Teach by saying which alerts are right: crisis label POST right|handled|wrong|other|none.

    handled: right, and somebody takes care of it, so it is open no longer; other: it belongs to another category; none:
    it is no need and no offer at all. Every running worker has learnt it seconds later, whatever encoder it runs, now
    or later.

    \b
    crisis label mastodon:x.org/1 right
    crisis label mastodon:x.org/2 other --instead need.shelter
    """


@label.command()
@click.argument("post")
@click.argument("verdict", type=click.Choice(VERDICTS))
@click.option("--query", "query_id", default="", help="Which reading, if the post has several; default: its alert's.")
@click.option("--instead", default="", help="With other: the query it belongs to, such as need.shelter.")
@click.option("--by", default=getpass.getuser, show_default="your user name", help="Who says so.")
@click.option("--text", help="The post's text, where it gave no alert; with --query.")
@click.option("--lang", help="The language of --text. Default: found by itself.")
@click.pass_obj
def give(
    settings: Settings,
    post: str,
    verdict: Verdict,
    query_id: str,
    instead: str,
    by: str,
    text: str | None,
    lang: str | None,
) -> None:
    """Say whether the alert of POST is right. A later word about it replaces this one, until it is taken back. What
    somebody says already stays theirs.
    """
    post, read = named(settings, post), ""
    if text is None:
        said = label_alert(_alert_of(settings, post, query_id), verdict, by, time.time(), query_id, instead)
    elif not query_id:
        raise click.UsageError("--text needs --query: which query is it an answer to?")
    else:
        lang = _language(text) if lang is None else post_language(lang)
        said = check_label(Label(post, query_id, verdict, by, time.time(), text, lang, instead=instead))
        read = f"; read as {lang}" if lang != UNKNOWN else "; no language was found, nothing is learnt: say --lang"
    _refuse_unknown(settings, said, named_too=text is not None)
    before = read_labels(settings).get(said.key)
    if before is not None and before.by != said.by and before.word == said.word:
        click.echo(f"{said.query_id}: {_verdict(said)}, says {before.by} already")
        return
    publish_labels(settings, [said := in_place_of(said, before)])
    over = f"; before, {said.replaced.by} said: {_verdict(said.replaced)}" if said.replaced else ""
    click.echo(f"{said.query_id}: {_verdict(said)}, says {said.by}{read}{over}")


def _language(text: str) -> str:
    from models.language import identify  # loads models

    return identify(text)


def _refuse_unknown(settings: Settings, said: Label, named_too: bool) -> None:
    """Raises QueryError for an id that no query has: nothing would ever be learnt from it, and nobody would notice.

    named_too: the query that was read was typed as well, not known from its alert.
    """
    typed = [said.instead, said.query_id if named_too else ""]
    if any(typed):
        known = read_queries(settings)
        for query_id in filter(None, typed):
            if query_id not in known:
                raise QueryError(no_query(query_id, known))


def _verdict(said: Label) -> str:
    return WORDS[said.verdict] + (f", {said.instead}" if said.instead else "")


def named(settings: Settings, typed: str) -> str:
    """The id a post goes by here, of the platform's or of itself."""
    return load_pseudonyms(settings, must=False).id(typed)


def _alert_of(settings: Settings, post: str, query_id: str) -> Alert:
    """The post's alert, from the live view. Raises LabelError, and ServiceError without Redis."""
    from streams.view.connect import connect, reaching_redis
    from streams.view.live import LiveView

    async def read() -> list[Alert]:
        async with connect(settings.redis) as redis:
            return await LiveView(redis, settings).alerts_of([post])

    with reaching_redis(settings.redis):
        found = sorted(asyncio.run(read()), key=lambda alert: (alert.status == "active", alert.revision))
    mine = [a for a in found if a.post.id == post and (not query_id or query_id in _readings(a))]
    if not mine:
        raise LabelError(
            f"post {post!r} has no alert{f' under {query_id}' if query_id else ''} that is still known: give its words"
            " with --text and --query"
        )
    return mine[-1]


def _readings(alert: Alert) -> list[str]:
    return [alert.query_id, *(reading.query_id for reading in alert.also)]


@label.command("list")
@click.option("--query", "query_id", help="Only of this query.")
@click.option("--by", help="Only what this person said.")
@click.pass_obj
def list_labels(settings: Settings, query_id: str | None, by: str | None) -> None:
    """What people taught, the newest first."""
    found = _chosen(settings, query_id=query_id, by=by)
    table = Table("when (UTC)", "who", "query", "verdict", "text", "post")
    for said in sorted(found, key=lambda one: -one.at):
        when = told(said.at)[5:]
        cells = (said.by, said.query_id, _verdict(said), shorten(printable(said.text), 60), said.post_id)
        table.add_row(when, *(escape(printable(cell)) for cell in cells))
    out.print(table)
    click.echo(", ".join(f"{n} {WORDS[verdict]}" for verdict, n in Counter(s.verdict for s in found).most_common()))


@label.command()
@click.argument("post", required=False)
@click.option("--query", "query_id", help="Only of this query.")
@click.option("--by", help="Only what this person said; without POST: all of it.")
@click.pass_obj
def undo(settings: Settings, post: str | None, query_id: str | None, by: str | None) -> None:
    """Take back what was said about POST, or everything one person said. Workers forget it within seconds. Where it had
    replaced what somebody else said, that stands again.
    """
    if post is None and by is None:
        raise click.UsageError("say what: a POST, or --by NAME for everything somebody said")
    all_of_it = _chosen(settings, post and named(settings, post), query_id)
    found = [(said, now) for said in all_of_it if (now := without(said, by)) != said]
    if not found:
        raise LabelError("nothing like that was said; `crisis label list` shows all")
    publish_labels(settings, [now for _, now in found if now], [said.key for said, _ in found])
    again = sum(now is not None and now == said.replaced for said, now in found)
    click.echo(f"{len(found)} taken back" + (f"; of {again} stands what somebody said before" if again else ""))


@label.command()
@click.option("--query", "query_id", help="Only of this query.")
@click.option("--by", help="Only what this person said.")
@click.pass_obj
def export(settings: Settings, query_id: str | None, by: str | None) -> None:
    """Print every label as a line of JSON, the oldest first: post_id, query_id, verdict, by, at (RFC 3339), text
    (masked), lang, encoder_version, level, instead, replaced (what somebody else had said before).
    """
    for said in sorted(_chosen(settings, query_id=query_id, by=by), key=lambda one: (one.at, one.key)):
        click.echo(safe_json(msgspec.json.encode(_exported(said))))


def _exported(said: Label) -> dict[str, Any]:
    before = {"replaced": _exported(said.replaced)} if said.replaced is not None else {}
    return msgspec.to_builtins(said) | {"at": rfc3339(said.at)} | before


@label.command("import")
@click.argument("file", type=click.File("rb"))
@click.pass_obj
def import_labels(settings: Settings, file: BinaryIO) -> None:
    """Take over labels from a FILE that `export` wrote (- = standard input). Of two words about a reading the later
    counts; a line that is no label stops the import, and nothing is written.
    """
    known, given = read_labels(settings), {}
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            said = read_label(line)
        except (*UNDECODABLE, LabelError, Rejected) as error:
            raise LabelError(f"line {number}: {error}") from error
        newest = max((x for x in (given.get(said.key), known.get(said.key)) if x), key=lambda x: x.at, default=None)
        if newest is None or newest.at < said.at:
            given[said.key] = said if said.replaced is not None else in_place_of(said, newest)
    publish_labels(settings, list(given.values()))
    click.echo(f"{len(given)} taken over")


def _chosen(
    settings: Settings, post: str | None = None, query_id: str | None = None, by: str | None = None
) -> list[Label]:
    wanted = {"post_id": post, "query_id": query_id, "by": by}
    return [
        said
        for said in read_labels(settings).values()
        if all(value is None or getattr(said, name) == value for name, value in wanted.items())
    ]
