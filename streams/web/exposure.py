"""Nothing listens beyond this machine without a token, and pages of somebody else reach nothing."""

from __future__ import annotations

import ipaddress

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import Receive, Scope, Send

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


def asked_by(names: str, or_our_address: bool = False) -> Middleware:
    """Answers 400 to who asks by another name than one of these, comma separated, wherever we listen and whatever token
    comes along: a page of somebody else would reach us by giving its own host name our address.

    or_our_address: and than the number of the address at which the question came in, which is nobody else's name.
    Machines that watch us ask by it (Prometheus, where it finds workers by DNS).
    """
    hosts = [name.strip() for name in names.split(",") if name.strip()]
    kind = _NamesOrOurAddress if or_our_address else TrustedHostMiddleware
    return Middleware(kind, allowed_hosts=hosts, www_redirect=False)


class _NamesOrOurAddress(TrustedHostMiddleware):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _at_our_address(scope):
            await self.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def _at_our_address(scope: Scope) -> bool:
    server = scope.get("server")
    try:
        address = ipaddress.ip_address(server[0] if server else "")
    except ValueError:  # a socket of the file system, or a name
        return False
    literal = str(address) if address.version == 4 else f"[{address}]"
    return Headers(scope=scope).get("host") in (literal, f"{literal}:{server[1]}")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:  # a name: only this one is known to be ours
        return host == "localhost"
