"""What travels between stages.

A *frame* is one Kafka record holding 1..n posts. Inner frames are msgpack and every one carries its `origin`: the
place in `posts.raw` it came from. Stages keep the partition, so frames of one raw partition stay in order all the
way, and "have I applied this origin already?" is one comparison. That is what makes redelivery harmless.
"""

from __future__ import annotations

from msgspec import Struct

from models.records.kinds import Level, Priority
from models.records.posts import Deletion, Post, Repeat

__all__ = ["EmbeddedFrame", "Frame", "Match", "MatchedFrame", "Origin", "Reject"]


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
