"""Standing queries: sentences people in trouble, helping, or warning others write, by category and language.

Needs and offers are aid; warnings, orders and reports are notices: no call for help, but what responders must know.

A query's version is a hash of what it asks, so an edited query is a new version and its alerts are new alerts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TypeVar

import msgspec
import yaml
from msgspec import Struct
from msgspec.structs import replace

from models.errors import QueryError
from models.filters import Where, check_where, says_something
from models.language_tags import carried
from models.moments import epoch_s, has_zone
from models.records import KINDS, Kind, is_notice

__all__ = [
    "BARS",
    "Query",
    "aid_queries",
    "background_texts",
    "check_query",
    "load_queries",
    "read_pack",
    "read_yaml",
    "without_void",
]

IASC_CLUSTERS = (
    "CCCM",
    "Early Recovery",
    "Education",
    "Emergency Telecommunications",
    "Food Security",
    "Health",
    "Logistics",
    "Nutrition",
    "Protection",
    "Shelter",
    "WASH",
)


BARS = ("threshold", "probability", "alerts_per_hour", "target_precision")  # one of them says from where on it alerts


class Query(Struct, frozen=True, dict=True, omit_defaults=True, forbid_unknown_fields=True):  # dict: to keep a hash
    """One standing question. `sentences` maps a language code to what people write there."""

    id: str  # "need.water": kind, dot, category
    kind: Kind
    category: str
    label: str
    sentences: dict[str, list[str]]
    iasc: str = "CCCM"
    hxl: str = ""
    threshold: float | None = None  # set by a person; overrides the calibrated one
    where: Where | None = None  # which posts it reads at all
    probability: float | None = None  # from which it alerts; in place of match.alert_probability
    alerts_per_hour: float | None = None  # or so many an hour: the probability follows the stream (models/bars.py)
    target_precision: float | None = None  # or so that this share of its alerts is right, likewise
    expires: str = ""  # RFC 3339; posts seen from then on are not read by it

    @cached_property
    def version(self) -> str:
        """8 hex digits of a hash over id and sentences: what is asked, not how it is labelled."""
        return blake2b(msgspec.msgpack.encode([self.id, sorted(self.sentences.items())]), digest_size=4).hexdigest()

    @cached_property
    def expires_at(self) -> float:
        """Epoch seconds; infinite where it never ends."""
        return epoch_s(self.expires) if self.expires else float("inf")

    @property
    def follows_target(self) -> bool:
        """Has nobody said from where on it alerts?"""
        return all(getattr(self, name) is None for name in BARS)

    def texts(self) -> list[tuple[str, str]]:
        """(language, sentence) of every sentence, in file order."""
        return [(lang, text) for lang, texts in self.sentences.items() for text in texts]


def without_void(query: Query) -> Query:
    """The query without sentences, filter words and languages that say nothing, and with the languages that posts
    carry: `fil` → `tl`. Earlier versions took them; no query goes silent for one of them.
    """
    kept = {lang: [text for text in texts if says_something(text)] for lang, texts in query.sentences.items()}
    where = query.where
    if where is not None:
        words = {name: [w for w in getattr(where, name) if says_something(w)] for name in ("must", "must_not")}
        languages = [found for code in where.languages if (found := carried(code))] or where.languages
        where = replace(where, languages=languages, **words)
    return replace(query, sentences={lang: texts for lang, texts in kept.items() if texts}, where=where)


def check_query(query: Query) -> Query:
    """Return the query, or raise QueryError saying what to change."""
    if query.id != f"{query.kind}.{query.category}":
        raise QueryError(f"query id {query.id!r} must read {query.kind}.{query.category}")
    if not query.category.replace("_", "").isalnum() or not query.category.isascii():
        raise QueryError(f"category {query.category!r}: use ASCII letters, digits and _")
    if not query.texts():
        raise QueryError(f"query {query.id} has no sentence: give at least one, as people would post it")
    if void := [text for _, text in query.texts() if not says_something(text)]:
        raise QueryError(f"query {query.id}: the sentence {void[0]!r} says nothing: write what people post")
    if query.iasc not in IASC_CLUSTERS:
        raise QueryError(f"query {query.id}: {query.iasc!r} is no IASC cluster; known: {', '.join(IASC_CLUSTERS)}")
    if query.where is not None:
        check_where(query.where, query.id)
    _check_bar(query)
    return query


def _check_bar(query: Query) -> None:
    given = [name for name in BARS if getattr(query, name) is not None]
    if len(given) > 1:
        raise QueryError(f"query {query.id} has {' and '.join(given)}: give one of them")
    for name in ("probability", "target_precision"):
        share = getattr(query, name)
        if share is not None and not 0 < share < 1:
            raise QueryError(f"query {query.id}: {name} {share} is not between 0 and 1")
    if query.alerts_per_hour is not None and not 0 < query.alerts_per_hour < float("inf"):
        raise QueryError(f"query {query.id}: alerts_per_hour {query.alerts_per_hour} must be more than 0")
    if query.expires and not has_zone(query.expires):
        raise QueryError(f"query {query.id}: expires {query.expires!r}: write for example 2026-12-01T18:00:00Z")


class _Pack(Struct, frozen=True, forbid_unknown_fields=True):
    """One YAML file: a category with its need and its offer, or with a notice."""

    category: str
    label: str
    iasc: str
    hxl: dict[str, str]
    need: dict[str, list[str]] = {}
    offer: dict[str, list[str]] = {}
    warning: dict[str, list[str]] = {}
    order: dict[str, list[str]] = {}
    report: dict[str, list[str]] = {}


# Of a YAML text: a query is 1 to 30 kB, and five levels deep. Composing 50,000 levels ends the process.
MOST_YAML, MOST_LEVELS = 1 << 20, 32
T = TypeVar("T")


def read_yaml(text: str | bytes, type: type[T]) -> T:
    """What a YAML text holds. Raises msgspec's errors, and QueryError where it is too long or too deep to be read."""
    if len(text) > MOST_YAML:
        raise QueryError(f"it is {len(text):,} long, at most {MOST_YAML:,} is read: give a file for each query")
    level = 0
    with contextlib.suppress(yaml.YAMLError):  # which `decode` tells
        for event in yaml.parse(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            level += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent):  # each is read anew: 1 MiB of them takes tens of gigabytes
                raise QueryError(f"*{event.anchor} stands for what was said before: say it again")
            if level > MOST_LEVELS:
                raise QueryError(f"nested more than {MOST_LEVELS} deep: no query is")
    return msgspec.yaml.decode(text, type=type)


