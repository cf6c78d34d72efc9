"""The embedded broker: one node of Kafka's protocol in memory, on 127.0.0.1. NOT FOR PRODUCTION.

For `crisis demo` and quick tests: nothing is replicated or written to disk, everyone may connect, and what exceeds the
retention is gone. Not here: transactions, static members, changes to a topic, access control, TLS, quotas, retention
by time. What it does is held to Apache Kafka by tests/embedded, one suite that runs against both.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import NamedTuple

from kafka.errors import BrokerResponseError

from streams.embedded import wire
from streams.embedded.node import HOST, Node

log = logging.getLogger(__name__)

MAX_FRAME_BYTES = 100 << 20  # Kafka's socket.request.max.bytes


class Fault(NamedTuple):
    """What happens to one request."""

    delay_s: float = 0.0
    error: int = 0
    drop: bool = False
    handled: bool = False


class Faults:
    """Faults on purpose, by request name ("Produce", "Fetch", "JoinGroup", …), for tests of what must survive them.

    A fault waits for the next `times` requests of that name and is then gone. Safe from any thread.
    """

    def __init__(self) -> None:
        self.waiting: dict[str, deque[Fault]] = {name: deque() for name in wire.VERSIONS}

    def drop(self, api: str, times: int = 1, *, handled: bool = False) -> None:
        """Close the connection instead of answering; `handled`: the request is carried out before that."""
        self.waiting[api].extend([Fault(drop=True, handled=handled)] * times)

    def delay(self, api: str, seconds: float, times: int = 1) -> None:
        """Answer later."""
        self.waiting[api].extend([Fault(delay_s=seconds)] * times)

    def error(self, api: str, error: type[BrokerResponseError], times: int = 1) -> None:
        """Answer with this error for everything in the request, and do nothing."""
        self.waiting[api].extend([Fault(error=error.errno)] * times)


class EmbeddedBroker(Node):
    """`async with EmbeddedBroker() as broker: broker.bootstrap`, on the running event loop, without threads.

    port: 0 for any free one. retention_bytes: per partition, where the topic sets no retention.bytes. auto_create:
    topics are made (one partition) when a client asks for them. Raises OSError if the port is taken.
    """

    def __init__(self, port: int = 0, *, retention_bytes: int = 64 << 20, auto_create: bool = True) -> None:
        super().__init__(port, retention_bytes, auto_create)
        self.faults = Faults()
        self._connections: set[asyncio.Task] = set()

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    async def __aenter__(self) -> EmbeddedBroker:
        self._loop = asyncio.get_running_loop()
        self._server = await asyncio.start_server(self._serve, HOST, self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    def call(self, function: Callable, *args: object) -> object:
        """Run a function on the broker's loop from another thread, e.g. `broker.call(broker.compact, "queries")`."""

        async def run() -> object:
            return function(*args)

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def compact(self, topic: str) -> None:
        """Compact now, as Apache Kafka would in a while. Raises UnknownTopicOrPartitionError."""
        for partition in self.topic(topic):
            partition.compact()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request at a time per connection, answers in order: as Apache Kafka does."""
        self._connections.add(task := asyncio.current_task())
        try:
            while await self._serve_one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client has gone, or we stop
        except wire.BadFrame as error:
            log.warning("connection closed: %s", error)
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """False: close the connection."""
        size_bytes = int.from_bytes(await reader.readexactly(4), "big", signed=True)
        if not wire.HEADER.size <= size_bytes <= MAX_FRAME_BYTES:
            raise wire.BadFrame(f"a frame of {size_bytes} bytes: is that a Kafka client?")
        name, request = wire.read(await reader.readexactly(size_bytes))
        fault = self.faults.waiting[name].popleft() if self.faults.waiting[name] else Fault()
        await asyncio.sleep(fault.delay_s)
        if fault.drop and not fault.handled:
            return False
        # An error on purpose has the shape of what a node answers that knows nothing.
        response = await wire.respond(Node(self.port) if fault.error else self, name, request, fault.error)
        if response is not None and not fault.drop:
            writer.write(wire.write(request, response))
            await writer.drain()
        return not fault.drop


@contextlib.contextmanager
def run_broker_in_thread(port: int = 0, **options: object) -> Iterator[EmbeddedBroker]:
    """An EmbeddedBroker on a loop of its own, for code that has none: `with run_broker_in_thread() as broker`."""
    started: Future[EmbeddedBroker] = Future()
    stopped = asyncio.Event()

    async def serve() -> None:
        async with EmbeddedBroker(port, **options) as broker:
            started.set_result(broker)
            await stopped.wait()

    with ThreadPoolExecutor(1, "embedded-broker") as thread:
        running = thread.submit(asyncio.run, serve())
        wait({started, running}, return_when=FIRST_COMPLETED)
        broker = started.result() if not running.done() else running.result()
        try:
            yield broker
        finally:
            broker.call(stopped.set)
