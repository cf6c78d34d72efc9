"""The records that move between stages: one place, one wire format (msgspec).

A *frame* is one Kafka record holding 1..n posts. Inner frames are msgpack and every one carries its `origin`: the
place in `posts.raw` it came from. Stages keep the partition, so frames of one raw partition stay in order all the
way, and "have I applied this origin already?" is one comparison. That is what makes redelivery harmless.
"""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

__all__ = [
    "AID",
    "Alert",
    "ClusterEvent",
    "Deletion",
    "EmbeddedFrame",
    "EventKind",
    "Example",
    "Frame",
    "Geo",
    "KINDS",
    "Kind",
    "Level",
    "Match",
    "MatchedFrame",
    "NamedPlace",
    "NOTICES",
    "Origin",
    "PRIORITIES",
    "PUT_BY_REASONS",
    "Post",
    "PutBy",
    "PutByReason",
    "Reject",
    "Repeat",
    "account_of",
    "is_notice",
]

Aid = Literal["need", "offer"]
Notice = Literal["warning", "order", "report"]  # of danger; to leave; of damage and of what has just happened
Kind = Literal[Aid, Notice]
AID: tuple[Aid, ...] = get_args(Aid)
NOTICES: tuple[Notice, ...] = get_args(Notice)
KINDS: tuple[Kind, ...] = (*AID, *NOTICES)
Priority = Literal["urgent", "soon", "routine"]  # lives hang on the next hours; today or tomorrow; neither
PRIORITIES: tuple[Priority, ...] = get_args(Priority)
Level = Literal["alert", "suggestion"]
PutByReason = Literal["order", "told"]  # others come before it; what it says was read several times already
PUT_BY_REASONS: tuple[PutByReason, ...] = get_args(PutByReason)
EventKind = Literal["new", "grow", "merge", "expire", "relabel"]  # of a cluster


def is_notice(query_id: str) -> bool:
    """Is a query of this id (kind, dot, category) a notice, and no need or offer?"""
    return query_id.partition(".")[0] in NOTICES


class Geo(Struct, frozen=True):
    """A WGS 84 point, degrees."""

    lat: float
    lon: float


class PutBy(Struct, frozen=True):
    """That a post was only skimmed when it came, and waits (or has waited) to be read in context.

    `score`: the skim's, of its best query; higher is closer.
    """

    at: float  # epoch seconds
    turn: int  # 1 = soon, 2 = later, 3 = last
    reason: PutByReason
    score: float


class Post(Struct, frozen=True, omit_defaults=True):
    """One accepted message. `text` is repaired and masked (phone numbers, e-mails) but not yet cleaned
    for an encoder.
    """

    id: str
    text: str
    created_at: float  # epoch seconds, UTC; seen_at where the platform gave none
    seen_at: float  # epoch seconds, UTC, when it entered posts.raw
    lang: str = "und"
    source: str = "unknown"
    author: str | None = None  # a keyed hash, never the handle
    url: str | None = None
    reply_to: str | None = None
    repost_of: str | None = None
    geo: Geo | None = None
    kind: Literal["create", "update"] = "create"
    fingerprint: str = ""  # keyed hash of the text as sent (before masking): equal means an exact repeat
    put_by: PutBy | None = None  # where the reader was behind when it came


class Repeat(Struct, frozen=True):
    """A post folded into one seen before: a repost or an exact duplicate. Counted with `of`, not matched again."""

    id: str
    of: str
    seen_at: float


class Deletion(Struct, frozen=True):
    """The platform says the post is gone; its alerts are withdrawn."""

    id: str
    seen_at: float


def account_of(post_id: str) -> str:
    """The account a post id belongs to: what stands before its first slash (`bsky:did:plc:x/3k` → `bsky:did:plc:x`).

    An account's own id holds no slash. Sources tell of a closed account by a deletion of it; it takes all its posts
    along.
    """
    return post_id.partition("/")[0] or post_id


