"""What a person is shown: an alert, with its post and its evidence."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from models.records.kinds import Kind, Level, Priority
from models.records.posts import Geo

__all__ = ["Alert", "AlertPost", "Evidence", "NamedPlace", "Reading"]


class NamedPlace(Struct, frozen=True, omit_defaults=True):
    """A place that a post names and does not say it is at (models/places)."""

    said: str  # as the post writes it
    name: str  # "Les Cayes, Sud, HT"
    kind: Literal["country", "province", "town"]
    lat: float  # of its middle, degrees WGS 84
    lon: float
    radius_km: float  # how far it reaches from there
    confidence: float  # that this place is meant


class AlertPost(Struct, frozen=True, omit_defaults=True):
    """What an alert shows of its post. Times are RFC 3339 UTC."""

    id: str
    text: str
    lang: str
    created_at: str
    source: str
    url: str | None = None
    geo: Geo | None = None
    places: list[NamedPlace] = []  # it names, as told by `places_of`, where it does not say where it is
    author: str | None = None  # a pseudonym, where the source told one: ids of some sources name no account


class Evidence(Struct, frozen=True, omit_defaults=True):
    """Why it matched: the query sentence nearest to the post, in its language where the query has one, its plain
    cosine, the nearest one in the readers' language, and what adds up to the log-odds (models/explanation.py)."""

    nearest: str
    nearest_lang: str
    nearest_cosine: float
    told: str = ""  # empty where `nearest` is in the readers' language already
    told_lang: str = ""
    terms: dict[str, float] = {}
    signs: list[str] = []  # of urgency and vulnerability, in English (models/signs.py): "children", "dialysis"


class Reading(Struct, frozen=True):
    """What a post also says, beside the reading it is alerted for."""

    query_id: str
    level: Level
    probability: float | None


class Alert(Struct, frozen=True, omit_defaults=True):
    """What a person is shown. Same `alert_id`, higher `revision` = an update of the same alert.

    `revision` only grows and is no clock. It is made of `seen_at`, and of an edit also of what was told before; a frame
    that is redelivered makes the very same alert, or the one that is known of the same state.
    `level`, `score`, `threshold` and `probability` are the match's.
    """

    alert_id: str
    revision: int
    status: Literal["active", "withdrawn"]
    level: Level
    kind: Kind
    query_id: str
    query_version: str
    category: str
    label: str
    iasc: str
    hxl: str
    post: AlertPost
    score: float
    threshold: float
    encoder_version: str
    evidence: Evidence
    seen_at: str  # when its cause entered posts.raw, RFC 3339 UTC
    probability: float | None = None
    urgent: float | None = None
    priority: Priority | None = None
    priority_probability: float | None = None
    also: list[Reading] = []  # other readings of the same post: a post has one alert
    cluster_id: str | None = None
    withdrawn_because: str | None = None  # deleted | edited
    registry_version: str = ""  # the release that scored it: encoder, thresholds and query vectors; own = the settings'
