"""Sending from an agent: collect what it makes of a batch, and send all of it before the input may be committed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from models.records import Alert, ClusterEvent, EmbeddedFrame, Frame, MatchedFrame, Reject
from streams import metrics
from streams.broker.topics import TURNS
from streams.config import Settings
from streams.pipeline.frames import encode_frame, join_frames, split_frame
from streams.worker.sending import Record, Sender

__all__ = ["Outbox"]

_json = msgspec.json.Encoder().encode

HEAD_BYTES = 3  # at most, of a record that holds several frames
TYPE_PREFIX = "org.crisis-streams"


def cloud_event(kind: str, record_id: str, time: str) -> list[tuple[str, bytes]]:
    """CloudEvents 1.0 attributes in Kafka's binary mode: record headers with the ce_ prefix."""
    return [
        ("ce_specversion", b"1.0"),
        ("ce_type", f"{TYPE_PREFIX}.{kind}".encode()),
        ("ce_source", b"/crisis-streams"),
        ("ce_id", record_id.encode()),
        ("ce_time", time.encode()),
        ("content-type", b"application/json"),
    ]


def _matches(frame: Frame) -> int:
    return len(frame.matches) if isinstance(frame, MatchedFrame) else 0


class Outbox:
    """The topics agents write to. Use `send_*` as you go, then `await delivered()`, then acknowledge the input."""

    def __init__(self, sender: Sender, settings: Settings) -> None:
        self._sender, self._name = sender, settings.topics.name
        self._partitions = settings.topics.partitions
        self._frame_bytes, self._frame_posts = settings.worker.frame_bytes, settings.worker.frame_posts
        self._made: list[Record] = []
        self._frames: dict[tuple[str, int], list[tuple[bytes, int]]] = defaultdict(list)  # → encoded, posts in it

    def _send(self, topic: str, value: bytes, **options: Any) -> None:
        self._made.append(Record(self._name(topic), value, **options))

    async def send_frame(self, frame: Frame) -> None:
        """To the topic of its kind, same partition as in posts.raw, so that order is kept from end to end.

        A frame that outgrew `worker.frame_bytes` on its way goes in pieces: a record the broker refuses would be read
        again, and refused again, for ever.
        """
        topic, partition = "posts.clean", frame.origin.partition
        if type(frame) is Frame and frame.origin.turn:
            topic, partition = "posts.waiting", (frame.origin.turn - 1) * self._partitions + partition
            partition %= TURNS * self._partitions
        elif isinstance(frame, MatchedFrame):
            topic, partition = "posts.matched", 0
        elif isinstance(frame, EmbeddedFrame):
            topic = "posts.embedded"
        value, lane = encode_frame(frame), self._frames[topic, partition]
        if len(value) <= self._frame_bytes:
            lane.append((value, len(frame.posts)))
            return
        left_out = _matches(frame)
        for piece in split_frame(frame, self._frame_bytes):
            lane.append((encode_frame(piece), len(piece.posts)))
            left_out -= _matches(piece)
        metrics.matches_left_out.inc(left_out)

    async def send_rejects(self, rejects: Iterable[Reject]) -> None:
        """To posts.rejected, one record each, the original bytes as base64."""
        for reject in rejects:
            self._send("posts.rejected", _json(reject), headers=[("reason", reject.reason.encode())])

    async def send_alerts(self, alerts: Sequence[Alert]) -> list[bytes]:
        """To alerts, keyed by alert id. Returns the JSON of each, which the live view keeps."""
        told = list(map(_json, alerts))
        for alert, value in zip(alerts, told, strict=True):
            headers = cloud_event("alert", f"{alert.alert_id}.{alert.revision}", alert.seen_at)
            self._send("alerts", value, key=alert.alert_id.encode(), headers=headers)
        return told

    async def send_cluster_events(self, events: Sequence[ClusterEvent]) -> list[bytes]:
        """To clusters, keyed by cluster id. Returns the JSON of each, which the live view keeps."""
        told = list(map(_json, events))
        for event, value in zip(events, told, strict=True):
            self._send("clusters", value, key=event.cluster_id.encode())
        return told

    async def delivered(self) -> None:
        """Send it all; return when the broker has acknowledged it. Raises if it refused any."""
        made, self._made = self._made, []
        frames, self._frames = self._frames, defaultdict(list)
        for (topic, partition), lane in frames.items():
            made += [Record(self._name(topic), value, partition=partition) for value in self._joined(lane)]
        await self._sender.send(made)

    def _joined(self, lane: Iterable[tuple[bytes, int]]) -> Iterator[bytes]:
        """Record values: frames that follow on one another together, as many posts and bytes as one frame may have."""
        together: list[bytes] = []
        size, posts = HEAD_BYTES, 0
        for value, n in lane:
            if together and (size + len(value) > self._frame_bytes or posts + n > self._frame_posts):
                yield join_frames(together)
                together, size, posts = [], HEAD_BYTES, 0
            together.append(value)
            size, posts = size + len(value), posts + max(n, 1)
        if together:
            yield join_frames(together)
