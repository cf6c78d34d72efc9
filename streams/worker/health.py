"""/metrics, /livez and /readyz of one worker, in a thread of its own so that a busy loop cannot hide them."""

from __future__ import annotations

import hmac
import threading
import time
from pathlib import Path

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from streams import metrics
from streams.config.secrets import secret
from streams.web.deadline import DeadlineProtocol
from streams.web.exposure import LOOPBACK, asked_by, refuse_to_be_open

__all__ = ["Heart", "serve_health"]

LATE_S = 15.0  # the loop beats every second; a loop this late is stuck


class Heart:
    """Beaten by the event loop, read by the health thread."""

    def __init__(self) -> None:
        self._at = time.monotonic()

    def beat(self) -> None:
        self._at = time.monotonic()

    @property
    def late_s(self) -> float:
        return time.monotonic() - self._at


def health_app(heart: Heart, token: str | None = None, allowed_hosts: str = LOOPBACK) -> Starlette:
    """livez, and healthz as it was called: the loop turns. readyz: encoder warm, queries read. Else 503, the reason.
    metrics: all, or `?name[]=` some.

    allowed_hosts: names to ask by, beside the address at which the question comes in; others get 400.
    """

    async def metrics_page(request: Request) -> Response:
        given = request.headers.get("authorization", "")
        if token is not None and not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
            return PlainTextResponse("a token is needed: worker.metrics_token_file\n", 401)
        names = request.query_params.getlist("name[]")  # as the library's own server has it
        asked = metrics.REGISTRY.restricted_registry(names) if names else metrics.REGISTRY
        return Response(generate_latest(asked), media_type=CONTENT_TYPE_LATEST)

    async def livez(_: Request) -> Response:
        if heart.late_s > LATE_S:
            return PlainTextResponse(f"event loop stuck for {heart.late_s:.0f} s\n", 503)
        return PlainTextResponse("ok\n")

    async def readyz(_: Request) -> Response:
        if metrics.ready._value.get() != 1:
            return PlainTextResponse("loading encoder and queries\n", 503)
        return PlainTextResponse("ready\n")

    routes = [Route("/metrics", metrics_page), Route("/readyz", readyz)]
    routes += [Route(path, livez) for path in ("/livez", "/healthz")]
    return Starlette(routes=routes, middleware=[asked_by(allowed_hosts, or_our_address=True)])


def serve_health(
    host: str, port: int, heart: Heart, token_file: Path | None = None, allowed_hosts: str = LOOPBACK
) -> uvicorn.Server:
    """Serve in a daemon thread until the process ends. A port already taken is logged by uvicorn and not fatal.

    Raises ConfigError where other machines could ask without a token.
    """
    token = secret(token_file, least_chars=16)
    refuse_to_be_open("/metrics of the worker", host, token, "worker.metrics_token_file")
    app = health_app(heart, token, allowed_hosts)
    config = uvicorn.Config(app, host, port, log_level="warning", access_log=False, http=DeadlineProtocol)
    server = uvicorn.Server(config)
    threading.Thread(target=server.run, name="health", daemon=True).start()
    return server
