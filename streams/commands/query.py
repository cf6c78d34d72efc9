"""`crisis query`: the standing queries, changed live."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from models.bars import Bars
from models.encoders.ready import Ready
from models.errors import ConfigError, QueryError
from models.feedback.teach import teach
from models.filters import Where
from models.moments import rfc3339
from models.places.gazetteer import Gazetteer
from models.queries import Query, load_queries
from streams.broker.labels import read_labels
from streams.broker.queries import publish_queries, read_queries
from streams.commands.meant import no_query
from streams.commands.query_fields import changed, with_fields
from streams.commands.query_files import read_queries_of
from streams.commands.rehearsal import Arrivals, posts_of
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
        reads = "\n".join(filter(None, (_bar(q), escape(_reads(q)))))
        table.add_row(q.id, escape(q.label), q.iasc, sentences, q.version, reads)
    # 80 columns hold the bundled ones; where an id is longer a line is, for rich would hide columns.
    table.width = max(out.width, sum(columns.values()) + len(columns) - 1)
    out.print(table, crop=False)


def _bar(q: Query) -> str:
    """From where on it alerts, in words."""
    if q.probability is not None:
        return f"{q.probability:.0%} likely"
    if q.alerts_per_hour is not None:
        return f"{q.alerts_per_hour:g} an hour"
    if q.target_precision is not None:
        return f"{q.target_precision:.0%} right"
    return "calibrated" if q.threshold is None else f"score {q.threshold:.3f}"


def _reads(q: Query) -> str:
    """Its filter and its end, in words."""
    asked = msgspec.structs.asdict(q.where) if q.where else {}
    if asked.get("place"):
        del asked["area"]
    parts = [
        f"{name} {value if isinstance(value, str) else ', '.join(map(str, value))}"
        for name, value in asked.items()
        if value
    ]
    return "; ".join([*parts, *([f"until {q.expires}"] if q.expires else [])])


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

    A bundled query keeps what it learnt: sentences added to it are looked for beside that. A need finds needs alone, an
    offer offers: what a sentence is about counts as far as the post is of that kind. Of a file each query is as it
    says, also one that exists.

    \b
    crisis query add need.boats "We need a boat to get off the roof" "Send boats to the school"
    crisis query add need.boats "Necesitamos una lancha" --lang es
    crisis query add need.bridge "The bridge is gone" --must "puente,bridge*" --alerts-per-hour 5 --expires 2d
    crisis query add --file my-pack.yaml
    crisis query add --file queries.jsonl            as `crisis query list --json` printed them
    """
    if file is not None:
        changes = read_queries_of(file.read_bytes(), file.name)
    else:
        if not query_id or not sentences:
            raise click.UsageError("give a query id (need.…, offer.…, warning.…) and at least one sentence, or --file")
        said = {lang: list(sentences)}
        changed(None, query_id, said, given)  # what is wrong with the words is told before a broker is asked for
        changes = {query_id: changed(read_queries(settings).get(query_id), query_id, said, given)}
    _publish(settings, changes)


@query.command()
@click.argument("query_id")
@with_fields
@click.pass_obj
def edit(settings: Settings, query_id: str, given: dict[str, Any]) -> None:
    """Change what a query reads, from where on it alerts, how long it lives. Its sentences stay, and so do its alerts.

    \b
    crisis query edit need.water --languages ht,fr --probability 0.7
    crisis query edit need.water --languages "" --alerts-per-hour 20
    crisis query edit need.water --area "Port-au-Prince"
    """
    if not given:
        raise click.UsageError("say what to change; `crisis query edit --help` lists it")
    _publish(settings, {query_id: changed(_find(settings, query_id), query_id, {}, given)})


def _publish(settings: Settings, changes: dict[str, Query]) -> None:
    publish_queries(settings, changes)
    for q in changes.values():
        click.echo(f"{q.id} is live, version {q.version}, {len(q.texts())} sentences")
        if q.where and q.where.place:
            _tell_area(q.where)


