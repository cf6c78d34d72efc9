"""A connection that does not say what it wants in time is closed, and there are only so many of them.

uvicorn waits for ever for the end of a request's head: a few hundred half-sent ones were all the sockets a server has.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["DeadlineProtocol"]

HEAD_S = 10.0  # for the head of a request; bodies have limits of their own
MOST_CONNECTIONS = 512


class DeadlineProtocol(H11Protocol):
    """`uvicorn.Config(http=DeadlineProtocol)`."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.close()
        else:
            self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        if self._deadline is None and self._waits():  # the next request of a connection that was kept
            self._wait_for_head()
        super().data_received(data)
        if not self._waits():
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _waits(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait_for_head(self) -> None:
        self._deadline = self.loop.call_later(HEAD_S, self._too_late)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self) -> None:
        self._deadline = None
        if self._waits() and not self.transport.is_closing():
            self.transport.close()
