"""`crisis query`: the standing queries, changed live."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from models.bars import Bars
from models.errors import ConfigError, QueryError
from models.feedback.teach import teach
from models.moments import rfc3339
from models.queries import Query, load_queries
from streams.broker.labels import read_labels
from streams.broker.queries import bundled, change_query, publish_queries, read_queries
from streams.commands.meant import no_query
from streams.commands.query_fields import changed, with_fields
from streams.commands.query_files import read_queries_of
from streams.commands.query_text import outcomes, typed_post
from streams.commands.query_words import bar, reads, tell
from streams.commands.rehearsal import posts_of
from streams.commands.versions import VERSION, chosen
from streams.config import Settings
from streams.outputs.printable import printable, shorten
from streams.releases.versions import make_ready
from streams.search.rehearsal import HOUR_S, Rehearsal, rehearse

__all__ = ["query"]

out = Console()


@click.group()
def query() -> None:
    """List, show, add, edit, remove and test the standing queries.

    Changes reach every running worker within seconds, without a restart.
    """


@query.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line: a copy that `add --file` takes.")
@click.pass_obj
def list_queries(settings: Settings, as_json: bool) -> None:
    """List the active queries."""
    queries = sorted(read_queries(settings).values(), key=lambda q: q.id)
    if as_json:
        for q in queries:
            click.echo(msgspec.json.encode(q))
        return
    table = Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    longest = max((len(q.id) for q in queries), default=0)  # what `show` and `remove` need, whole
    columns = {"query": longest, "label": 10, "IASC cluster": 10, "sentences in languages": 9, "version": 8}
    columns["alerts from, reads"] = 10
    for title, least in columns.items():
        table.add_column(title, min_width=least, overflow="fold", no_wrap=title in ("query", "version"))
    for q in queries:
        sentences = f"{len(q.texts())} in {len(q.sentences)}"
        last = "\n".join(filter(None, (bar(q), escape(reads(q)))))
        table.add_row(q.id, escape(q.label), q.iasc, sentences, q.version, last)
    # 80 columns hold the bundled ones; where an id is longer a line is, for rich would hide columns.
    table.width = max(out.width, sum(columns.values()) + len(columns) - 1)
    out.print(table, crop=False)


@query.command()
@click.argument("query_id")
@click.pass_obj
def show(settings: Settings, query_id: str) -> None:
    """Show one query with its sentences, as YAML that `add --file` takes."""
    q = _find(settings, query_id)
    click.echo(msgspec.yaml.encode(q).decode())


@query.command()
@click.argument("query_id", required=False)
@click.argument("sentences", nargs=-1)
@click.option("--lang", default="en", show_default=True, help="Language of the sentences.")
@with_fields
@click.option(
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Instead of arguments: a query pack (YAML), or what `show` or `list --json` printed.",
)
@click.pass_obj
def add(
    settings: Settings,
    query_id: str | None,
    sentences: tuple[str, ...],
    lang: str,
    given: dict[str, Any],
    file: Path | None,
) -> None:
    """Add a query, or sentences to one that exists; what is given beside them replaces what it had.

    A bundled query keeps what it learnt: sentences added to it are looked for beside that; one that was removed comes
    back as it was shipped, and needs no sentence. A need finds needs alone, an offer offers: what a sentence is about
    counts as far as the post is of that kind. Of a file each query is as it says, also one that exists.

    \b
    crisis query add need.boats "We need a boat to get off the roof" "Send boats to the school"
    crisis query add need.boats "Necesitamos una lancha" --lang es
    crisis query add need.bridge "The bridge is gone" --must "puente,bridge*" --alerts-per-hour 5 --expires 2d
    crisis query add need.search_rescue              a bundled one that was removed, as it was
    crisis query add --file my-pack.yaml
    crisis query add --file queries.jsonl            as `crisis query list --json` printed them
    """
    if file is not None:
        found = read_queries_of(file.read_bytes(), file.name)
        publish_queries(settings, found)
        for q in found.values():
            tell(q)
        return
    if not query_id or not (sentences or query_id in bundled()):
        raise click.UsageError("give a query id (need.…, offer.…, warning.…) and at least one sentence, or --file")
    said = {lang: list(sentences)} if sentences else {}
    changed(None, query_id, said, given)  # what is wrong with the words is told before a broker is asked for

    def made(known: Mapping[str, Query]) -> Query:
        if query_id in known and not said:
            raise QueryError(
                f"{query_id} is there: give a sentence to add, or `crisis query edit` it; as it was shipped it comes"
                f" back by `crisis query remove {query_id}`, then this"
            )
        return changed(known.get(query_id), query_id, said, given)

    before, after, meanwhile = change_query(settings, query_id, made)
    if before is None and query_id in bundled():
        click.echo(f"{query_id} is a bundled query: it begins as it was shipped")
    tell(after, given, meanwhile)


@query.command()
@click.argument("query_id")
@with_fields
@click.pass_obj
def edit(settings: Settings, query_id: str, given: dict[str, Any]) -> None:
    """Change what a query reads, from where on it alerts, how long it lives. Its sentences stay, and so do its alerts.

    \b
    crisis query edit need.wells --languages ht,fr --probability 0.7
    crisis query edit need.wells --languages "" --alerts-per-hour 20
    crisis query edit need.wells --area "Port-au-Prince"
    """
    if not given:
        raise click.UsageError("say what to change; `crisis query edit --help` lists it")
    _, after, meanwhile = change_query(
        settings, query_id, lambda known: changed(_found(known, query_id), query_id, {}, given)
    )
    tell(after, given, meanwhile)


@query.command()
@click.argument("query_ids", nargs=-1, required=True)
@click.pass_obj
def remove(settings: Settings, query_ids: tuple[str, ...]) -> None:
    """Remove queries. Their past alerts stay."""
    for query_id in query_ids:
        _find(settings, query_id)
    publish_queries(settings, dict.fromkeys(query_ids))
    click.echo(f"removed {', '.join(query_ids)}")


@query.command()
@click.argument("words", nargs=-1, required=True, metavar="TEXT | QUERY_ID [SENTENCE]...")
@click.option("--replay", metavar="FILE|6h", help="What QUERY_ID would have alerted in a file, or in the last 6h.")
@click.option("--lang", help="Language of TEXT, by default found by itself; or of the sentences, by default en.")
@click.option("--source", default="text", show_default=True, help="Source of TEXT, for queries that ask for one.")
@with_fields
@click.option("--bundled", "without_broker", is_flag=True, help="Use the bundled packs; needs no broker.")
@click.option("-n", "most", default=5, show_default=True, help="Queries, or alerts, to show.")
@VERSION
@click.pass_obj
def test(
    settings: Settings,
    words: tuple[str, ...],
    replay: str | None,
    lang: str | None,
    source: str,
    given: dict[str, Any],
    without_broker: bool,
    most: int,
    version: str | None,
) -> None:
    """Show what the queries make of TEXT, as workers would; or, before it is saved, what a query would have alerted.

    \b
    crisis query test "nou bezwen dlo"
    crisis query test need.boats "Send boats to the school" --languages en --replay 6h
    """
    queries = {q.id: q for q in (load_queries() if without_broker else read_queries(settings).values())}
    if replay is None:
        if len(words) > 1 or given:
            raise click.UsageError("give one TEXT, or --replay and a query as `crisis query add` takes it")
        post = typed_post(words[0], lang, source)
    else:
        query_id, *sentences = words
        tried = changed(queries.get(query_id), query_id, {lang or "en": sentences} if sentences else {}, given)
        queries[query_id] = tried
    ready = make_ready(settings, chosen(settings, version), list(queries.values()))
    ready = ready if without_broker else teach(ready, list(read_labels(settings).values()))[0]
    if replay is None:
        out.print(outcomes(ready, post, most))
        return
    try:
        posts, from_file = posts_of(settings, replay, ready), Path(replay).is_file()
        done = rehearse(posts, ready, query_id, Bars(settings.match), from_file)
    except ConfigError as error:
        raise click.UsageError(f"{replay!r} is no file and no time span such as 6h") from error
    _show_rehearsal(tried, done, most)


def _show_rehearsal(tried: Query, done: Rehearsal, most: int) -> None:
    """The likeliest alerts, their number by hour, and what an hour costs."""
    for post, match in sorted(done.alerts, key=lambda alert: -(alert[1].probability or 0.0))[:most]:
        text = escape(shorten(printable(post.text), 300))
        out.print(f"{match.probability:.0%}  [{post.lang}] {text}".replace("[", "\\[", 1), soft_wrap=True)
    for hour, count in sorted(done.by_hour.items()):
        out.print(f"  {rfc3339(hour * HOUR_S)[:13].replace('T', ' ')} h  {count:>5}  {'█' * min(count, 60)}")
    span = f"{done.hours:.1f} h" if done.hours >= 1 else f"{60 * done.hours:.0f} min"
    out.print(
        f"{tried.id}: {len(done.alerts):,} alerts and {done.suggestions:,} suggestions in {done.posts:,} posts of "
        f"{span}; {done.already:,} of the alerts are of posts that alert for another query too.\n"
        f"An hour {'costs' if done.hours >= 1 else 'such as this would cost'} {done.an_hour(len(done.alerts)):.1f} "
        f"alerts to read and {done.an_hour(done.cpu_s):.3f} s of CPU. Nothing was saved.",
        soft_wrap=True,
    )
    if unheard := done.unheard(tried):
        out.print(escape(printable(unheard)), soft_wrap=True)


def _find(settings: Settings, query_id: str) -> Query:
    return _found(read_queries(settings), query_id)


def _found(known: Mapping[str, Query], query_id: str) -> Query:
    if query_id not in known:
        raise QueryError(no_query(query_id, known))
    return known[query_id]
