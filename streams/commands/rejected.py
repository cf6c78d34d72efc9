"""`crisis rejected`: what was refused, why, and once more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import islice

import click
from rich.console import Console
from rich.table import Table

from models.errors import CrisisError
from models.posts import REASONS
from models.records import Reject
from streams.broker.rejects import ends_of, lines_of, mark_retried, read_rejects, read_retried, send_again
from streams.broker.topics import AGENTS
from streams.commands.rejected_posts import again, taken_out
from streams.config import Settings
from streams.outputs.printable import printable
from streams.pipeline.frames import encode_frame

__all__ = ["rejected"]

out = Console()
SHOWN_CHARS = 2_000
REFUSED = (*REASONS, "bad_frame", "stage_error", "worker_died")  # a line; a record of an inner topic; a post; either


@click.group()
def rejected() -> None:
    """List, show and retry what was refused: the records of posts.rejected.

    They hold what was sent, phone numbers included: show them to nobody who need not see them.
    """


def _reason(told: str) -> Callable:
    """One that nothing is refused for chooses nothing: it would look as if all were well."""
    return click.option("--reason", type=click.Choice(REFUSED), metavar="REASON", help=told)


def _cut(text: str, full: bool) -> str:
    left = len(text) - SHOWN_CHARS
    return text if full or left <= 0 else f"{text[:SHOWN_CHARS]}… ({left:,} characters left out; --full shows them)"


def more(reject: Reject) -> str:
    """Of many lines refused for one reason only the first has its own bytes here."""
    return f" and {len(reject.also):,} later ones" if reject.also else ""


@rejected.command("list")
@_reason("Only this reason.")
@click.pass_obj
def list_rejected(settings: Settings, reason: str | None) -> None:
    """Count the rejects by reason and stage, but for those that were sent again."""
    retried, sent_again = read_retried(settings), 0
    counts: Counter[tuple[str, str]] = Counter()
    newest: dict[tuple[str, str], tuple[str, str]] = {}
    for letter in read_rejects(settings, reason):
        key = letter.reject.reason, letter.reject.stage
        if letter.place in retried:
            sent_again += 1 + len(letter.reject.also)
            continue
        counts[key] += 1 + len(letter.reject.also)
        newest[key] = max(newest.get(key, ("", "")), (letter.reject.seen_at, letter.place))
    table = Table("reason", "stage", "lines", "newest", "place (crisis rejected show PLACE)")
    for (why, stage), count in counts.most_common():
        at, place = newest[why, stage]
        table.add_row(why, stage, f"{count:,}", at, place)
    out.print(table)
    if sent_again:
        click.echo(f"{sent_again:,} lines left out: they were sent again; what was refused anew is counted")


@rejected.command()
@click.argument("place", required=False)
@_reason("The first of this reason instead.")
@click.option("-n", "most", default=5, show_default=True, help="So many of a reason.")
@click.option("--full", is_flag=True, help=f"All that is kept of each, not only {SHOWN_CHARS:,} characters.")
@click.pass_obj
def show(settings: Settings, place: str | None, reason: str | None, most: int, full: bool) -> None:
    """Show rejects: where they came from, why they were refused, and what was sent."""
    found = (x for x in read_rejects(settings, reason) if place is None or x.place == place)
    shown = list(islice(found, 1 if place else most))
    if not shown:
        raise CrisisError(f"no such reject: {place or reason or 'there are none'}; `crisis rejected list` counts them")
    for letter in shown:
        reject, origin = letter.reject, letter.reject.origin
        text = _cut(printable(reject.raw.decode("utf-8", "replace")), full)
        out.print(f"[bold]{letter.place}[/] {reject.reason} at {reject.stage}, {reject.seen_at}")
        out.print(f"  from partition {origin.partition}, offset {origin.offset}, line {reject.line}" + more(reject))
        # Not by rich, which takes a minute for 64 kB without a space.
        click.echo(f"  {_cut(printable(reject.detail), full)}\n  {text}")


@rejected.command()
@click.argument("place", required=False)
@_reason("All of this reason.")
@click.option("--again", "once_more", is_flag=True, help="Those too that were sent again before.")
@click.pass_obj
def retry(settings: Settings, place: str | None, reason: str | None, once_more: bool) -> None:
    """Send rejects once more, after what refused them was mended.

    What was refused unread is read from posts.raw, where it stays for topics.retention_h, and sent there again line by
    line. What was refused later goes to posts.clean again, post by post: but for what was deleted or edited since it is
    read. What cannot be sent is counted, and why. What was sent again before is left out: refused anew it is a reject
    of its own.
    """
    if (place is None) == (reason is None):
        raise click.UsageError("say which: a PLACE or --reason")
    asked = [x for x in read_rejects(settings, reason) if place in (None, x.place)]
    retried = set() if once_more else read_retried(settings)
    places = {id(x.reject): x.place for x in asked if x.place not in retried}
    found = [x.reject for x in asked if x.place not in retried]
    not_so: Counter[str] = Counter()
    lines = list(lines_of(settings, (reject for reject in found if reject.stage == AGENTS[0])))
    not_so["no longer in posts.raw"] = sum(line is None for _, line in lines)
    raw = [(reject.origin.partition, line) for reject, line in lines if line is not None]
    done = [reject for reject, line in lines if line is not None]
    taken = list(taken_out(settings, [reject for reject in found if reject.stage != AGENTS[0]], not_so, done))
    sent = send_again(settings, "posts.raw", raw) if raw else 0
    if taken:
        placed = again(taken, ends_of(settings, "posts.clean"), settings.worker.frame_bytes)
        sent += send_again(settings, "posts.clean", ((f.origin.partition, encode_frame(f)) for f in placed))
    mark_retried(settings, dict.fromkeys(places[id(reject)] for reject in done))
    click.echo(f"{sent:,} of {sent + not_so.total():,} sent again")
    for why, n in (+not_so).items():
        click.echo(f"{n:,} not: {why}")
    if left_out := len(asked) - len(found):
        click.echo(f"{left_out:,} left out: sent again before (--again sends them once more)")
