"""The `encoders` topic: the release every worker is to run, read, changed and followed.

One record (key `release`) holds the whole state, so a reader of the compacted topic sees one truth. Nobody can lock a
topic: a writer that finds another's record between the one it read and its own applies its change again on top.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import msgspec

from models.undecodable import UNDECODABLE
from streams.broker.compacted import Records, follow_compacted, open_compacted
from streams.config import Settings
from streams.releases.release import Release

__all__ = ["change_release", "follow_release", "read_release"]

log = logging.getLogger(__name__)

KEY = b"release"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Release).decode


def latest(known: Release, records: Iterable) -> Release:
    """The state after these records of the topic, in order. A bad record is logged and changes nothing."""
    for record in records:
        if record.key != KEY:
            continue
        try:
            known = _decode(record.value) if record.value else Release()
        except UNDECODABLE as error:
            log.error("ignored a record of the encoders topic: %s", error)
    return known


def change_release(settings: Settings, change: Callable[[Release], Release]) -> Release:
    """Apply a change to the state on the topic; returns the new state. May call `change` more than once.

    A change made by somebody else at the same moment is kept: ours is applied again on top of it. Raises what
    `change` raises, in which case nothing was written, and ServiceError if the broker cannot be reached or has no
    such topic.
    """
    with open_compacted(settings, "encoders") as topic:
        known = latest(Release(), topic.read())
        while True:
            wanted = change(known)
            if wanted == known:
                return known
            (at,) = topic.write({KEY: _encode(wanted)})
            between = [record for record in topic.read(at + 1) if record.offset < at]
            if not between:
                return wanted
            known = latest(known, between)


def read_release(settings: Settings) -> Release:
    """The state, read once from the topic."""
    return change_release(settings, lambda known: known)


@contextlib.asynccontextmanager
async def follow_release(settings: Settings, changed: Callable[[Release], Awaitable[None]]) -> AsyncIterator[Release]:
    """Read the topic to its end, yield the state, and keep calling `changed` as it changes."""
    known = Release()

    async def heard(records: Records) -> None:
        nonlocal known
        before, known = known, latest(known, records)
        if known != before:
            await changed(known)

    async with follow_compacted(settings, "encoders", heard) as records:
        known = latest(known, records)
        yield known
