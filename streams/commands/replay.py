"""`crisis replay | embed | match | cluster`: the stages over a file, without a broker."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import click
import msgspec
import numpy as np
from msgspec import structs
from rich.table import Table

from models.clustering import ClusterConfig
from models.clusters.thresholds import suggest_thresholds
from models.errors import Rejected, SampleTooSmall
from models.language import identify
from models.moments import epoch_s, rfc3339
from models.moving_words import moving_words
from models.posts import read_post
from models.queries import load_queries
from models.records import MatchedFrame, Origin, Post
from streams.commands.files import FILE, OUT, Looked, at_rest, not_the_input, note, progress, tell, whole
from streams.commands.seems import NO_UTF_8, one_list, seems
from streams.commands.versions import VERSION, chosen
from streams.config import Settings
from streams.ingest.lines import is_table, open_lines, read_frames
from streams.pipeline.clusters import ClusterStage
from streams.pipeline.frames import pack_vectors
from streams.pipeline.outcomes import OUTCOMES
from streams.pipeline.replay import Replay, replay_records
from streams.releases.versions import make_ready
from streams.view.pseudonyms import load_pseudonyms

__all__ = ["cluster", "embed", "match", "replay"]

PACKS = click.option(
    "--packs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of query packs (*.yaml) instead of the bundled ones.",
)
AT_ONCE = 1000  # posts encoded in one call
THRESHOLD_ROWS = 4000  # rows that thresholds for given vectors are derived from
NO_UTF_8_SHARE = 0.02  # of the lines, from which on the file is told to be in another encoding; less is damage
_json = msgspec.json.Encoder().encode


def replay_file(
    settings: Settings,
    path: Path,
    start_at: float,
    on_frame: Callable[[int], None] = lambda n: None,
    alerts_out: BinaryIO | None = None,
    clusters_out: BinaryIO | None = None,
    rejects_out: BinaryIO | None = None,
    packs: Path | None = None,
    version: str | None = None,
) -> Replay:
    """Replay a file of posts; `on_frame` is told how many lines were read."""
    ready = make_ready(settings, chosen(settings, version), load_queries(packs))
    with open_lines(path, settings.ingest.writer.line_bytes) as lines:
        frames = read_frames(iter(lines))
        names = load_pseudonyms(settings, must=False)
        return replay_records(settings, frames, start_at, ready, on_frame, alerts_out, clusters_out, rejects_out, names)


class Moment(click.ParamType):
    """A moment on the command line, as posts tell it."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        with contextlib.suppress(Rejected):
            if 0 < (at := epoch_s(str(value))) < 1e11:  # not "inf", nor a year that no calendar has
                return at
        self.fail(f"{str(value)!r} is no time: write 2026-11-20T06:00:00Z", param, ctx)


@click.command()
@click.argument("file", type=FILE)
@click.option("--alerts", type=OUT, help="Write alerts here, JSON lines (updates and withdrawals as they happen).")
@click.option("--clusters", type=OUT, help="Write cluster events here, JSON lines.")
@click.option("--rejects", type=OUT, help="Write refused lines here with their reasons, JSON lines.")
@click.option(
    "--at",
    type=Moment(),
    help="When the posts are taken to have come, such as 2026-11-20T06:00:00Z. By default the latest time that one of "
    "them tells, or when FILE was written.",
)
@PACKS
@VERSION
@click.pass_obj
def replay(
    settings: Settings,
    file: Path,
    alerts: Path | None,
    clusters: Path | None,
    rejects: Path | None,
    at: float | None,
    packs: Path | None,
    version: str | None,
) -> None:
    """Run the whole pipeline over FILE (JSONL, CSV or TSV, .gz too; - is standard input): the live path's stages,
    without a broker.

    Posts need only `id` and `text`. The same posts give the same alerts, byte for byte; where none of them tells a
    time, with the same --at.
    """
    not_the_input(file, alerts, clusters, rejects)
    with contextlib.ExitStack() as stack:
        posts = stack.enter_context(at_rest(file))
        outs = [stack.enter_context(whole(path)) for path in (alerts, clusters, rejects)]
        looked, advance = stack.enter_context(progress(posts, "replay"))
        if one_list(looked.head):  # else each of its lines is read and refused
            raise click.ClickException(f"{file} {seems(file, looked.head, {}, None)}")
        looked = looked if at is None else looked._replace(clock_at=at, clock="as asked")
        done = replay_file(settings, posts, looked.clock_at, advance, *outs, packs, version)
    table = Table("posts read", f"{done.totals.counts['read']:,}")
    for outcome in OUTCOMES:
        table.add_row(outcome.replace("_", " "), f"{done.totals.counts[outcome]:,}")
    note.print(table)
    for told in _told(done, looked, file, rejects):
        tell(told)
    if not done.totals.check():
        raise click.ClickException("the totals do not add up: a post was lost or counted twice. Please report this.")
    if done.refused and done.refused.total() == done.totals.counts["read"]:
        seeming = seems(file, looked.head, done.refused, done.first_refused)
        raise click.ClickException(f"every line was refused: {file} {seeming}")


