"""Sockets that kafka-python leaves open (3.0.12, net/): of a client that is closed while it connects, and of one that
is closed before all is sent that it wrote, as its loop ends then.

Closed here, as they ought to be: then a socket that is told as left open is of a client of ours that nobody closed.
"""

from __future__ import annotations

import functools
import socket
from typing import Any

from kafka.net import KafkaNetSocket
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaTCPTransport

__all__ = ["close_what_clients_leave"]


def close_what_clients_leave() -> None:
    """For all clients of this process from here on."""
    _close_what_never_connected()
    _close_what_still_wrote()


def _close_what_never_connected() -> None:
    connect = KafkaNetSocket.sock_connect

    @functools.wraps(connect)
    async def connected(self: Any, net: object, sock: socket.socket, *to: Any, **until: Any) -> socket.socket:
        try:
            return await connect(self, net, sock, *to, **until)
        except BaseException:  # also where nobody waits for it any more
            sock.close()
            raise

    KafkaNetSocket.sock_connect = connected


def _close_what_still_wrote() -> None:
    close, end = KafkaTCPTransport.close, NetworkSelector.close

    @functools.wraps(close)
    def closed(self: Any) -> None:
        close(self)
        if self._write_buffer:
            vars(self._net).setdefault("still_wrote", []).append(self._sock)

    @functools.wraps(end)
    def ended(self: Any) -> None:
        end(self)
        for sock in vars(self).pop("still_wrote", ()):
            sock.close()

    KafkaTCPTransport.close, NetworkSelector.close = closed, ended
