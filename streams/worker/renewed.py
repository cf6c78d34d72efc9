"""Topics that were made anew under a worker are read from their beginning.

Offsets of a topic that was deleted say nothing of the one that took its name: of a broker that came back empty, of a
topic deleted by a slip. aiokafka goes to the beginning where an offset lies beyond the end, but Faust (0.15.3) then
drops every record below the offset that it had reached, silently (measured: 30 of 138 posts, after a broker came back
empty). So each worker asks once a second for the ids of the topics (KIP-516), and ends where one has another id than at
its start, to be started again.

Kafka forgets the offsets of a topic with it, but aiokafka tries a commit again until the topic is there: offsets of the
old one then stand for the new one, and once that has grown beyond them nobody sees it by the numbers (measured: 147 of
666 posts never read). So Redis holds of which topic each partition was read last (streams/view/offsets_of.py), and who
is given a partition of another begins with it. What is read twice has its effects once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Collection, Mapping

import faust
from faust.types import TP
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from redis.exceptions import RedisError

from models.errors import ServiceError
from streams.broker.connect import admin
from streams.config import Settings
from streams.config.sections import TOPICS
from streams.view.offsets_of import OffsetsOf
from streams.worker.watchdog import STALLED, Partition

__all__ = ["Beyond", "TopicIds", "begin_anew", "begin_with_others", "end_when_renewed"]

log = logging.getLogger(__name__)

LOOK_S = 1.0
ANSWER_S = 3.0  # for the commit; in a rebalance that waits for somebody who is gone it comes to nothing
KNOWN_S = 3.0  # a rebalance waits no longer for the ids, and for Redis
LOOKS = 10  # so often beyond the end: after a change of leaders a partition may end lower for a moment


class TopicIds:
    """Our topics' ids as they were when each was first seen."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._names = settings, {settings.topics.name(topic) for topic in TOPICS}
        self._first: dict[str, object] = {}
        self._client: KafkaAdminClient | None = None
        self._one = threading.Lock()  # a client of kafka-python answers one thread at a time
        self.now: dict[str, str] = {}  # as last seen, by topic

    def renewed(self) -> dict[str, int]:
        """Those that have another id now, and how many partitions. Empty where no broker answers, or it knows no ids.

        Blocking.
        """
        with self._one:
            try:
                self._client = self._client or admin(self._settings)
                told = self._client.describe_topics()
            except (ServiceError, KafkaError, OSError, ValueError):
                self.close()
                return {}
        there = [t for t in told if t["name"] in self._names and not t["error_code"] and t.get("topic_id")]
        self.now = {t["name"]: str(t["topic_id"]) for t in there}
        new = [t for t in there if self._first.setdefault(t["name"], t["topic_id"]) != t["topic_id"]]
        return {t["name"]: len(t["partitions"]) for t in new}

    def close(self) -> None:
        """Give the connection back."""
        client, self._client = self._client, None
        if client is not None:
            client.close()


class Beyond:
    """Pure: told where this worker stands and where partitions end, says which lie beyond the end, and stay so."""

    def __init__(self) -> None:
        self._looks: dict[Partition, int] = {}

    def those(self, positions: Mapping[Partition, int], ends: Mapping[Partition, int]) -> set[Partition]:
        """positions: asked for before the ends, so that they cannot lie beyond those of the same topic."""
        over = {part for part, end in ends.items() if positions.get(part, 0) > end}
        self._looks = {part: self._looks.get(part, 0) + 1 for part in over}
        return {part for part, looks in self._looks.items() if looks >= LOOKS}


async def begin_with_others(app: faust.App, assigned: Collection[TP], ids: TopicIds, offsets: OffsetsOf) -> None:
    """To be called before a worker goes to its offsets: partitions of topics made anew begin at their beginning.

    Where broker or Redis do not answer in time the offsets are believed. Ends the process where they are known to be
    of another topic and cannot be taken back: reading on from them would lose records.
    """
    try:
        async with asyncio.timeout(KNOWN_S):
            await asyncio.to_thread(ids.renewed)
            mine = {(tp.topic, tp.partition): ids.now[tp.topic] for tp in assigned if tp.topic in ids.now}
            others = await offsets.others(mine)
    except (TimeoutError, RedisError):
        return
    begin = [TP(*part) for part in sorted(others)]
    if begin:
        log.warning("made anew since it was read last: %s; reading it from its beginning", _names(others))
        if not await _taken_back(app, begin):
            log.critical("reading on from the group's place would lose records: ending the process")
            os._exit(STALLED)
        for tp in begin:
            await app.consumer.seek(tp, 0)
    with contextlib.suppress(TimeoutError, RedisError):
        await asyncio.wait_for(offsets.note(mine), KNOWN_S)


async def end_when_renewed(app: faust.App, ids: TopicIds) -> None:
    """Look for ever; ends the process when a topic was made anew."""
    while not app.should_stop:
        if new := await asyncio.to_thread(ids.renewed):  # a commit to a partition that is gone is tried for ever
            await begin_anew(app, [tp for tp in app.consumer.assignment() if tp.partition < new.get(tp.topic, 0)], new)
        await asyncio.sleep(LOOK_S)
    ids.close()


async def begin_anew(app: faust.App, partitions: Collection[TP], topics: Collection[str]) -> None:
    """Commit the beginning of these partitions and end the process: what it has in hand is of topics that are gone."""
    await app.runtime.hold_nothing_against_what_is_in_hand()
    names = ", ".join(sorted(topics))
    log.critical("made anew, or shorter than it was: %s; reading it from its beginning: ending the process", names)
    if partitions:
        await _taken_back(app, partitions)
    os._exit(STALLED)


async def _taken_back(app: faust.App, partitions: Collection[TP]) -> bool:
    """Is the group's place at the beginning of these?"""
    try:
        if await asyncio.wait_for(app.consumer._commit(dict.fromkeys(partitions, 0)), ANSWER_S):
            return True
        why = "the group has rebalanced"
    except (TimeoutError, KafkaError) as error:
        why = str(error) or f"no answer within {ANSWER_S:g} s"
    log.warning("the group's place could not be taken back (%s): whoever is given it next does it", why)
    return False


def _names(partitions: Collection[Partition]) -> str:
    return ", ".join(sorted({topic for topic, _ in partitions}))