class Origin(Struct, frozen=True, order=True, array_like=True):
    """Where in posts.raw a frame came from. `item`: how many items of that raw frame lie before this piece of it
    (models/cutting.py); 0 = it begins the frame. `turn`: 0 = read as it came; else the turn its posts wait for."""

    partition: int
    offset: int
    item: int = 0
    turn: int = 0

    @property
    def lane(self) -> tuple[int, int]:
        """Within a lane frames stay in order all the way: what waits its turn is overtaken by what does not."""
        return self.partition, self.turn


class Frame(Struct, frozen=True, omit_defaults=True):
    """posts.clean: what normalise made of one raw frame. posts.waiting: what of it waits for one turn."""

    origin: Origin
    posts: list[Post]
    repeats: list[Repeat] = []
    deletions: list[Deletion] = []
    elsewhere: int = 0  # items of this piece of the raw frame that take another turn


class EmbeddedFrame(Frame, frozen=True, omit_defaults=True, kw_only=True):
    """posts.embedded: the frame plus one contiguous float16 block (n posts × dim, C order, little endian).

    `waiting`: posts that were put by, only skimmed, without vectors. They stand in the record of those that were read,
    so that what was decided of a frame is one record: whatever is delivered twice, no post falls between two decisions.
    """

    encoder_version: str
    dim: int
    vectors: bytes
    waiting: list[Post] = []


class Match(Struct, frozen=True, omit_defaults=True):
    """post × query whose score reached one of the query's two thresholds.

    `score`: about 1 on the query's own sentences, 0 on what it must not answer to, clipped to [-1, 1]
    (models/matching.py); higher is closer. `threshold`: the query's *alert* threshold at either level. level "alert":
    score ≥ threshold; "suggestion": below it, and at least the query's suggestion threshold, which is not carried
    along.
    """

    post_id: str
    query_id: str
    query_version: str
    level: Level
    score: float
    threshold: float
    probability: float | None = None  # that this reading is right; None only in matches of versions before .2
    nearest: str = ""  # the query sentence closest to the post, in its language where the query has one
    nearest_lang: str = ""
    nearest_cosine: float = 0.0
    urgent: float | None = None  # probability that lives hang on the next hours, where the encoder has a learnt head
    priority: Priority | None = None  # where the encoder has a learnt head
    priority_probability: float | None = None  # that this priority is right, if the reading is
    terms: dict[str, float] = {}  # what adds up to the log-odds of `probability` (models/explanation.py)
    nearest_told: str = ""  # the nearest sentence in the readers' language, where `nearest` is in another
    nearest_told_lang: str = ""


class MatchedFrame(EmbeddedFrame, frozen=True, omit_defaults=True, kw_only=True):
    """posts.matched: the embedded frame plus its matches; one partition, read by the one clusterer."""

    matches: list[Match] = []


class Reject(Struct, frozen=True, omit_defaults=True):
    """A record refused, with its reason and its original bytes (base64 in JSON).

    `also`: other lines of the same raw record that were refused for the same reason; their bytes stand there only.
    """

    reason: str
    detail: str
    stage: str
    origin: Origin
    line: int  # 0-based line inside the raw frame
    seen_at: str  # when it entered posts.raw, or failed in a later stage, RFC 3339 UTC
    raw: bytes
    also: list[int] = []


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
    places: list[NamedPlace] = []  # it names, the likeliest first, where it does not say where it is
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

    `revision` only grows and is no clock. It is made of `seen_at`, so a redelivered frame makes the very same alert.
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


class Example(Struct, frozen=True):
    """A post that shows what a cluster is about."""

    post_id: str
    text: str
    lang: str


class ClusterEvent(Struct, frozen=True, omit_defaults=True):
    """A change of one cluster. (cluster_id, version) is unique, so applying it twice is harmless."""

    event: EventKind
    cluster_id: str
    version: int
    posts: int  # posts in it, repeats included
    weight: float  # decayed number of posts
    first_at: str  # created_at of its first and newest post, RFC 3339 UTC
    last_at: str
    label: str
    encoder_version: str
    medoid: Example | None = None
    examples: list[Example] = []
    burst: float = 0.0
    categories: dict[str, int] = {}  # query id → matched posts
    languages: dict[str, int] = {}  # posts of the 50 most frequent
    sources: dict[str, int] = {}  # likewise
    into: str | None = None  # merge: the cluster that lives on
