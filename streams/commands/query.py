"""`crisis query`: the standing queries, changed live."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from models.encoder import load_encoder
from models.errors import QueryError
from models.queries import Query, check_query, load_queries, read_pack
from streams.config import Settings
from streams.control import publish_queries, read_queries
from streams.runtime import build_matcher

out = Console()


@click.group()
def query() -> None:
    """List, show, add, remove and test the standing queries.

    Changes reach every running worker within seconds, without a restart.
    """


@query.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
@click.pass_obj
def list_queries(settings: Settings, as_json: bool) -> None:
    """List the active queries."""
    queries = sorted(read_queries(settings).values(), key=lambda q: q.id)
    if as_json:
        for q in queries:
            click.echo(msgspec.json.encode(q))
        return
    table = Table()
    table.add_column("query", min_width=max((len(q.id) for q in queries), default=0))  # what `show` and `remove` need, whole
    for title in ("label", "IASC cluster", "languages", "sentences", "version", "threshold"):
        table.add_column(title)
    for q in queries:
        table.add_row(
            q.id, escape(q.label), q.iasc, str(len(q.sentences)), str(len(q.texts())), q.version,
            "calibrated" if q.threshold is None else f"{q.threshold:.3f} (set)",
        )  # fmt: skip
    out.print(table)


@query.command()
@click.argument("query_id")
@click.pass_obj
def show(settings: Settings, query_id: str) -> None:
    """Show one query with its sentences, as YAML."""
    q = _find(settings, query_id)
    click.echo(msgspec.yaml.encode(q).decode())


@query.command()
@click.argument("query_id", required=False)
@click.argument("sentences", nargs=-1)
@click.option("--lang", default="en", show_default=True, help="Language of the sentences.")
@click.option("--label", help="What people see. Default for a new query: the category.")
@click.option("--iasc", help="IASC cluster. Default for a new query: CCCM.")
@click.option("--hxl", help="HXL tag, such as '#need +water'.")
@click.option("--threshold", type=click.FloatRange(-1, 1), help="Alert threshold; default: calibrated or measured.")
@click.option("--file", "file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="A query pack (YAML) instead of arguments.")  # fmt: skip
@click.pass_obj
def add(settings: Settings, query_id: str | None, sentences: tuple[str, ...], lang: str, label: str | None,
        iasc: str | None, hxl: str | None, threshold: float | None, file: Path | None) -> None:  # fmt: skip
    """Add a query, or sentences to one that exists; what is given beside them replaces what it had.

    \b
    crisis query add need.boats "We need a boat to get off the roof" "Send boats to the school"
    crisis query add need.boats "Necesitamos una lancha" --lang es
    crisis query add --file my-pack.yaml
    """
    if file is not None:
        changes = {q.id: q for q in read_pack(file.read_bytes(), file.name)}
    else:
        if not query_id or not sentences:
            raise click.UsageError("give a query id (need.… or offer.…) and at least one sentence, or --file")
        asked = {"label": label, "iasc": iasc, "hxl": hxl, "threshold": threshold}
        given = {name: value for name, value in asked.items() if value is not None}
        changes = {query_id: _extended(settings, query_id, {lang: list(sentences)}, given)}
    publish_queries(settings, changes)
    for q in changes.values():
        click.echo(f"{q.id} is live, version {q.version}, {len(q.texts())} sentences")


def _extended(settings: Settings, query_id: str, sentences: dict[str, list[str]], given: dict[str, str | float]) -> Query:
    """The query with these sentences, by language, added to its own, and the fields that are given; or a new one."""
    known = read_queries(settings).get(query_id)
    if known is not None:
        texts = known.sentences | {lang: known.sentences.get(lang, []) + added for lang, added in sentences.items()}
        return check_query(msgspec.structs.replace(known, sentences=texts, **given))
    kind, _, category = query_id.partition(".")
    if kind not in ("need", "offer"):
        raise QueryError(f"query id {query_id!r} must start with need. or offer.")
    fields = {"label": category.replace("_", " ").capitalize()} | given
    return check_query(Query(id=query_id, kind=kind, category=category, sentences=sentences, **fields))


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
@click.argument("text")
@click.option("--bundled", is_flag=True, help="Use the bundled packs; needs no broker.")
@click.option("-n", "most", default=5, show_default=True, help="Queries to show.")
@click.pass_obj
def test(settings: Settings, text: str, bundled: bool, most: int) -> None:
    """Show how TEXT scores against the queries, and whether it would alert."""
    queries = load_queries() if bundled else list(read_queries(settings).values())
    encoder = load_encoder(settings.encoder.ref)
    matcher = build_matcher(settings, queries, encoder)
    scores = matcher.scores(encoder.encode([text]))[0]
    table = Table("query", "score", "alert at", "suggestion at", "outcome")
    for index in (-scores).argsort(kind="stable")[:most]:
        t, score = matcher.thresholds[index], scores[index]
        outcome = "[red]alert" if score >= t.alert else "[yellow]suggestion" if score >= t.suggestion else "–"
        table.add_row(matcher.queries[index].id, f"{score:.3f}", f"{t.alert:.3f}", f"{t.suggestion:.3f}", outcome)
    out.print(table)


def _find(settings: Settings, query_id: str) -> Query:
    known = read_queries(settings)
    if query_id not in known:
        raise QueryError(f"no query {query_id!r}; `crisis query list` shows the {len(known)} active ones")
    return known[query_id]
