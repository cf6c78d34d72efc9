"""The embedded broker on a loop in a thread of its own, for tests that have none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from anyio.from_thread import start_blocking_portal

from streams.embedded import EmbeddedBroker


@contextlib.contextmanager
def run_broker_in_thread(port: int = 0, **options: object) -> Iterator[EmbeddedBroker]:
    """Serve until the block ends."""
    with start_blocking_portal() as portal:
        with portal.wrap_async_context_manager(EmbeddedBroker(port, **options)) as broker:
            yield broker
