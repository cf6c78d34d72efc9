"""The live page: open needs and offers, newest alerts, growing clusters, the pipeline's health, and search.

page_model, stats: what is shown (pure)   feed: the one reader of Redis and its viewers   app: pages and API
headers: safe headers and the token gate
"""

from __future__ import annotations

import asyncio
import logging
import socket

import click

from models.errors import ServiceError
from streams.config import Settings

__all__ = ["dashboard"]


async def serve(settings: Settings, *, search: bool = True) -> None:
    """Serve until SIGINT or SIGTERM; prints the address. Raises ServiceError if the port is taken."""
    import uvicorn

    from streams.dashboard.app import create_dashboard
    from streams.search.follower import Searcher
    from streams.view.connect import connect
    from streams.view.live import LiveView
    from streams.web.deadline import DeadlineProtocol

    listener = _listen(settings.dashboard.host, settings.dashboard.port)
    redis = connect(settings.redis)
    app = create_dashboard(settings, LiveView(redis, settings), Searcher(settings) if search else None)
    host, port = listener.getsockname()[:2]
    click.echo(f"dashboard: http://{f'[{host}]' if ':' in host else host}:{port}")
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=3, http=DeadlineProtocol
    )
    try:
        await uvicorn.Server(config).serve(sockets=[listener])
    finally:
        listener.close()
        await redis.aclose()


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise ServiceError(
            f"cannot listen on {host}:{port} ({error.strerror}): choose another with --port or CRISIS_DASHBOARD__PORT"
        ) from error


@click.command()
@click.option("--host", help="Where to listen; 0.0.0.0 serves other machines. Default: as in the settings.")
@click.option("--port", type=click.IntRange(0, 65535), help="0 = any free one. Default: as in the settings.")
@click.option("--no-search", is_flag=True, help="Without the search box: needs no encoder and little memory.")
@click.pass_obj
def dashboard(settings: Settings, host: str | None, port: int | None, no_search: bool) -> None:
    """Serve the live page and its API."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    changed = settings.model_copy(update={"dashboard": settings.dashboard.model_copy(update=given)})
    asyncio.run(serve(changed, search=not no_search))
