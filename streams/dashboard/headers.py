"""What protects the page: headers that let nothing foreign run in it, tokens (access.py), and the host name.

A token comes as `Authorization: Bearer …` or, after logging in, in a cookie that holds the end of the session, whose it
is, and a keyed hash of both. A shift later, or once the token is changed, it opens nothing.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from urllib.parse import parse_qs, quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streams.dashboard.access import NOBODY, People, Person
from streams.web.body import small_body

__all__ = ["GUESS_S", "SafeHeaders", "TokenGate", "log_in", "log_out", "own_page", "person_of"]

COOKIE = "crisis_session"
SESSION_S = 12 * 3600  # a shift
GUESS_S = 0.5  # what a wrong token waits for: guessing is slow
LONGEST_FORM = 8192  # bytes
OPEN_PATHS = ("/healthz", "/readyz", "/livez", "/metrics", "/login", "/static/")

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
    """Lets nobody in without a token, but for health and the login page; says further on who it is (`person_of`)."""

    def __init__(self, app: ASGIApp, people: People) -> None:
        self.app, self.people = app, people

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] == "lifespan" or path.startswith(OPEN_PATHS):
            await self.app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        kind, _, given = connection.headers.get("authorization", "").partition(" ")
        person = self.people.of(given.strip()) if kind.lower() == "bearer" else None
        person = person or open_session(connection.cookies.get(COOKIE, ""), self.people, time.time())
        if person is not None:
            scope.setdefault("state", {})["person"] = person
            await self.app(scope, receive, send)
            return
        if given:
            await asyncio.sleep(GUESS_S)
        if "text/html" in Headers(scope=scope).get("accept", ""):
            query = scope.get("query_string", b"").decode("latin-1")
            back = quote(path + (f"?{query}" if query else ""), safe="")
            await RedirectResponse(f"/login?next={back}", 303)(scope, receive, send)
        else:
            refused = PlainTextResponse(
                "a token is needed: send it as 'Authorization: Bearer …'\n", 401, {"WWW-Authenticate": "Bearer"}
            )
            await refused(scope, receive, send)


def person_of(request: HTTPConnection) -> Person:
    """Who asks."""
    found: Person = request.scope.get("state", {}).get("person", NOBODY)
    return found


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


def session_of(person: Person, until: float) -> str:
    """What the cookie holds: not the token. until: epoch seconds."""
    signed = hmac.digest(person.secret.encode(), b"crisis dashboard session until %d" % until, "sha256").hex()
    return f"{int(until)}.{person.name}.{signed}"


def open_session(cookie: str, people: People, now: float) -> Person | None:
    """Whose session it is, if it is one that has not ended."""
    until, _, rest = cookie.partition(".")
    person = people.named(rest.partition(".")[0])
    if person is None or not until.isdecimal() or len(until) > 11 or now >= int(until):
        return None
    return person if same(cookie, session_of(person, int(until))) else None


def log_out() -> Response:
    """Answer to whoever leaves a shared machine."""
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer


async def log_in(request: Request, people: People) -> Response | None:
    """Answer a sent login form: the way back with a cookie, or None if it is nobody's token."""
    body = await small_body(request, LONGEST_FORM)
    if body is None:
        return None
    form = parse_qs(body.decode("utf-8", "replace"))
    person = people.of(form.get("token", [""])[0].strip())
    if person is None:
        return None
    request.scope.setdefault("state", {})["person"] = person
    back = form.get("next", ["/"])[0]
    # Only a path of ours: "//host" and "/\host" would lead elsewhere.
    safe = back.startswith("/") and not back.startswith(("//", "/\\")) and back.isprintable()
    answer = RedirectResponse(back if safe else "/", 303)
    answer.set_cookie(
        COOKIE,
        session_of(person, time.time() + SESSION_S),
        max_age=SESSION_S,
        httponly=True,
        samesite="strict",
        path="/",
        # A proxy that ends TLS says so; whoever claims it without one only gets a cookie his browser will not send.
        secure="https" in (request.url.scheme, request.headers.get("x-forwarded-proto", "").lower()),
    )
    return answer
