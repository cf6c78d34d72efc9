"""What protects the page: headers that let nothing foreign run in it, an optional token, and the host name.

The token comes as `Authorization: Bearer …` or, after logging in, in a cookie that holds the end of the session and a
keyed hash of both. A shift later, or once the token is changed, it opens nothing.
"""

from __future__ import annotations

import hmac
import time
from urllib.parse import parse_qs, quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "crisis_session"
SESSION_S = 12 * 3600  # a shift
OPEN_PATHS = ("/healthz", "/readyz", "/login", "/static/")

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class SafeHeaders:
    """Adds the headers to every answer. What is not a static file is never stored by browsers or proxies."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                static = scope["path"].startswith("/static/")
                headers["Cache-Control"] = "no-cache" if static else "no-store"
            await send(message)

        await self.app(scope, receive, with_headers if scope["type"] == "http" else send)


class TokenGate:
    """Lets nobody in without the token, but for health and the login page."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] == "lifespan" or path.startswith(OPEN_PATHS) or self._known(scope):
            await self.app(scope, receive, send)
        elif "text/html" in Headers(scope=scope).get("accept", ""):
            query = scope.get("query_string", b"").decode("latin-1")
            back = quote(path + (f"?{query}" if query else ""), safe="")
            await RedirectResponse(f"/login?next={back}", 303)(scope, receive, send)
        else:
            refused = PlainTextResponse(
                "a token is needed: send it as 'Authorization: Bearer …'\n", 401, {"WWW-Authenticate": "Bearer"}
            )
            await refused(scope, receive, send)

    def _known(self, scope: Scope) -> bool:
        connection = HTTPConnection(scope)
        kind, _, given = connection.headers.get("authorization", "").partition(" ")
        by_header = kind.lower() == "bearer" and same(given.strip(), self.token)
        return open_session(connection.cookies.get(COOKIE, ""), self.token, time.time()) or by_header


def own_page(request: Request) -> bool:
    """Was this sent by our own page, or by a program, and not by a page of somebody else in the same browser?

    A foreign page may send forms, with the cookie in older browsers, and to a dashboard without a token at all. It may
    not send JSON without asking first, which we never grant; and browsers say where a request comes from.
    """
    headers = request.headers
    host = headers.get("host", "")
    origin = headers.get("origin")
    return (
        headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
        and headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")
        and (origin is None or origin.partition("://")[2] == host)
    )


def same(given: str, expected: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


def session_of(token: str, until: float) -> str:
    """What the cookie holds: not the token. until: epoch seconds."""
    signed = hmac.digest(token.encode(), b"crisis dashboard session until %d" % until, "sha256").hex()
    return f"{int(until)}.{signed}"


def open_session(cookie: str, token: str, now: float) -> bool:
    """Is it a session of this token that has not ended?"""
    until = cookie.partition(".")[0]
    return until.isdecimal() and len(until) < 12 and now < int(until) and same(cookie, session_of(token, int(until)))


def log_out() -> Response:
    """Answer to whoever leaves a shared machine."""
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer


async def log_in(request: Request, token: str) -> Response | None:
    """Answer a sent login form: the way back with a cookie, or None if the token is wrong."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > 8192:
            return None
    form = parse_qs(body.decode("utf-8", "replace"))
    if not same(form.get("token", [""])[0].strip(), token):
        return None
    back = form.get("next", ["/"])[0]
    # Only a path of ours: "//host" and "/\host" would lead elsewhere.
    safe = back.startswith("/") and not back.startswith(("//", "/\\")) and back.isprintable()
    answer = RedirectResponse(back if safe else "/", 303)
    answer.set_cookie(
        COOKIE,
        session_of(token, time.time() + SESSION_S),
        max_age=SESSION_S,
        httponly=True,
        samesite="strict",
        path="/",
        # A proxy that ends TLS says so; whoever claims it without one only gets a cookie his browser will not send.
        secure="https" in (request.url.scheme, request.headers.get("x-forwarded-proto", "").lower()),
    )
    return answer