def _told(done: Replay, looked: Looked, file: Path, kept: Path | None) -> Iterator[str]:
    """How many lines were refused for which reasons, where they are shown, and what in the file is likely wrong."""
    refused = done.refused
    if refused:
        told = ", ".join(f"{reason} {count:,}" for reason, count in refused.most_common())
        again = f"`crisis replay {file} --rejects FILE` writes them, each with its reason"
        yield f"{refused.total():,} rejected: {told}; {f'{kept} holds them' if kept else again}"
    if refused["bad_utf8"] >= max(1, NO_UTF_8_SHARE * done.totals.counts["read"]):
        yield f"{refused['bad_utf8']:,} lines are no UTF-8, {NO_UTF_8}"
    if refused["bad_time"]:
        yield f"times are judged by {rfc3339(looked.clock_at)}, {looked.clock}; --at sets another"
    if done.edits:
        yield (
            f"{done.edits:,} posts came under the id of an earlier one with another text: each was read as an edit of "
            "it, so that of each id the last text stands"
        )


@contextlib.contextmanager
def _batches(file: Path, what: str, rows: bool = True, count: int | None = None) -> Iterator[Iterator[list[Post]]]:
    """The posts of a file as `_posts` gives them, behind a progress bar. A line that is no post is told before the
    first of them is given. count: how many posts there must be, if given.
    """
    check = partial(_post, file, rows, time.time())
    with at_rest(file) as path, progress(path, what, count, check) as (looked, advance):
        yield _posts(path, rows, looked.clock_at, advance)


def _posts(path: Path, rows: bool, seen_at: float, advance: Callable[[int], None]) -> Iterator[list[Post]]:
    """The posts of a file, AT_ONCE at a time, nothing folded. rows: row i is line i, blank lines not counted, and a
    deletion is refused; else deletions are left out, and told of at the end. advance: is told how many lines are done.
    """
    with open_lines(path) as lines:
        numbered = ((number, line.strip()) for number, line in enumerate(lines, 1) if line.strip())
        deletions = 0
        while block := list(islice(numbered, AT_ONCE)):
            read = [_post(path, rows, seen_at, number, line) for number, line in block]
            kept = [structs.replace(post, lang=identify(post.text, tag)) for post, tag in read if post]
            deletions += len(read) - len(kept)
            if kept:
                yield kept
            advance(len(block))
    if deletions:
        tell(f"{deletions:,} deletions left out: they are no posts")


def _post(path: Path, rows: bool, seen_at: float, number: int, line: bytes) -> tuple[Post | None, str | None]:
    """A line's post, without its language, and its language tag; its text may be empty. No post for a deletion, unless
    `rows` are to be lines. What else is no post stops the command: left out, it would shift the rows after it.
    """
    try:
        post, tag = read_post(line.strip(), seen_at=seen_at, author_key=b"file", empty_ok=True)
        if isinstance(post, Post):
            return post, tag
        if not rows:
            return None, None
        why = "a deletion has no row"
    except Rejected as error:
        why = str(error)
    raise click.ClickException(
        f"{path} {'row' if is_table(path) else 'line'} {number}: {why}. Row i must be line i, so no line is "
        "skipped: take it out. (`crisis replay` counts "
        "such lines and goes on.)"
    )


@click.command()
@click.argument("file", type=FILE)
@click.option("--out", type=OUT, required=True, help="NumPy file to write: float32 unit rows, row i = line i.")
@VERSION
@click.pass_obj
def embed(settings: Settings, file: Path, out: Path, version: str | None) -> None:
    """Embed the posts of FILE, which may hold no deletions: row i is line i."""
    not_the_input(file, out)
    encoder = chosen(settings, version).encoder
    blocks = []
    with whole(out) as file_out:
        with _batches(file, "embed") as batches:
            for posts in batches:
                blocks.append(encoder.encode([p.text for p in posts]))
        rows = np.concatenate(blocks) if blocks else np.zeros((0, encoder.dim), np.float32)
        # np.save writes past Python where it can, and its error names neither the file nor the reason.
        np.lib.format.write_array_header_1_0(file_out, np.lib.format.header_data_from_array_1_0(rows))
        file_out.write(np.ascontiguousarray(rows).data)
    note.print(f"{sum(map(len, blocks)):,} rows of dim {encoder.dim} by encoder {encoder.version} in {out}")


