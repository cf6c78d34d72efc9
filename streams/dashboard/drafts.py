"""A query from the page: tried on the posts of the last hours before it is saved, then saved.

What is tried is what would be saved, with the same filters and bar. Only new queries are made here, so nobody changes
by accident what others listen for (`crisis query edit` does).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from models.errors import QueryError, ServiceError
from models.filters import Where, located
from models.language_tags import post_language
from models.moments import rfc3339
from models.moving_words import Moved
from models.queries import Query, check_query
from models.records import KINDS, Alert, Post
from streams.broker.queries import bundled, change_query, not_ended, read_queries
from streams.config import Settings
from streams.config.secrets import redacted
from streams.dashboard.lessons import Lessons
from streams.search.follower import Searcher
from streams.search.rehearsal import HOUR_S, Rehearsal

__all__ = ["Draft", "Drafts", "Outcome", "Words"]

SHOWN = 8  # alerts that are shown, the likeliest
ASKED = 4  # alerts of which somebody asks for the words at a time: they share one thread
LONGEST_H, MOST_SENTENCES = 48.0, 50


class Draft(Struct, frozen=True, forbid_unknown_fields=True):
    """What the page sends."""

    query_id: str
    sentences: list[str]
    lang: str = "en"
    where: Where = Where()
    area: str = ""  # a place by name, or south, west, north, east; in place of that of `where`
    probability: float | None = None
    alerts_per_hour: float | None = None
    target_precision: float | None = None
    expires: str = ""
    last_h: float = 6.0  # how far back it is tried

    def query(self) -> Query:
        """The query it asks for. Raises QueryError saying what to change."""
        kind, _, category = self.query_id.partition(".")
        if kind not in KINDS:
            raise QueryError(f"{self.query_id!r}: say need, offer, warning, order or report, and a short name")
        if len(self.sentences) > MOST_SENTENCES:
            raise QueryError(f"{len(self.sentences)} sentences, at most {MOST_SENTENCES} are taken")
        where = msgspec.structs.replace(self.where, **located(self.area)) if self.area else self.where
        made = check_query(
            Query(
                id=self.query_id,
                kind=kind,  # type: ignore[arg-type]
                category=category,
                label=category.replace("_", " ").capitalize(),
                sentences={post_language(self.lang): [text.strip() for text in self.sentences if text.strip()]},
                where=None if where == Where() else where,
                probability=self.probability,
                alerts_per_hour=self.alerts_per_hour,
                target_precision=self.target_precision,
                expires=self.expires,
            )
        )
        return not_ended(made, time.time())


class Example(Struct, frozen=True):
    """One post that would have alerted."""

    text: str
    lang: str
    probability: float
    created_at: str


class Outcome(Struct, frozen=True):
    """Answer of /api/queries/try. `already`: of the alerts, those of posts that alert for another query too.
    `alerts_an_hour`, `cpu_s_an_hour`: if it goes on as in these hours, which may be minutes.
    """

    query_id: str
    posts: int
    hours: float
    alerts: int
    suggestions: int
    already: int
    place: str  # that its area was taken to be, where it was asked for by name
    alerts_an_hour: float
    cpu_s_an_hour: float
    by_hour: dict[str, int]  # start of the hour, RFC 3339 → alerts
    examples: list[Example]
    unheard: str  # a sentence, where no post has a source that it asks for

    @classmethod
    def of(cls, query: Query, done: Rehearsal) -> Outcome:
        likeliest = sorted(done.alerts, key=lambda alert: -(alert[1].probability or 0.0))[:SHOWN]
        return cls(
            query.id,
            done.posts,
            round(done.hours, 3),
            len(done.alerts),
            done.suggestions,
            done.already,
            query.where.place if query.where else "",
            round(done.an_hour(len(done.alerts)), 2),
            round(done.an_hour(done.cpu_s), 4),
            {rfc3339(hour * HOUR_S): count for hour, count in sorted(done.by_hour.items())},
            [Example(p.text, p.lang, m.probability or 0.0, rfc3339(p.created_at)) for p, m in likeliest],
            done.unheard(query),
        )


class Words(Struct, frozen=True, omit_defaults=True):
    """Answer of /api/words: which words move a reading, or why that cannot be said."""

    moved: Moved | None = None
    problem: str = ""


class Drafts:
    """One trial at a time: it reads thousands of posts."""

    def __init__(self, settings: Settings, searcher: Searcher | None, lessons: Lessons) -> None:
        self._settings, self._searcher, self._lessons = settings, searcher, lessons
        self._trying = False
        self._asking = 0

    async def tried(self, draft: Draft) -> Outcome:
        """Raises QueryError for a draft that is no query, ServiceError where it cannot be tried now."""
        query = draft.query()
        if self._searcher is None:
            raise ServiceError("this dashboard runs without search, and so without the posts to try a query on")
        if self._trying:
            raise ServiceError("somebody else's query is being tried: again in a few seconds")
        self._trying = True
        try:
            active = await asyncio.to_thread(read_queries, self._settings)
            last_s = max(0.0, min(draft.last_h, LONGEST_H)) * HOUR_S
            labels = list(self._lessons.labels.values())
            return Outcome.of(query, await self._searcher.rehearse(query, list(active.values()), labels, last_s))
        finally:
            self._trying = False

    async def words(self, alert: Alert) -> Words:
        """Which words of an alert's post move its reading, or why that cannot be said now."""
        if self._searcher is None:
            return Words(problem="this dashboard runs without search, and so without an encoder to ask")
        if self._asking >= ASKED:
            return Words(problem="others are asking why: open it again in a few seconds")
        self._asking += 1
        try:
            active = await asyncio.to_thread(read_queries, self._settings)
            post = Post(alert.post.id, alert.post.text, 0.0, 0.0, alert.post.lang, alert.post.source)
            labels = list(self._lessons.labels.values())
            return Words(await self._searcher.moved(post, alert.query_id, list(active.values()), labels))
        except (QueryError, ServiceError) as error:
            return Words(problem=redacted(error))
        finally:
            self._asking -= 1

    async def saved(self, draft: Draft) -> Query:
        """Make it live. Raises QueryError for one that is there already, or is a bundled one."""
        query = draft.query()

        def new(known: Mapping[str, Query]) -> Query:
            if query.id in known:
                raise QueryError(f"there is a query {query.id} already: choose another name, or `crisis query edit` it")
            if query.id in bundled():
                raise QueryError(
                    f"{query.id} is a bundled query: choose another name, or have it as it was shipped by "
                    f"`crisis query add {query.id}`"
                )
            return query

        return (await asyncio.to_thread(change_query, self._settings, query.id, new)).after
