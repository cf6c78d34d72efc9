"""Alerts from matches, one a post.

Ids are hashes and times come from the post, so the same match always makes the same alert.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b

import msgspec

from models.moments import rfc3339
from models.places.mentions import named_in
from models.queries import Query
from models.records import Alert, AlertPost, Deletion, Evidence, Match, NamedPlace, Post, Reading
from models.signs import signs_in

__all__ = ["LEAST_LETTERS", "UPDATED", "crowd_of", "make_alerts", "place_in_cluster", "withdraw"]

UPDATED = 5  # revisions on: past all by which another worker may tell its cluster now (likely, none, where it ended)
COMPARED_CHARS, LEAST_LETTERS = 500, 20  # of two texts that may be one; a shorter cry is many people's own


def alert_id(post_id: str, query_id: str, query_version: str) -> str:
    """32 hex digits of a hash over (post, query, query version): telling the same thing twice has the same id."""
    return blake2b("\x1f".join((post_id, query_id, query_version)).encode(), digest_size=16).hexdigest()


def crowd_of(alert: Alert) -> str:
    """What it is one of many of: its cluster, or until it is in one its words, whoever says them; "" where it has none.

    Digits, signs, spaces and case make no other text.
    """
    if alert.cluster_id:
        return alert.cluster_id
    letters = "".join(filter(str.isalpha, alert.post.text[:COMPARED_CHARS].casefold()))
    return f"~{blake2b(letters.encode(), digest_size=8).hexdigest()}" if len(letters) >= LEAST_LETTERS else ""


def make_alert(
    post: Post, match: Match, query: Query, encoder_version: str, also: Iterable[Match] = (), registry_version: str = ""
) -> Alert:
    """The alert of a post's first reading. also: its other readings, shown beside it."""
    return Alert(
        alert_id=alert_id(post.id, match.query_id, match.query_version),
        revision=int(post.seen_at * 1000),
        status="active",
        level=match.level,
        kind=query.kind,
        query_id=query.id,
        query_version=match.query_version,
        category=query.category,
        label=query.label,
        iasc=query.iasc,
        hxl=query.hxl,
        post=AlertPost(
            id=post.id,
            text=post.text,
            lang=post.lang,
            created_at=rfc3339(post.created_at),
            source=post.source,
            url=post.url,
            geo=post.geo,
            places=[] if post.geo else places_of(post),
            author=post.author,
        ),
        score=match.score,
        threshold=match.threshold,
        probability=match.probability,
        urgent=match.urgent,
        priority=match.priority,
        priority_probability=match.priority_probability,
        also=[Reading(other.query_id, other.level, other.probability) for other in also],
        encoder_version=encoder_version,
        evidence=Evidence(
            match.nearest,
            match.nearest_lang,
            match.nearest_cosine,
            match.nearest_told,
            match.nearest_told_lang,
            match.terms,
            signs_in(post.text, post.lang),
        ),
        seen_at=rfc3339(post.seen_at),
        registry_version=registry_version,
    )


def places_of(post: Post) -> list[NamedPlace]:
    """The places a post names, the likeliest first; but before a country or province what is told inside of it."""
    return [
        NamedPlace(
            said.text,
            said.place.full_name,
            said.place.kind,
            said.place.lat,
            said.place.lon,
            round(said.place.radius_km, 1),
            said.confidence,
        )
        for said in named_in(post.text, lang=post.lang)
    ]


def make_alerts(
    posts: Iterable[Post],
    matches: Iterable[Match],
    queries: Mapping[str, Query],
    encoder_version: str,
    registry_version: str = "",
) -> list[Alert]:
    """One alert for each post that has a match, in their order: its first reading, the others beside it.

    registry_version: of the release that scored them.
    """
    by_id = {post.id: post for post in posts}  # of two states of one post in a frame the later one counts
    readings: dict[str, list[Match]] = {}
    for match in matches:
        readings.setdefault(match.post_id, []).append(match)
    return [
        make_alert(by_id[post_id], first, queries[first.query_id], encoder_version, others, registry_version)
        for post_id, (first, *others) in readings.items()
    ]


def withdraw(alert: Alert, cause: Deletion | Post) -> Alert:
    """The same alert, withdrawn because its post was deleted, or edited so that it no longer matches."""
    return msgspec.structs.replace(
        alert,
        status="withdrawn",
        revision=max(int(cause.seen_at * 1000), alert.revision + UPDATED),
        seen_at=rfc3339(cause.seen_at),
        withdrawn_because="deleted" if isinstance(cause, Deletion) else "edited",
    )


def place_in_cluster(alert: Alert, cluster_id: str | None, settled: bool = True) -> Alert:
    """The same alert, now that its cluster is known: an update, so that no alert waits for clustering.

    settled: not merely likely, or none any more. Where one is goes two revisions on, past a likely one that a worker
    told, and did not note, before it died.
    """
    return msgspec.structs.replace(alert, cluster_id=cluster_id, revision=alert.revision + (2 if settled else 1))
