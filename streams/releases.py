"""The `encoders` topic: which encoder version is current, which one is staged, and where to roll back to.

One record (key `release`) holds the whole state, so a reader of the compacted topic sees one truth. Nobody can lock a
topic: a writer that finds another's record between the one it read and its own applies its change again on top.

    stage V [--shadow s] [--canary c]   V scores a share of the stream beside the current one; or serves a share
    use V                               V is current; what was current is remembered
    rollback                            a canary ends; with none, the version before comes back
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as SyncTopicPartition
from msgspec import Struct

from models.errors import ConfigError, EncoderError
from models.registry import OWN
from streams.canary import Bands
from streams.config import Settings
from streams.kafka import client_options, reaching, read_to_end, require_topics

log = logging.getLogger(__name__)

KEY = b"release"
KEPT = 10  # versions one can roll back to


class Staged(Struct, frozen=True):
    """A version on trial. `shadow`: share of frames it scores unseen; `canary`: share of partitions it serves."""

    version: str
    shadow: float = 0.0
    canary: float = 0.0
    bands: Bands = Bands()


class Refusal(Struct, frozen=True):
    """A canary that was rolled back, and why."""

    version: str
    reason: str
    at: float  # epoch seconds


class Release(Struct, frozen=True, omit_defaults=True):
    """What every worker is to run. Immutable: each change is the next revision."""

    revision: int = 0
    current: str = OWN
    earlier: tuple[str, ...] = ()  # what was current before, newest last
    staged: Staged | None = None
    refused: Refusal | None = None  # the last canary that was rolled back by itself
    changed_at: float = 0.0  # epoch seconds
    change: str = ""  # in words, for people

    @property
    def previous(self) -> str | None:
        """Where `rollback` goes back to."""
        return self.earlier[-1] if self.earlier else None

    def stage(self, version: str, at: float, shadow: float = 0.1, canary: float = 0.0, bands: Bands | None = None) -> Release:
        """Put a version on trial beside the current one; it takes the place of one already there."""
        for name, share in (("shadow", shadow), ("canary", canary)):
            if not 0.0 <= share <= 1.0:
                raise ConfigError(f"{name} is {share}: a share between 0 and 1")
        if version == self.current:
            raise EncoderError(f"{version} is the current version already: nothing to try")
        staged = Staged(version, shadow, canary, bands or Bands())
        return self._next(at, f"stage {version} (shadow {shadow:g}, canary {canary:g})", staged=staged)

    def unstage(self, at: float) -> Release:
        """End the trial."""
        if self.staged is None:
            raise EncoderError("no version is staged")
        return self._next(at, f"unstage {self.staged.version}", staged=None)

    def use(self, version: str, at: float) -> Release:
        """Make a version current everywhere."""
        if version == self.current:
            raise EncoderError(f"{version} is the current version already")
        staged = None if self.staged and self.staged.version == version else self.staged
        earlier = (*self.earlier, self.current)[-KEPT:]
        return self._next(at, f"use {version}", current=version, earlier=earlier, staged=staged)

    def rollback(self, at: float) -> Release:
        """End a canary; where none is on, go back to the version that was current before."""
        if self.staged and self.staged.canary > 0:
            return self._next(at, f"rollback: canary {self.staged.version} ended", staged=None)
        if self.previous is None:
            raise EncoderError(f"no version before {self.current} is known: `crisis encoder use V` names one")
        staged = None if self.staged and self.staged.version == self.previous else self.staged
        return self._next(at, f"rollback from {self.current} to {self.previous}", current=self.previous,
                          earlier=self.earlier[:-1], staged=staged)  # fmt: skip

    def refuse(self, staged: Staged, reason: str, at: float) -> Release:
        """The canary left its band: end it. Nothing changes if it is no longer the one on trial."""
        if self.staged != staged:
            return self
        refusal = Refusal(staged.version, reason, at)
        return self._next(at, f"canary {staged.version} rolled back by itself: {reason}", staged=None, refused=refusal)

    def _next(self, at: float, change: str, **changes: object) -> Release:
        return msgspec.structs.replace(self, revision=self.revision + 1, changed_at=at, change=change, **changes)


def canary_partitions(share: float, partitions: int) -> range:
    """The raw partitions a canary serves: the lowest numbers, at least one if any, all only for a share of 1."""
    count = math.ceil(share * partitions - 1e-9)
    return range(min(count, partitions - 1) if share < 1.0 and partitions > 1 else count)


def trial_of(release: Release) -> str:
    """The name of the counters of the trial going on; a change of either version starts new ones."""
    return f"trial-{release.revision}"


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Release).decode


def latest(known: Release, records: Iterable) -> Release:
    """The state after these records of the topic, in order. A bad record is logged and changes nothing."""
    for record in records:
        if record.key != KEY:
            continue
        try:
            known = _decode(record.value) if record.value else Release()
        except msgspec.MsgspecError as error:
            log.error("ignored a record of the encoders topic: %s", error)
    return known


def change_release(settings: Settings, change: Callable[[Release], Release]) -> Release:
    """Apply a change to the state on the topic; returns the new state. May call `change` more than once.

    A change made by somebody else at the same moment is kept: ours is applied again on top of it. Raises what
    `change` raises, in which case nothing was written, and ServiceError if the broker cannot be reached or has no
    such topic.
    """
    require_topics(settings, "encoders")
    topic = settings.topics.name("encoders")
    part, options = SyncTopicPartition(topic, 0), client_options(settings.broker) | {"allow_auto_create_topics": False}
    with (
        reaching(settings),
        contextlib.closing(KafkaConsumer(**options, enable_auto_commit=False)) as consumer,
        contextlib.closing(KafkaProducer(**options, acks="all")) as producer,
    ):
        consumer.assign([part])
        consumer.seek_to_beginning(part)
        known = latest(Release(), _read_until(consumer, part, consumer.end_offsets([part])[part]))
        while True:
            wanted = change(known)
            if wanted == known:
                return known
            at = producer.send(topic, key=KEY, value=_encode(wanted), partition=0).get(timeout=30).offset
            between = [r for r in _read_until(consumer, part, at + 1) if r.offset < at]
            if not between:
                return wanted
            known = latest(known, between)


def read_release(settings: Settings) -> Release:
    """The state, read once from the topic."""
    return change_release(settings, lambda known: known)


def _read_until(consumer: KafkaConsumer, part: SyncTopicPartition, end: int) -> list:
    found = []
    while consumer.position(part) < end:
        found += [r for records in consumer.poll(timeout_ms=500).values() for r in records]
    return found


@contextlib.asynccontextmanager
async def follow_release(
    settings: Settings, changed: Callable[[Release], Awaitable[None]]
) -> AsyncIterator[Release]:
    """Read the topic to its end, yield the state, and keep calling `changed` as it changes.

    The topic must be there: aiokafka, asking for one that is not, makes the broker make it.
    """
    consumer = AIOKafkaConsumer(**client_options(settings.broker), group_id=None, enable_auto_commit=False)

    async def follow(known: Release) -> None:
        while True:
            for records in (await consumer.getmany(timeout_ms=1000)).values():
                new = latest(known, records)
                if new != known:
                    known = new
                    await changed(known)

    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(consumer.stop)
        await consumer.start()
        consumer.assign([TopicPartition(settings.topics.name("encoders"), 0)])
        known = latest(Release(), await read_to_end(consumer))
        task = asyncio.create_task(follow(known), name="follow-encoders")
        stack.push_async_callback(_ended, task)
        yield known


async def _ended(task: asyncio.Task) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
