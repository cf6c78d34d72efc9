"""A query in words: what it reads, from where on it alerts, and what came of a change."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import click
import msgspec

from models.filters import Where
from models.places.gazetteer import Gazetteer
from models.queries import Query
from streams.broker.queries import bundled

__all__ = ["bar", "reads", "tell"]

NARROWS = ("languages", "sources", "area", "must", "must_not")  # fields that leave posts out


def bar(q: Query) -> str:
    """From where on it alerts."""
    if q.probability is not None:
        return f"{q.probability:.0%} likely"
    if q.alerts_per_hour is not None:
        return f"{q.alerts_per_hour:g} an hour"
    if q.target_precision is not None:
        return f"{q.target_precision:.0%} right"
    return "calibrated" if q.threshold is None else f"score {q.threshold:.3f}"


def reads(q: Query) -> str:
    """Its filter and its end."""
    end = f"{'ended' if _ended(q) else 'until'} {q.expires}" if q.expires else ""
    return "; ".join(filter(None, (_filter(q), end)))


def tell(q: Query, given: Mapping[str, Any] | None = None, meanwhile: bool = False) -> None:
    """What came of a change. given: the fields that somebody asked for; meanwhile: others changed it too."""
    state = f"is saved, but ended at {q.expires}: it reads nothing" if _ended(q) else "is live"
    click.echo(f"{q.id} {state}, version {q.version}, {len(q.texts())} sentences")
    if meanwhile:
        click.echo("somebody else changed it at the same time: both changes are in it; where they differ, yours")
    if q.where and q.where.place:
        _tell_area(q.where)
    if q.id in bundled() and (narrowed := [name for name in NARROWS if (given or {}).get(name)]):
        options = " ".join(f"--{name.replace('_', '-')} ''" for name in narrowed)
        click.echo(
            f"it now reads only posts that fit: {_filter(q)}; others that it was there for may alert under no query. To"
            f" keep it whole: `crisis query edit {q.id} {options}`, and a query of your own beside it, such as"
            f" `crisis query add {q.id}_here` with sentences and this filter"
        )


def _ended(q: Query) -> bool:
    return q.expires_at <= time.time()


def _filter(q: Query) -> str:
    asked = msgspec.structs.asdict(q.where) if q.where else {}
    if asked.get("place"):
        del asked["area"]
    return "; ".join(
        f"{name} {value if isinstance(value, str) else ', '.join(map(str, value))}"
        for name, value in asked.items()
        if value
    )


def _tell_area(where: Where) -> None:
    """Which place was taken, and which others are called so."""
    south, west, north, east = where.area
    click.echo(
        f"it reads posts from {where.place} ({south:g} to {north:g} N, {west:g} to {east:g} E) or naming a place there"
    )
    name = where.place.partition(",")[0]
    if others := [p.full_name for p in Gazetteer.bundled().called(name) if p.full_name != where.place]:
        click.echo(f"also called so: {'; '.join(others[:5])}")
