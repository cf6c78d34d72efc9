"""Nothing listens beyond this machine without a token, and pages of somebody else reach nothing."""

from __future__ import annotations

import ipaddress

from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from models.errors import ConfigError

__all__ = ["LOOPBACK", "asked_by", "refuse_to_be_open"]

LOOPBACK = "localhost, 127.0.0.1, [::1]"  # names under which a browser on this machine asks


def refuse_to_be_open(what: str, host: str, token: object, setting: str) -> None:
    """Raises ConfigError if `host` can be reached from other machines and there is no token.

    what: who wants to listen; setting: where a token is named.
    """
    if token is None and not _is_loopback(host):
        raise ConfigError(
            f"{what} would listen on {host} for whoever reaches this machine: give it a token ({setting}), or "
            "listen on 127.0.0.1 only"
        )


def asked_by(names: str) -> Middleware:
    """Answers 400 to who asks by another name than one of these, comma separated, wherever we listen and whatever token
    comes along: a page of somebody else would reach us by giving its own host name our address.
    """
    hosts = [name.strip() for name in names.split(",") if name.strip()]
    return Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:  # a name: only this one is known to be ours
        return host == "localhost"