@click.command()
@click.argument("file", type=FILE)
@click.option("--scores", type=OUT, required=True, help='JSON lines to write: {"id", "scores": {query id: score}}.')
@click.option(
    "--explain",
    is_flag=True,
    help='Add "matches": the readings of each post and what adds up to them; and "words": what leaving out each word '
    "does to the first, for which the post is read once a word.",
)
@PACKS
@VERSION
@click.pass_obj
def match(settings: Settings, file: Path, scores: Path, explain: bool, packs: Path | None, version: str | None) -> None:
    """Score every post of FILE against every query. Deletions are left out and counted."""
    not_the_input(file, scores)
    ready = make_ready(settings, chosen(settings, version), load_queries(packs))
    encoder, matcher = ready.encoder, ready.matcher
    ids = [q.id for q in matcher.queries]
    with whole(scores) as out, _batches(file, "match", rows=False) as batches:
        for posts in batches:
            vectors = encoder.encode([p.text for p in posts])
            numbers = [str(row) for row in range(len(posts))]  # ids may occur twice in a file
            found = matcher.match(numbers, vectors, encoder.version, posts) if explain else []
            for number, post, row in zip(numbers, posts, matcher.scores(vectors).tolist(), strict=True):
                line: dict[str, object] = {"id": post.id, "scores": dict(zip(ids, row, strict=True))}
                if explain:
                    mine = [structs.replace(m, post_id=post.id) for m in found if m.post_id == number]
                    line["matches"] = mine
                    line["words"] = [moving_words(matcher, encoder, post, m.query_id) for m in mine[:1]]
                out.write(_json(line) + b"\n")


def _read_vectors(path: Path) -> np.ndarray:
    """(n, d) floats of a .npy file; anything else is refused."""
    try:
        with click.open_file(str(path), "rb") as file:
            given = np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise click.ClickException(f"{path} is no NumPy file (.npy) of numbers: {error}") from error
    if given.ndim != 2 or not given.shape[1] or given.dtype.kind != "f" or not np.isfinite(given).all():
        raise click.ClickException(
            f"{path} holds {given.dtype} of shape {given.shape}: finite floats (posts, dim) are needed"
        )
    return given


def _fitting(config: ClusterConfig, vectors: np.ndarray) -> ClusterConfig:
    """The config with thresholds that suit vectors nobody tuned it for, where there are enough to tell."""
    try:
        suggested = suggest_thresholds(vectors[:THRESHOLD_ROWS], words=config.lexical > 0)
    except SampleTooSmall:
        return config
    note.print(f"thresholds for these vectors: attach {suggested.t_attach:.3f}, merge {suggested.t_merge:.3f}")
    return dataclasses.replace(config, t_attach=suggested.t_attach, t_merge=suggested.t_merge)


@click.command()
@click.argument("file", type=FILE)
@click.option("--out", type=OUT, required=True, help='JSON lines to write: {"id", "arrival", "cluster"}.')
@click.option("--vectors", type=FILE, help="NumPy file of vectors (row i = line i) instead of the encoder's.")
@VERSION
@click.pass_obj
def cluster(settings: Settings, file: Path, out: Path, vectors: Path | None, version: str | None) -> None:
    """Cluster the posts of FILE in order: the cluster shown at arrival, and the one it settled in.

    Deletions are left out and counted; with --vectors, where row i is line i, there may be none.
    """
    not_the_input(file, out)
    not_the_input(vectors, out)
    given = _read_vectors(vectors) if vectors else None
    if given is None:
        loaded = chosen(settings, version)
        encoder, config = loaded.clustered_by, settings.clusters_under(loaded.clusters)
        made_by, dim = encoder.version, encoder.dim
    else:
        encoder, config = None, _fitting(settings.cluster, given)
        made_by, dim = "given", given.shape[1]
    stage = ClusterStage.new(config, dim, made_by)
    ids, arrival, at = [], [], 0
    with _batches(file, "cluster", given is not None, None if given is None else len(given)) as batches:
        for number, posts in enumerate(batches):
            rows = given[at : at + len(posts)] if encoder is None else encoder.encode([p.text for p in posts])
            at += len(posts)
            frame = MatchedFrame(
                origin=Origin(0, number), posts=posts, encoder_version=made_by, dim=dim, vectors=pack_vectors(rows)
            )
            stage.add_all([frame])
            ids += [p.id for p in posts]
            arrival += [stage.clusterer.arrival_of(p.id) for p in posts]
    stage.finish()
    with whole(out) as lines:
        for post_id, first in zip(ids, arrival, strict=True):
            lines.write(_json({"id": post_id, "arrival": first, "cluster": stage.clusterer.find(first)}) + b"\n")