def read_pack(text: str | bytes, name: str = "pack") -> list[Query]:
    """The queries of one YAML pack. Raises QueryError naming the file and the field."""
    try:
        pack = read_yaml(text, _Pack)
    except (msgspec.ValidationError, msgspec.DecodeError, QueryError) as error:
        raise QueryError(f"{name}: {error}") from error
    kinds: list[tuple[Kind, dict[str, list[str]]]] = [(kind, getattr(pack, kind)) for kind in KINDS]
    return [
        check_query(
            Query(
                id=f"{kind}.{pack.category}",
                kind=kind,
                category=pack.category,
                label=pack.label,
                sentences=sentences,
                iasc=pack.iasc,
                hxl=pack.hxl.get(kind, ""),
            )
        )
        for kind, sentences in kinds
        if sentences
    ]


def _yaml_files(folder: Path | None) -> Iterable[Traversable]:
    root = files("models") / "data" / "queries" if folder is None else folder
    return sorted((f for f in root.iterdir() if f.name.endswith(".yaml")), key=lambda f: f.name)


def load_queries(folder: Path | None = None) -> list[Query]:
    """Every query of a folder of packs (default: the bundled ones), ordered by id."""
    found = [q for f in _yaml_files(folder) for q in read_pack(f.read_bytes(), f.name)]
    if not found:
        raise QueryError(f"no query pack (*.yaml) in {folder}")
    twice = {q.id for q in found if sum(o.id == q.id for o in found) > 1}
    if twice:
        raise QueryError(f"queries defined twice: {', '.join(sorted(twice))}")
    return sorted(found, key=lambda q: q.id)


def aid_queries() -> list[Query]:
    """The bundled needs and offers: what every direction is told apart from, and nothing else in the packs."""
    return [query for query in load_queries() if not is_notice(query.id)]


def background_texts() -> list[str]:
    """Bundled everyday and news texts in many languages that ask and offer nothing: what scores are contrasted with."""
    raw = msgspec.yaml.decode((files("models") / "data" / "background.yaml").read_bytes())
    return list(_flatten(raw["background"]))


def _flatten(by_lang: dict[str, list[str]]) -> Iterator[str]:
    for texts in by_lang.values():
        yield from texts
