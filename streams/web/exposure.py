"""Nothing listens beyond this machine without a token."""

from __future__ import annotations

import ipaddress

from models.errors import ConfigError

__all__ = ["LOOPBACK", "refuse_to_be_open"]

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")  # names under which a browser on this machine asks


def refuse_to_be_open(what: str, host: str, token: object, setting: str) -> None:
    """Raises ConfigError if `host` can be reached from other machines and there is no token.

    what: who wants to listen; setting: where a token is named.
    """
    if token is None and not _is_loopback(host):
        raise ConfigError(
            f"{what} would listen on {host} for whoever reaches this machine: give it a token ({setting}), or "
            "listen on 127.0.0.1 only"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:  # a name: only this one is known to be ours
        return host == "localhost"
