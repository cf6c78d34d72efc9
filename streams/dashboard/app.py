"""The dashboard's web application: one page, a small JSON API, and server-sent events (routes.py)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse

from models.errors import CrisisError, LabelError
from streams.config import Settings, secret
from streams.dashboard.headers import SafeHeaders, TokenGate
from streams.dashboard.routes import Routes
from streams.search.follower import Searcher
from streams.view.live import LiveView

log = logging.getLogger(__name__)


def create_dashboard(settings: Settings, view: LiveView, searcher: Searcher | None) -> Starlette:
    """The application. Its lifespan runs the feed and the searcher; `app.state.feed` is the Feed."""
    token = secret(settings.dashboard.token_file, least_chars=16)
    routes = Routes(settings, view, searcher, token)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        reading = asyncio.create_task(routes.read_categories())
        if searcher is not None:
            await searcher.start()
        routes.task = feed = asyncio.create_task(routes.feed.run(), name="dashboard-feed")
        feed.add_done_callback(_say_why)
        learning = asyncio.create_task(routes.lessons.run(), name="dashboard-lessons")
        try:
            yield
        finally:
            for task in (reading, feed, learning):
                task.cancel()
            for task in (feed, learning):
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            if searcher is not None:
                await searcher.stop()

    # A page of somebody else must not reach us by giving its own host name our address, wherever we listen.
    hosts = [host.strip() for host in settings.dashboard.allowed_hosts.split(",") if host.strip()]
    middleware = [Middleware(SafeHeaders), Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)]
    if token:
        middleware.append(Middleware(TokenGate, token=token))
    elif settings.dashboard.host not in ("127.0.0.1", "localhost", "::1"):
        log.warning(
            "the dashboard listens on %s without a token: everyone who reaches it can read it (dashboard.token_file)",
            settings.dashboard.host,
        )
    middleware.append(Middleware(GZipMiddleware, minimum_size=1000))
    app = Starlette(routes=routes.table(), middleware=middleware, lifespan=lifespan)
    app.add_exception_handler(LabelError, lambda _, error: PlainTextResponse(f"{error}\n", 400))
    app.add_exception_handler(CrisisError, lambda _, error: PlainTextResponse(f"{error}\n", 503))
    app.state.feed = routes.feed
    return app


def _say_why(task: asyncio.Task) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.critical("the dashboard no longer follows Redis", exc_info=error)
