"""The embedded broker on a loop in a thread of its own, for tests that have none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from anyio.from_thread import BlockingPortal, start_blocking_portal

from streams.embedded import EmbeddedBroker


class ThreadedBroker(EmbeddedBroker):
    """Its methods belong to its own thread; these may be called from any."""

    portal: BlockingPortal

    def compact(self, topic: str) -> None:
        """Compact now, as Apache Kafka would in a while."""
        for partition in self.topics[topic]:
            self.portal.call(partition.compact)


@contextlib.contextmanager
def run_broker_in_thread(port: int = 0, **options: object) -> Iterator[ThreadedBroker]:
    """Serve until the block ends."""
    with start_blocking_portal() as portal:
        with portal.wrap_async_context_manager(ThreadedBroker(port, **options)) as broker:
            broker.portal = portal
            yield broker
