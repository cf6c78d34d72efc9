"""How one text reads by the queries as they stand: `crisis query test TEXT`."""

from __future__ import annotations

import time

import click
import msgspec
from rich.markup import escape
from rich.table import Table

from models.encoders.ready import Ready
from models.errors import Rejected
from models.language_tags import post_language
from models.matching import Matcher
from models.posts import parse_post
from models.records import Match, Post

__all__ = ["outcomes", "typed_post"]

SHOWN_AS = {"alert": "[red]alert", "suggestion": "[yellow]suggestion"}


def typed_post(text: str, lang: str | None, source: str) -> Post:
    """The post that would be made of a text from this source. lang: None to find it. Raises ClickException, and
    QueryError for a language that no post has."""
    lang = post_language(lang) if lang else None
    fields = {"id": "text/0", "text": text, "source": source} | ({"lang": lang} if lang else {})
    try:
        post = parse_post(msgspec.json.encode(fields), seen_at=time.time(), author_key=b"")
    except Rejected as why:
        raise click.ClickException(f"it would be refused: {why}") from why
    assert isinstance(post, Post)
    return post if lang is None else msgspec.structs.replace(post, lang=lang)


def outcomes(ready: Ready, post: Post, most: int) -> Table:
    """The likeliest queries, and what the pipeline would make of each."""
    matcher = ready.matcher
    vectors = ready.encoder.encode([post.text])
    found = {m.query_id: m for m in matcher.match([post.id], vectors, ready.encoder.version, [post])}
    likely = matcher.standings(post, vectors[0])
    table = Table("query", "likely", "alert at", "suggestion at", "outcome")
    table.columns[0].overflow = "fold"  # `show` and `edit` need the id whole
    for index in (-likely).argsort(kind="stable")[:most].tolist():
        query, least = matcher.queries[index], matcher.standing_at(index, matcher.thresholds[index].suggestion)
        outcome = _outcome(matcher, index, post, found.get(query.id), float(likely[index]) >= least)
        bar = "moves" if _follows(matcher, query.id) else f"{matcher.own_bar(index):.3f}"
        table.add_row(query.id, f"{likely[index]:.3f}", bar, f"{least:.3f}", outcome)
    return table


def _outcome(matcher: Matcher, index: int, post: Post, match: Match | None, reaches: bool) -> str:
    if match is None:
        if not reaches:
            return "–"
        refused = matcher.refusal(index, post)
        return f"left out: {escape(refused)}" if refused else "others are likelier"
    budget = matcher.budgets.get(match.query_id)
    if _follows(matcher, match.query_id):
        return "[yellow]suggestion or alert: its bar follows the stream, and where it lies is not known here"
    if match.level == "alert" and budget is not None and match.priority != "urgent":
        return f"{SHOWN_AS['alert']}, unless its {budget:g} an hour are given, which is not known here"
    return SHOWN_AS[match.level]


def _follows(matcher: Matcher, query_id: str) -> bool:
    """Is its bar where a target precision puts it?"""
    common = matcher.config.target_precision is not None and query_id in matcher.followers
    return common or query_id in matcher.targets
