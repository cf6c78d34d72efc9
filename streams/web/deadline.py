"""A connection that does not say what it wants in time is closed, and there are only so many of them.

uvicorn waits for ever for the end of a request's head and for every byte of its body: a few hundred half-sent ones were
all the sockets a server has. A body may take as long as bytes of it come; who reads one sets a limit to the whole
(`streams.web.body`, `HttpConfig.read_s`).
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["DeadlineProtocol"]

HEAD_S = 10.0  # for the head of a request
SILENT_S = 10.0  # between two pieces of a body
MOST_CONNECTIONS = 512


class DeadlineProtocol(H11Protocol):
    """`uvicorn.Config(http=DeadlineProtocol)`."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
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

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

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
