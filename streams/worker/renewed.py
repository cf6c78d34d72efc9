"""Topics that were made anew under a worker are read from their beginning.

Offsets of a topic that was deleted say nothing of the one that took its name: of a broker that came back empty, of a
topic deleted by a slip. aiokafka goes to the beginning where an offset lies beyond the end, but Faust (0.15.3) then
drops every record below the offset that it had reached, silently (measured: 30 of 138 posts, after a broker came back
empty). So each worker asks once a second for the ids of the topics (KIP-516); where one has another id than at its
start, it takes its place in the group back to the beginning and ends, to be started again. What is read twice has its
effects once.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Collection, Mapping

import faust
from faust.types import TP
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from models.errors import ServiceError
from streams.broker.connect import admin
from streams.config import Settings
from streams.config.sections import TOPICS
from streams.worker.watchdog import STALLED, Partition

__all__ = ["Beyond", "TopicIds", "begin_anew", "end_when_renewed"]

log = logging.getLogger(__name__)

LOOK_S = 1.0
ANSWER_S = 10.0  # for the commit: without it a worker that starts anew finds the old offsets
LOOKS = 10  # so often beyond the end: after a change of leaders a partition may end lower for a moment


class TopicIds:
    """Our topics' ids as they were when each was first seen."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._names = settings, {settings.topics.name(topic) for topic in TOPICS}
        self._first: dict[str, object] = {}
        self._client: KafkaAdminClient | None = None

    def renewed(self) -> dict[str, int]:
        """Those that have another id now, and how many partitions. Empty where no broker answers, or it knows no ids.

        Blocking.
        """
        try:
            self._client = self._client or admin(self._settings)
            told = self._client.describe_topics()
        except (ServiceError, KafkaError, OSError, ValueError):
            self.close()
            return {}
        there = [t for t in told if t["name"] in self._names and not t["error_code"] and t.get("topic_id")]
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


async def end_when_renewed(app: faust.App, settings: Settings) -> None:
    """Look for ever; ends the process when a topic was made anew."""
    ids = TopicIds(settings)
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
    try:
        if partitions:
            await asyncio.wait_for(app.consumer._commit(dict.fromkeys(partitions, 0)), ANSWER_S)
    except (TimeoutError, KafkaError) as error:
        log.error("the group's place could not be taken back (%s): begin anew by `crisis topics --reset-view`", error)
    os._exit(STALLED)
