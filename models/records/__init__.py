"""The records that move between stages: one place, one wire format (msgspec).

kinds: the closed lists   posts: a post, its repeats, its deletion   frames: what is one Kafka record between stages
alerts: what a person is shown   clusters: what changed of a cluster
"""

from models.records.alerts import Alert, AlertPost, Evidence, NamedPlace, Reading
from models.records.clusters import ClusterEvent, EventKind, Example
from models.records.frames import EmbeddedFrame, Frame, Match, MatchedFrame, Origin, Reject
from models.records.kinds import AID, KINDS, NOTICES, PRIORITIES, Aid, Kind, Level, Notice, Priority, is_notice
from models.records.posts import PUT_BY_REASONS, Deletion, Geo, Post, PutBy, PutByReason, Repeat, account_of

__all__ = [
    "account_of",
    "AID",
    "Aid",
    "Alert",
    "AlertPost",
    "ClusterEvent",
    "Deletion",
    "EmbeddedFrame",
    "EventKind",
    "Evidence",
    "Example",
    "Frame",
    "Geo",
    "is_notice",
    "Kind",
    "KINDS",
    "Level",
    "Match",
    "MatchedFrame",
    "NamedPlace",
    "Notice",
    "NOTICES",
    "Origin",
    "Post",
    "PRIORITIES",
    "Priority",
    "PUT_BY_REASONS",
    "PutBy",
    "PutByReason",
    "Reading",
    "Reject",
    "Repeat",
]
