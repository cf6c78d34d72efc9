"""What can be said of a query on the command line, beside its sentences: for `add`, `edit` and `test`."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import click
import msgspec

from models.errors import ConfigError, QueryError
from models.filters import Where, located
from models.language_tags import post_language
from models.moments import rfc3339
from models.queries import BARS, Query, check_query
from models.records import KINDS
from streams.broker.queries import bundled, not_ended
from streams.outputs.span import seconds

__all__ = ["changed", "with_fields"]

_OPTIONS = (
    click.option("--label", help="What people see. Default for a new query: the category."),
    click.option("--iasc", help="IASC cluster. Default for a new query: CCCM."),
    click.option("--hxl", help="HXL tag, such as '#need +water'."),
    click.option("--threshold", type=click.FloatRange(-1, 1), help="Alert threshold, in units of score."),
    click.option(
        "--probability",
        type=float,
        help="Alert from this probability on that somebody can act on the post. Default: match.alert_probability.",
    ),
    click.option(
        "--alerts-per-hour",
        type=float,
        help="Or at most so many alerts an hour: once they are given, only what is likelier than all of them alerts, "
        "and what reads as urgent; the rest are suggestions. It never lowers the bar.",
    ),
    click.option(
        "--target-precision",
        type=float,
        help="Or so that this share of its alerts is right, such as 0.8: the probability follows the stream.",
    ),
    click.option("--languages", help="Only posts in these languages, such as es,qu. '' takes the filter away."),
    click.option("--sources", help="Only posts of these sources, such as sms,bluesky."),
    click.option(
        "--area",
        help="Posts from there, or naming a place there: a place (Jacmel; Springfield, Illinois; Puebla (town), MX), "
        "or SOUTH,WEST,NORTH,EAST in degrees. '' takes it away.",
    ),
    click.option("--must", help="Only posts with one of these words, comma separated; * ends a word anyhow."),
    click.option("--must-not", help="Only posts with none of these words."),
    click.option("--expires", help="When it ends: 2026-12-01T18:00:00Z, or 6h, 2d from now. '' = never."),
)


def with_fields(command: Callable) -> Callable:
    """Give a command these options; it is called with them as one dict, `given`."""

    @functools.wraps(command)
    def called(*args: Any, **options: Any) -> Any:
        given = {name: options.pop(name) for name in _NAMES}
        return command(*args, given={name: value for name, value in given.items() if value is not None}, **options)

    for option in reversed(_OPTIONS):
        called = option(called)
    return called


_NAMES = (
    "label",
    "iasc",
    "hxl",
    *BARS,
    "languages",
    "sources",
    "area",
    "must",
    "must_not",
    "expires",
)


def changed(
    known: Query | None, query_id: str, sentences: dict[str, list[str]], given: dict[str, Any], now: float | None = None
) -> Query:
    """The query with these sentences, by language, added to its own, and the fields that are given; or a new one. A
    bundled one that was removed begins as it was shipped: what it learnt is of all its sentences. Each is kept once.

    Raises QueryError saying what to change.
    """
    now = time.time() if now is None else now
    if known is None:
        known = bundled().get(query_id)
    if known is None:
        kind, _, category = query_id.partition(".")
        if kind not in KINDS:
            raise QueryError(f"query id {query_id!r} must start with {', '.join(f'{k}.' for k in KINDS)}")
        label = category.replace("_", " ").capitalize()
        known = Query(id=query_id, kind=kind, category=category, label=label, sentences={})  # type: ignore[arg-type]
    texts = known.sentences | {
        lang: list(dict.fromkeys([*known.sentences.get(lang, []), *added]))
        for lang, added in ((post_language(code), texts) for code, texts in sentences.items())
    }
    plain = {name: value for name, value in given.items() if name in ("label", "iasc", "hxl", *BARS)}
    if any(name in plain for name in BARS):
        plain = dict.fromkeys(BARS) | plain
    if "expires" in given:
        plain["expires"] = _moment(given["expires"], now)
    made = check_query(msgspec.structs.replace(known, sentences=texts, where=_where(known, given), **plain))
    return not_ended(made, now) if "expires" in given else made


def _where(known: Query, given: dict[str, Any]) -> Where | None:
    lists = {
        name: [part.strip() for part in given[name].split(",") if part.strip()]
        for name in ("languages", "sources", "must", "must_not")
        if name in given
    }
    if "languages" in lists:
        lists["languages"] = [post_language(code) for code in lists["languages"]]
    area = located(given["area"]) if "area" in given else {}
    where = msgspec.structs.replace(known.where or Where(), **lists, **area)
    return None if where == Where() else where


def _moment(text: str, now: float) -> str:
    """ "6h" → the time in six hours; anything else as it is."""
    try:
        return rfc3339(now + seconds(text)) if text else ""
    except ConfigError:
        return text
