"""/metrics, /healthz and /readyz of one worker, in a thread of its own so that a busy loop cannot hide them."""

from __future__ import annotations

import threading
import time

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from streams import metrics

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


def health_app(heart: Heart) -> Starlette:
    """healthz: the loop turns. readyz: encoder warm, queries read. Both 503 with the reason otherwise."""

    async def metrics_page(_: Request) -> Response:
        return Response(generate_latest(metrics.REGISTRY), media_type=CONTENT_TYPE_LATEST)

    async def healthz(_: Request) -> Response:
        if heart.late_s > LATE_S:
            return PlainTextResponse(f"event loop stuck for {heart.late_s:.0f} s\n", 503)
        return PlainTextResponse("ok\n")

    async def readyz(_: Request) -> Response:
        if metrics.ready._value.get() != 1:
            return PlainTextResponse("loading encoder and queries\n", 503)
        return PlainTextResponse("ready\n")

    return Starlette(routes=[Route("/metrics", metrics_page), Route("/healthz", healthz), Route("/readyz", readyz)])


def serve_health(host: str, port: int, heart: Heart) -> None:
    """Serve in a daemon thread until the process ends. A port already taken is logged by uvicorn and not fatal."""
    config = uvicorn.Config(health_app(heart), host=host, port=port, log_level="warning", access_log=False)
    threading.Thread(target=uvicorn.Server(config).run, name="health", daemon=True).start()
