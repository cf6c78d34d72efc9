"""The embedded broker: one node of Kafka's protocol in memory, on 127.0.0.1. NOT FOR PRODUCTION.

For `crisis demo` and quick tests: nothing is replicated or written to disk, every process of this user may connect
(everyone's, where the system does not tell whose a process is), and what exceeds the retention is gone. Not here:
transactions, static members, changes to a topic, deleting single records, access control, TLS, quotas, retention by
time, compaction (a compacted topic keeps what Apache Kafka has not compacted yet: all). What
it does is held to Apache Kafka by tests/embedded, one suite that runs against both.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import NamedTuple

from streams.embedded import peers, wire
from streams.embedded.node import HOST, Node

__all__ = ["EmbeddedBroker", "Fault"]

log = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 100 << 20  # Kafka's socket.request.max.bytes


class Fault(NamedTuple):
    """What happens to one request, on purpose: for tests of what must survive it.

    delay_s: wait first. error: the code of a Kafka error to answer for everything in the request; nothing is done.
    drop: close the connection instead of answering; `handled`: the request is carried out before that.
    """

    delay_s: float = 0.0
    error: int = 0
    drop: bool = False
    handled: bool = False


class EmbeddedBroker(Node):
    """`async with EmbeddedBroker() as broker: broker.bootstrap`, on the running event loop, without threads.

    faults: what happens to the next requests of a name: `broker.faults["Produce"] += [Fault(drop=True)] * 2`.
    port: 0 for any free one. retention_bytes: per partition, where the topic sets no retention.bytes. auto_create:
    topics are made (one partition) when a client asks for them. Raises OSError if the port is taken.
    """

    def __init__(self, port: int = 0, *, retention_bytes: int = 64 << 20, auto_create: bool = True) -> None:
        super().__init__(port, retention_bytes, auto_create)
        self.faults: dict[str, deque[Fault]] = {name: deque() for name in wire.VERSIONS}
        self._connections: set[asyncio.Task] = set()

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    async def __aenter__(self) -> EmbeddedBroker:
        self._server = await asyncio.start_server(self._serve, HOST, self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        serving = set(self._connections)
        while serving:  # asked again: `asyncio.wait_for` of Python 3.11 may swallow one that comes as it ends
            for task in serving:
                task.cancel()
            _, serving = await asyncio.wait(serving, timeout=1.0)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request at a time per connection, answers in order: as Apache Kafka does."""
        if not peers.is_ours(writer.get_extra_info("peername")):
            log.warning("connection closed: it is of another user of this machine")
            writer.transport.abort()
            return
        self._connections.add(task := asyncio.current_task())
        try:
            while True:
                await self._serve_one(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client has gone (or shall think so of us), or we stop
        except wire.BadRequest as error:
            log.warning("connection closed: %s", error)
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Raises ConnectionError or BadRequest: close the connection."""
        size_bytes = int.from_bytes(await reader.readexactly(4), "big", signed=True)
        if not wire.HEADER.size <= size_bytes <= MAX_REQUEST_BYTES:
            raise wire.BadRequest(f"a request of {size_bytes} bytes: is that a Kafka client?")
        name, request = wire.read(await reader.readexactly(size_bytes))
        fault = self.faults[name].popleft() if self.faults[name] else Fault()
        await asyncio.sleep(fault.delay_s)
        if fault.drop and not fault.handled:
            raise ConnectionResetError("on purpose")
        # An error on purpose has the shape of what a node answers that knows nothing.
        response = await wire.respond(Node(self.port) if fault.error else self, name, request, fault.error)
        if fault.drop:
            raise ConnectionResetError("on purpose")
        if response is not None:
            writer.write(wire.write(request, response))
            await writer.drain()
