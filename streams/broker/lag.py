"""How far the workers are behind, asked of the broker itself: right even when no worker is alive to report.

aiokafka rather than kafka-python's admin: while no broker answers, that one blocks its thread for half a minute, and
the process could not stop meanwhile.
"""

from __future__ import annotations

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from models.errors import ServiceError
from streams.broker.connect import client_options
from streams.broker.topics import INPUTS, partitions_of
from streams.config import Settings

__all__ = ["LagReader", "lag"]

TOPICS = tuple(INPUTS.values())  # what the agents read


class LagReader:
    """Keeps one connection. It names the workers' group to read its offsets, but never joins it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._consumer: AIOKafkaConsumer | None = None

    async def read(self) -> dict[str, int]:
        """Frames not yet acknowledged, by topic (our names, without the prefix). A missing topic is left out.

        Raises ServiceError if the broker does not answer; the next call connects anew.
        """
        try:
            return await self._read(self._consumer or await self._connect())
        except (KafkaError, OSError) as error:
            await self.close()
            raise ServiceError(f"cannot ask {self.settings.broker.bootstrap} for the lag: {error}") from error

    async def _connect(self) -> AIOKafkaConsumer:
        self._consumer = AIOKafkaConsumer(
            **client_options(self.settings.broker),
            group_id=f"{self.settings.topics.prefix}crisis",
            enable_auto_commit=False,
            client_id="crisis-dashboard",
            request_timeout_ms=10_000,
        )
        await self._consumer.start()
        return self._consumer

    async def _read(self, consumer: AIOKafkaConsumer) -> dict[str, int]:
        names = {self.settings.topics.name(topic): topic for topic in TOPICS}
        parts = sorted(consumer.assignment())
        if {p.topic for p in parts} != set(names):  # just connected, or not all topics are made yet
            parts = await partitions_of(self.settings, TOPICS)
            if not parts:
                return {}
            consumer.assign(parts)  # by hand: offsets can be asked for, and nobody is rebalanced
            consumer.pause(*parts)  # nothing is fetched
        ends, starts = await consumer.end_offsets(parts), await consumer.beginning_offsets(parts)
        lag = {names[p.topic]: 0 for p in parts}
        for part in parts:
            done = await consumer.committed(part)
            lag[names[part.topic]] += max(0, ends[part] - max(starts[part], done or 0))
        return lag

    async def close(self) -> None:
        """Hang up."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.stop()


async def lag(settings: Settings) -> dict[str, int]:
    """The same, once."""
    reader = LagReader(settings)
    try:
        return await reader.read()
    finally:
        await reader.close()
