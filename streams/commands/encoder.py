"""`crisis encoder`: the published encoder versions, and which of them serves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import click
import msgspec
from redis.exceptions import RedisError
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from models.encoders.registry import OWN, version_cache
from models.errors import CrisisError
from models.queries import load_queries
from streams.broker.queries import read_queries
from streams.commands.encoder_tables import diff_tables, languages_table, role_of, trial_table, when
from streams.config import Settings
from streams.config.secrets import redacted
from streams.outputs.span import Span
from streams.releases.compared_posts import posts_of_file, posts_of_stream
from streams.releases.diff import diff_versions
from streams.releases.release import Release, trial_of
from streams.releases.topic import change_release, read_release
from streams.releases.versions import load_version, make_ready, registry_of, resolve
from streams.view.connect import connect
from streams.view.live import LiveView
from streams.view.status import WorkerStatus

__all__ = ["encoder"]

out = Console()
JSON = click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")


@click.group()
def encoder() -> None:
    """List, compare, stage, use and roll back encoder versions.

    Versions come from the registry (CRISIS_ENCODER__REGISTRY), published by `python -m training.publish`. Running
    workers take a version over by themselves, without a restart. A version may be named by its first letters; `own`
    is the encoder of the settings (the bundled one, or encoder.ref).
    """


@encoder.command("list")
@JSON
@click.pass_obj
def list_versions(settings: Settings, as_json: bool) -> None:
    """List the versions, their roles, and how a trial goes."""
    release = read_release(settings)
    entries = registry_of(settings).list() if settings.encoder.registry else []
    counts, workers = asyncio.run(_live(settings, release))
    if as_json:
        click.echo(msgspec.json.encode({"release": release, "versions": entries, "trial": counts, "workers": workers}))
        return
    serving = {}
    for word in workers.values():
        if word.lives(time.time()):
            serving[word.registry_version] = serving.get(word.registry_version, 0) + 1
    table = Table(
        Column("version", no_wrap=True),
        Column("role", no_wrap=True),
        "workers",
        Column("published", no_wrap=True),
        "back-end",
        "languages",
        Column("parent", no_wrap=True),
    )
    own = [] if settings.encoder.registry and release.current != OWN and OWN not in release.earlier else [OWN]
    for name, entry in [*((o, None) for o in own), *((e.version, e) for e in entries)]:
        m = entry.manifest if entry else None
        table.add_row(
            name,
            role_of(release, name),
            str(serving.get(name) or ""),
            when(entry.published_at if entry else None)[:10],
            *(
                (f"{m.backend} {m.dim}", str(len(m.languages)), m.parent or "–")
                if m
                else (escape(entry.problem) if entry else "of the settings", "", "")
            ),
        )
    out.print(table)
    if release.change:
        out.print(f"revision {release.revision}, {when(release.changed_at)}: {escape(release.change)}")
    for name, word in sorted(workers.items()):
        if word.message and word.lives(time.time()):
            out.print(f"[red]{escape(name)}: {escape(word.message)}")
    if release.staged is not None and counts:
        out.print(trial_table(counts))


async def _live(settings: Settings, release: Release) -> tuple[dict[str, int], dict[str, WorkerStatus]]:
    """The trial's counters and the workers' words; nothing where Redis does not answer."""
    redis = connect(settings.redis)
    try:
        view = LiveView(redis, settings)
        return await view.counts(trial_of(release)), await view.workers()
    except (RedisError, OSError) as error:
        click.secho(f"no live figures: {redacted(error)}", fg="yellow", err=True)
        return {}, {}
    finally:
        await redis.aclose()


@encoder.command()
@click.argument("version")
@JSON
@click.pass_obj
def info(settings: Settings, version: str, as_json: bool) -> None:
    """Show what a version is: manifest, languages with their figures, evaluation, sources."""
    registry = registry_of(settings)
    name = registry.resolve(version)
    manifest = registry.fetch(name, version_cache()).manifest
    if as_json:
        click.echo(msgspec.json.encode(manifest))
        return
    out.print(f"[bold]{name}[/], verified: {len(manifest.files)} files as their sha256 says")
    table = Table(show_header=False)
    for field in ("backend", "dim", "max_length", "pooling", "whitening", "parent", "licence"):
        table.add_row(field, escape(str(getattr(manifest, field))))
    table.add_row("cleaning", escape(str(msgspec.to_builtins(manifest.cleaning))))
    table.add_row("made by", escape(str(manifest.training.get("job", "–"))))
    for source, digest in manifest.data_hashes.items():
        table.add_row(f"data, {source}", digest[:16])
    for file, digest in manifest.files.items():
        table.add_row(file, f"sha256 {digest[:16]}")
    gates = manifest.evaluation.get("gates", {})
    if gates:
        table.add_row(
            "gates",
            f"{gates['compared']} figures against {gates['against'] or 'nothing'}, "
            f"{len(gates['regressions'])} worse than allowed ({gates['at']})",
        )
    if "forced" in manifest.evaluation:
        table.add_row(
            "[red]forced", escape(f"{manifest.evaluation['forced']!r} in spite of " + "; ".join(gates["regressions"]))
        )
    out.print(table)
    out.print(languages_table(manifest))


@encoder.command()
@click.argument("a")
@click.argument("b")
@click.option(
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Posts (JSONL, .gz too) instead of the stream; the bundled queries.",
)
@click.option(
    "--last", "last_s", type=Span(), default="6h", show_default=True, help="How far back in the stream: 90m, 6h, 2d."
)
@click.option("-n", "most", default=10, show_default=True, help="Alerts to show of each kind.")
@JSON
@click.pass_obj
def diff(settings: Settings, a: str, b: str, file: Path | None, last_s: float, most: int, as_json: bool) -> None:
    """Show which alerts B would give that A does not, and the other way round, on real posts.

    Each version scores with its own query vectors, background and calibration.
    """
    names = [resolve(settings, name) for name in (a, b)]
    if file is not None:
        queries, posts = load_queries(), asyncio.run(posts_of_file(file))
    else:
        queries = list(read_queries(settings).values())
        posts = posts_of_stream(settings, time.time() - last_s)
    if not posts:
        raise click.ClickException(
            f"no posts {'in ' + str(file) if file else f'on the stream in the last {last_s:g} s'}"
        )
    left, right = (make_ready(settings, load_version(settings, name), queries) for name in names)
    found = diff_versions(posts, left, right)
    if as_json:
        click.echo(msgspec.json.encode(found))
        return
    for table in diff_tables(found, most):
        out.print(table)


@encoder.command()
@click.argument("version")
@click.option(
    "--shadow",
    type=click.FloatRange(0, 1),
    default=0.1,
    show_default=True,
    help="Share of the frames it scores unseen.",
)
@click.option(
    "--canary",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="Share of the partitions it serves; rolled back by itself when it leaves its bands.",
)
@click.pass_obj
def stage(settings: Settings, version: str, shadow: float, canary: float) -> None:
    """Put a version on trial beside the current one."""
    name = _checked(settings, version)
    _change(settings, lambda r: r.stage(name, time.time(), shadow, canary))


@encoder.command()
@click.pass_obj
def unstage(settings: Settings) -> None:
    """End the trial."""
    _change(settings, lambda r: r.unstage(time.time()))


@encoder.command()
@click.argument("version")
@click.pass_obj
def use(settings: Settings, version: str) -> None:
    """Make a version current: every worker takes it over."""
    name = _checked(settings, version)
    _note_current(settings, _change(settings, lambda r: r.use(name, time.time())))


@encoder.command()
@click.pass_obj
def rollback(settings: Settings) -> None:
    """End a canary; with none, go back to the version that was current before."""
    _note_current(settings, _change(settings, lambda r: r.rollback(time.time())))


def _checked(settings: Settings, version: str) -> str:
    """The full name, after it was fetched and verified here: what is broken is not announced to every worker."""
    name = resolve(settings, version)
    if name != OWN:
        try:
            registry_of(settings).fetch(name, version_cache())
        except CrisisError as error:
            raise click.ClickException(f"{name} is not announced: {error}") from error
    return name


def _change(settings: Settings, change: Callable[[Release], Release]) -> Release:
    release = change_release(settings, change)
    click.echo(f"revision {release.revision}: {release.change}")
    return release


def _note_current(settings: Settings, release: Release) -> None:
    """Tell the registry what is current: `training.publish` holds the next version against it and knows no topic."""
    if settings.encoder.registry is None:
        return
    try:
        registry_of(settings).choose(release.current)
    except CrisisError as error:  # workers know already; only the next publisher must be told by hand
        told = f"{redacted(error)}; name current={release.current} when you publish the next one"
        click.secho(told, fg="yellow", err=True)
