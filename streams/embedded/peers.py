"""Whose process is at the other end of a local connection: the embedded broker serves the user who started it.

Linux tells it in /proc/net/tcp (proc(5)); elsewhere nobody is turned away.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

__all__ = ["is_ours"]

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def user_of(peer: tuple[str, int]) -> int | None:
    """The user id of the process that has this IPv4 address and port; None where the system does not tell."""
    host = int.from_bytes(socket.inet_aton(peer[0]), "little")
    wanted = f"{host:08X}:{peer[1]:04X}"  # in tcp6 it ends so: ::ffff:127.0.0.1
    for table in TABLES:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            columns = line.split()
            if len(columns) > 7 and columns[1].endswith(wanted):
                return int(columns[7])
    return None


def is_ours(peer: tuple[str, int]) -> bool:
    """False for a process of another user of this machine. Root may look at everything anyway."""
    user = user_of(peer)
    return user in (None, 0, os.getuid())
