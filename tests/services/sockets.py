"""A kafka-python client that is closed while it connects drops its socket unclosed (3.0.12, net/inet.py).

Closed here, as it ought to be: then a socket that is told as left open is of a client of ours that nobody closed.
"""

from __future__ import annotations

import functools
import socket
from typing import Any

from kafka.net import KafkaNetSocket

__all__ = ["close_what_never_connected"]


def close_what_never_connected() -> None:
    """For all clients of this process from here on."""
    connect = KafkaNetSocket.sock_connect

    @functools.wraps(connect)
    async def connected(self: Any, net: object, sock: socket.socket, *to: Any, **until: Any) -> socket.socket:
        try:
            return await connect(self, net, sock, *to, **until)
        except BaseException:  # also where nobody waits for it any more
            sock.close()
            raise

    KafkaNetSocket.sock_connect = connected
