"""The dashboard's web application: one page, a small JSON API, and server-sent events (routes.py)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Mapping

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import PlainTextResponse

from models.errors import CrisisError, LabelError, QueryError
from streams.broker.backoff import end_task
from streams.config import Settings
from streams.config.secrets import redacted
from streams.dashboard.access import KEPT, AccessLog, People, access_logger
from streams.dashboard.headers import SafeHeaders, TokenGate
from streams.dashboard.routes import Routes
from streams.search.follower import Searcher
from streams.view.live import LiveView
from streams.view.vault import Vault
from streams.web.exposure import asked_by, refuse_to_be_open

__all__ = ["create_dashboard"]

log = logging.getLogger(__name__)


def create_dashboard(settings: Settings, view: LiveView, searcher: Searcher | None) -> Starlette:
    """The application. Its lifespan runs the feed and the searcher; `app.state.feed` is the Feed, `vault` the Vault."""
    people = People.read(settings.dashboard.token_file)
    refuse_to_be_open(
        "the dashboard", settings.dashboard.host, people, "dashboard.token_file; `crisis token` makes one"
    )
    newest: deque[Mapping[str, object]] = deque(maxlen=KEPT)
    vault = Vault.of(settings)
    routes = Routes(settings, view, searcher, people, newest, vault)

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
            await asyncio.gather(*map(end_task, (reading, feed, learning)))
            if searcher is not None:
                await searcher.stop()
            if vault is not None:
                await vault.aclose()

    middleware = [Middleware(SafeHeaders), asked_by(settings.dashboard.allowed_hosts, or_our_address=True)]
    middleware.append(Middleware(AccessLog, newest=newest, log=access_logger(settings.dashboard.access_log)))
    if people is not None:
        middleware.append(Middleware(TokenGate, people=people))
    middleware.append(Middleware(GZipMiddleware, minimum_size=1000))
    app = Starlette(routes=routes.table(), middleware=middleware, lifespan=lifespan)
    for refused in (LabelError, QueryError):
        app.add_exception_handler(refused, lambda _, error: PlainTextResponse(f"{redacted(error)}\n", 400))
    app.add_exception_handler(CrisisError, lambda _, error: PlainTextResponse(f"{redacted(error)}\n", 503))
    app.state.feed, app.state.vault = routes.feed, vault
    return app


def _say_why(task: asyncio.Task) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.critical("the dashboard no longer follows Redis", exc_info=error)