def _tell_area(where: Where) -> None:
    """Which place was taken, and which others are called so."""
    south, west, north, east = where.area
    click.echo(
        f"it reads posts from {where.place} ({south:g} to {north:g} N, {west:g} to {east:g} E) or naming a place there"
    )
    name = where.place.partition(",")[0]
    if others := [p.full_name for p in Gazetteer.bundled().called(name) if p.full_name != where.place]:
        click.echo(f"also called so: {'; '.join(others[:5])}")


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
@click.option("--lang", default="en", show_default=True, help="Language of the sentences.")
@with_fields
@click.option("--bundled", is_flag=True, help="Use the bundled packs; needs no broker.")
@click.option("-n", "most", default=5, show_default=True, help="Queries, or alerts, to show.")
@VERSION
@click.pass_obj
def test(
    settings: Settings,
    words: tuple[str, ...],
    replay: str | None,
    lang: str,
    given: dict[str, Any],
    bundled: bool,
    most: int,
    version: str | None,
) -> None:
    """Show how TEXT scores against the queries; or, before it is saved, what a query would have alerted.

    \b
    crisis query test "nou bezwen dlo"
    crisis query test need.boats "Send boats to the school" --languages en --replay 6h
    """
    queries = {q.id: q for q in (load_queries() if bundled else read_queries(settings).values())}
    if replay is None:
        if len(words) > 1 or given:
            raise click.UsageError("give one TEXT, or --replay and a query as `crisis query add` takes it")
        _test_text(make_ready(settings, chosen(settings, version), list(queries.values())), words[0], most)
    else:
        query_id, *sentences = words
        tried = changed(queries.get(query_id), query_id, {lang: sentences} if sentences else {}, given)
        queries[query_id] = tried
        ready = make_ready(settings, chosen(settings, version), list(queries.values()))
        ready = ready if bundled else teach(ready, list(read_labels(settings).values()))[0]
        try:
            came = Arrivals(from_file=Path(replay).is_file())
            done = rehearse(came.noting(posts_of(settings, replay, ready)), ready, query_id, Bars(settings.match))
        except ConfigError as error:
            raise click.UsageError(f"{replay!r} is no file and no time span such as 6h") from error
        _show_rehearsal(tried, done, came.hours, most)


def _test_text(ready: Ready, text: str, most: int) -> None:
    matcher = ready.matcher
    scores = matcher.scores(ready.encoder.encode([text]))[0]
    table = Table("query", "score", "alert at", "suggestion at", "outcome")
    for index in (-scores).argsort(kind="stable")[:most]:
        t, score = matcher.thresholds[index], scores[index]
        outcome = "[red]alert" if score >= t.alert else "[yellow]suggestion" if score >= t.suggestion else "–"
        table.add_row(matcher.queries[index].id, f"{score:.3f}", f"{t.alert:.3f}", f"{t.suggestion:.3f}", outcome)
    out.print(table)


def _show_rehearsal(tried: Query, done: Rehearsal, hours: float, most: int) -> None:
    """The likeliest alerts, their number by hour, and what an hour costs."""
    for post, match in sorted(done.alerts, key=lambda alert: -(alert[1].probability or 0.0))[:most]:
        text = escape(shorten(printable(post.text), 300))
        out.print(f"{match.probability:.0%}  [{post.lang}] {text}".replace("[", "\\[", 1), soft_wrap=True)
    for hour, count in sorted(done.by_hour.items()):
        out.print(f"  {rfc3339(hour * HOUR_S)[:13].replace('T', ' ')} h  {count:>5}  {'█' * min(count, 60)}")
    an_hour = len(done.alerts) / hours
    out.print(
        f"{tried.id}: {len(done.alerts):,} alerts and {done.suggestions:,} suggestions in {done.posts:,} posts of "
        f"{hours:.1f} h; {done.already:,} of the alerts are of posts that alert for another query too.\n"
        f"An hour costs {an_hour:.1f} alerts to read and {done.cpu_s / hours:.3f} s of CPU. Nothing was saved.",
        soft_wrap=True,
    )


def _find(settings: Settings, query_id: str) -> Query:
    known = read_queries(settings)
    if query_id not in known:
        raise QueryError(no_query(query_id, known))
    return known[query_id]
