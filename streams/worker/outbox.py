"""Sending from an agent: collect the delivery futures, wait for all of them before the input may be committed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import faust
import msgspec

from models.records import Alert, ClusterEvent, EmbeddedFrame, Frame, MatchedFrame, Reject
from streams import metrics
from streams.broker.topics import TURNS
from streams.config import Settings
from streams.pipeline.frames import encode_frame, split_frame

_json = msgspec.json.Encoder().encode

WRITTEN = ("posts.clean", "posts.waiting", "posts.embedded", "posts.matched", "posts.rejected", "alerts", "clusters")
TYPE_PREFIX = "org.crisis-streams"


def cloud_event(kind: str, record_id: str, time: str) -> dict[str, bytes]:
    """CloudEvents 1.0 attributes in Kafka's binary mode: record headers with the ce_ prefix."""
    return {
        "ce_specversion": b"1.0",
        "ce_type": f"{TYPE_PREFIX}.{kind}".encode(),
        "ce_source": b"/crisis-streams",
        "ce_id": record_id.encode(),
        "ce_time": time.encode(),
        "content-type": b"application/json",
    }


def _matches(frame: Frame) -> int:
    return len(frame.matches) if isinstance(frame, MatchedFrame) else 0


class Outbox:
    """The topics agents write to. Use `send_*` as you go, then `await delivered()`, then acknowledge the input."""

    def __init__(self, app: faust.App, settings: Settings) -> None:
        self._topics = {
            name: app.topic(
                settings.topics.name(name),
                key_type=bytes,
                key_serializer="raw",
                value_type=bytes,
                value_serializer="raw",
                internal=False,
            )
            for name in WRITTEN
        }
        self._partitions = settings.topics.partitions
        self._frame_bytes = settings.worker.frame_bytes
        self._sent: list[asyncio.Future] = []

    async def _send(self, topic: str, value: bytes, **options: object) -> None:
        self._sent.append(await self._topics[topic].send(value=value, **options))

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
        value = encode_frame(frame)
        if len(value) <= self._frame_bytes:
            await self._send(topic, value, partition=partition)
            return
        left_out = _matches(frame)
        for piece in split_frame(frame, self._frame_bytes):
            await self._send(topic, encode_frame(piece), partition=partition)
            left_out -= _matches(piece)
        metrics.matches_left_out.inc(left_out)

    async def send_rejects(self, rejects: Iterable[Reject]) -> None:
        """To posts.rejected, one record each, the original bytes as base64."""
        for reject in rejects:
            await self._send("posts.rejected", _json(reject), headers={"reason": reject.reason.encode()})

    async def send_alerts(self, alerts: Iterable[Alert]) -> None:
        """To alerts, keyed by alert id."""
        for alert in alerts:
            headers = cloud_event("alert", f"{alert.alert_id}.{alert.revision}", alert.seen_at)
            await self._send("alerts", _json(alert), key=alert.alert_id.encode(), headers=headers)

    async def send_cluster_events(self, events: Iterable[ClusterEvent]) -> None:
        """To clusters, keyed by cluster id."""
        for event in events:
            await self._send("clusters", _json(event), key=event.cluster_id.encode())

    async def delivered(self) -> None:
        """Return when the broker has acknowledged everything sent so far; raises if it refused any."""
        sent, self._sent = self._sent, []
        await asyncio.gather(*sent)
