"""`crisis why-not`: why a post gave no alert, in one sentence."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import click
import numpy as np

from models.encoders.ready import Ready
from models.errors import CrisisError, Rejected
from models.feedback.teach import teach
from models.moments import rfc3339
from models.moving_words import moving_words, moving_words_told
from models.pseudonyms import Pseudonyms
from models.queries import load_queries
from models.records import Alert, Frame, Match, MatchedFrame, Post, PutBy, account_of
from models.why_not import likeliest
from models.why_not import why_not as explain
from streams.broker.labels import read_labels
from streams.broker.queries import read_queries
from streams.broker.reading import read_values
from streams.commands.query_text import typed_post
from streams.commands.refused_post import find_refused
from streams.commands.versions import VERSION, chosen
from streams.config import Settings
from streams.outputs.printable import printable
from streams.outputs.span import Span
from streams.pipeline.frames import decode_frames, unpack_vectors
from streams.releases.versions import make_ready
from streams.view.connect import connect, reaching_redis
from streams.view.live import LiveView
from streams.view.pseudonyms import load_pseudonyms

__all__ = ["why_not"]

F = TypeVar("F", Frame, MatchedFrame)
PUT_BY = {"order": "others come before it", "told": "what it says was read several times already"}


@dataclass
class Trace:
    """What the topics say of one post; the newest word counts."""

    clean: Post | None = None
    post: Post | None = None  # as it was matched
    vector: np.ndarray | None = None
    encoder_version: str = ""
    matches: list[Match] = field(default_factory=list)
    folded_into: str = ""
    deleted: bool = False
    put_by: PutBy | None = None  # it was only skimmed when it came


@click.command("why-not")
@click.argument("post_id", required=False)
@click.option("--text", help="A text instead of a post that was read.")
@click.option("--lang", help="Language of the text. Default: found by itself.")
@click.option("--source", default="text", show_default=True, help="Source of the text, for queries that ask for one.")
@click.option("--last", "last_s", type=Span(), default="24h", show_default=True, help="How far back to look for it.")
@click.option("--words", is_flag=True, help="Also say which words moved the likeliest query; takes a second.")
@click.option("--bundled", is_flag=True, help="With --text: use the bundled packs; needs no broker.")
@VERSION
@click.pass_obj
def why_not(
    settings: Settings,
    post_id: str | None,
    text: str | None,
    lang: str | None,
    source: str,
    last_s: float,
    words: bool,
    bundled: bool,
    version: str | None,
) -> None:
    """Say in one sentence why POST_ID gave no alert: folded, refused, left out by a query, below its probability …

    \b
    crisis why-not bsky:did:plc:x/3k
    crisis why-not --text "nou bezwen dlo" --bundled --words
    """
    if (post_id is None) == (text is None):
        raise click.UsageError("give the id of a post, or --text")
    if text is not None:
        queries = load_queries() if bundled else list(read_queries(settings).values())
        ready = make_ready(settings, chosen(settings, version), queries)
        ready = ready if bundled else _taught(settings, ready)
        post = typed_post(text, lang, source)
        vector = ready.encoder.encode([post.text])[0]
        click.echo(printable(explain(ready.matcher, post, vector)))
        if words:
            click.echo(printable(_by_words(ready, post, vector)))
    else:
        pseudonyms = load_pseudonyms(settings, must=False)
        click.echo(printable(_of(settings, pseudonyms, post_id or "", last_s, version, words)))


def _by_words(ready: Ready, post: Post, vector: np.ndarray) -> str:
    """Which words moved the likeliest query, and by how much."""
    if not (query_id := likeliest(ready.matcher, post, vector)):
        return ""
    moved = moving_words(ready.matcher, ready.encoder, post, query_id)
    told = moving_words_told(moved, post.text) or "none by itself"
    return f"Words that moved {query_id} (log-odds {moved.log_odds:+.2f}): {told}."


def _of(
    settings: Settings, pseudonyms: Pseudonyms, typed: str, last_s: float, version: str | None, words: bool = False
) -> str:
    post_id = pseudonyms.id(typed)
    for alert in sorted(asyncio.run(_alerts(settings, post_id)), key=lambda a: a.status):  # active, then withdrawn
        if alert.status == "active" and alert.level == "alert":
            return f"It gave an alert: {alert.query_id}, {alert.alert_id[:8]}, seen {alert.seen_at}."
        if alert.status == "withdrawn" and alert.level == "alert":
            why = alert.withdrawn_because
            return f"Its alert ({alert.query_id}) was withdrawn at {alert.seen_at}: the post was {why}."
    trace = _trace(settings, post_id, last_s)
    if trace.deleted:
        return "It was deleted, and with it goes whatever it would have given."
    if trace.folded_into and trace.clean is None:  # else it took the place of what it repeated, or came twice
        return f"It was folded: it repeats {trace.folded_into}, ask for that one."
    if trace.post is not None and trace.vector is not None:
        ready = make_ready(settings, chosen(settings, version), list(read_queries(settings).values()))
        ready = _taught(settings, ready)
        vector = _vector(trace, ready)
        said = explain(ready.matcher, trace.post, vector, trace.matches)
        return f"{said} {_by_words(ready, trace.post, vector)}" if words else said
    if refused := _refused(settings, pseudonyms, post_id):
        return refused
    if trace.put_by is not None:
        return (
            "It waits to be read in context: posts came faster than that, so it was put by at "
            f"{rfc3339(trace.put_by.at)} ({PUT_BY[trace.put_by.reason]}; skimmed score {trace.put_by.score:.2f})."
        )
    if trace.clean is not None:
        waits = time.time() - trace.clean.seen_at
        return f"It is late: read {waits:.0f} s ago, not matched yet; `crisis status` says whether workers keep up."
    since = rfc3339(time.time() - last_s)
    return f"No post {typed} came in since {since}: not sent yet, still in posts.raw, or longer ago (--last)."


def _taught(settings: Settings, ready: Ready) -> Ready:
    """The version with what people taught, as workers have it."""
    return teach(ready, list(read_labels(settings).values()))[0]


def _vector(trace: Trace, ready: Ready) -> np.ndarray:
    assert trace.post is not None and trace.vector is not None
    if trace.encoder_version == ready.encoder.version:
        return trace.vector
    trace.matches = []  # of another encoder: its thresholds say nothing here
    found: np.ndarray = ready.encoder.encode([trace.post.text])[0]
    return found


async def _alerts(settings: Settings, post_id: str) -> list[Alert]:
    with reaching_redis(settings.redis):
        async with connect(settings.redis) as redis:
            return await LiveView(redis, settings).alerts_of([post_id])


def _trace(settings: Settings, post_id: str, last_s: float) -> Trace:
    """What posts.clean, posts.waiting and posts.matched hold of a post."""
    trace, owner = Trace(), account_of(post_id)
    for frame in _frames(settings, "posts.clean", last_s, Frame):
        if mine := [p for p in frame.posts if p.id == post_id]:
            trace.clean = mine[-1]
        trace.folded_into = next((r.of for r in frame.repeats if r.id == post_id), trace.folded_into)
        trace.deleted |= any(d.id in (post_id, owner) for d in frame.deletions)
    for waiting in _frames(settings, "posts.waiting", last_s, Frame):
        trace.put_by = next((p.put_by for p in waiting.posts if p.id == post_id), trace.put_by)
    for matched in _frames(settings, "posts.matched", last_s, MatchedFrame):
        rows = [i for i, p in enumerate(matched.posts) if p.id == post_id]
        if rows:
            with contextlib.suppress(CrisisError):
                trace.vector = unpack_vectors(matched)[rows[-1]]
                trace.post, trace.encoder_version = matched.posts[rows[-1]], matched.encoder_version
                trace.matches = [m for m in matched.matches if m.post_id == post_id]
    return trace


def _frames(settings: Settings, topic: str, last_s: float, kind: type[F]) -> Iterator[F]:
    for value in read_values(settings, topic, last_s):
        with contextlib.suppress(Rejected):  # somebody else wrote to our topic
            yield from decode_frames(value, kind)


def _refused(settings: Settings, pseudonyms: Pseudonyms, post_id: str) -> str:
    if (letter := find_refused(settings, pseudonyms, post_id)) is None:
        return ""
    told = f"{letter.reject.reason} at {letter.reject.stage}: {letter.reject.detail}"
    return f"It was refused ({told}); `crisis rejected show {letter.place}` shows it."
