"""A connection that does not say what it wants in time, or does not read what it asked for, is closed, and there are
only so many of them.

uvicorn waits for ever for the end of a request's head, for every byte of its body and for an answer to be read: a few
hundred half-sent or unread ones were all the sockets a server has. A body may take as long as bytes of it come; who
reads one sets a limit to the whole (`streams.web.body`, `HttpConfig.read_s`). An answer may take as long as some of it
is taken.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import math
import socket
import struct
import termios
from collections import Counter

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["DeadlineProtocol"]

HEAD_S = 10.0  # for the head of a request
SILENT_S = 10.0  # between two pieces of a body
UNREAD_S = 30.0  # between two pieces of an answer that are taken
MOST_CONNECTIONS = 512


class DeadlineProtocol(H11Protocol):
    """`uvicorn.Config(http=DeadlineProtocol)`."""

    _deadline: asyncio.TimerHandle | None = None
    _look: asyncio.Handle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # paused is then whatever was not taken, be it a byte
        if len(self.connections) > MOST_CONNECTIONS and not self._make_room():
            transport.close()
        else:
            self._wait(HEAD_S)

    def data_received(self, data: bytes) -> None:
        if self._deadline is None and self._waits():  # the next request of a connection that was kept
            self._wait(HEAD_S)
        super().data_received(data)
        self._listen_on()

    def on_response_complete(self) -> None:
        super().on_response_complete()  # which may take up a request that was sent behind the one it answered
        self._listen_on()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look = self.loop.call_soon(self._is_read, math.inf)  # once all of the answer lies there

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_looking()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_looking()
        super().connection_lost(exc)

    def _make_room(self) -> bool:
        """Close a connection of the address that has most, an idle one first; False where it is our own that has.

        So a stranger cannot take all, and many viewers behind one proxy or router are only limited by the whole.
        """
        held = Counter(map(_whose, self.connections))
        most = max(held, key=held.__getitem__)
        if held[_whose(self)] == held[most]:
            return False
        theirs = [c for c in self.connections if isinstance(c, DeadlineProtocol) and _whose(c) == most]
        closed = max(theirs, key=DeadlineProtocol._waits)
        self.connections.discard(closed)
        closed.transport.abort()
        return True

    def _is_read(self, before: float) -> None:
        left = self.transport.get_write_buffer_size() + _in_kernel(self.transport)
        if left < before:
            self._look = self.loop.call_later(UNREAD_S, self._is_read, left)
        else:
            self.transport.abort()  # closing would wait for the rest to be read

    def _stop_looking(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _waits(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _listen_on(self) -> None:
        if not self._waits():
            self._stop_waiting()
            if self.cycle.more_body:
                self._wait(SILENT_S)

    def _wait(self, seconds: float) -> None:
        self._deadline = self.loop.call_later(seconds, self._too_late)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self) -> None:
        self._deadline = None
        if self.transport.is_closing():
            return
        if self._waits():
            self.transport.close()
        elif self.cycle.more_body:
            if self.flow.read_paused or self.cycle.waiting_for_100_continue:  # it is we who do not listen
                self._wait(SILENT_S)
            else:
                self.transport.close()


def _in_kernel(transport: asyncio.BaseTransport) -> int:
    """Bytes of an answer that the kernel holds and the other side has not taken: it asks us for more only once much of
    them has gone. 0 where it does not tell (macOS)."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        number = transport.get_extra_info("socket").fileno()
        held: int = struct.unpack("i", fcntl.ioctl(number, termios.TIOCOUTQ, bytes(4)))[0]
        return held
    return 0


def _whose(connection: asyncio.Protocol) -> str | bytes:
    """Its address; of IPv6 the network, for whoever has one address there has them all."""
    client: tuple[str, int] | None = getattr(connection, "client", None)
    host = client[0].partition("%")[0] if client else ""
    if ":" not in host:
        return host
    packed = socket.inet_pton(socket.AF_INET6, host)
    return packed if packed.startswith(bytes(10)) else packed[:8]  # ::1 and IPv4 in IPv6 are addresses of their own
