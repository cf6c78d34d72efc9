"""A dashboard on a free port, in a thread with a loop of its own; tests talk to it as browsers and scripts do."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

import httpx
import numpy as np
import uvicorn
from starlette.applications import Starlette

from models.records import EmbeddedFrame, Origin, Post
from streams.config import Settings, load_settings
from streams.dashboard.app import create_dashboard
from streams.pipeline.frames import encode_frame, pack_vectors
from streams.search.follower import Searcher
from streams.search.window import Window
from streams.view.connect import connect
from streams.view.live import LiveView
from tests.waiting import PATIENCE_S

T = TypeVar("T")


class TinyEncoder:
    """Real but small: texts that share three-letter pieces are near. Deterministic; versions have nothing in common."""

    dim, cleaning = 64, None

    def __init__(self, version: str = "tiny-1") -> None:
        self.version = version

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            padded = f"  {text.casefold()} "
            for start in range(len(padded) - 2):
                seed = zlib.crc32((self.version + padded[start : start + 3]).encode())
                row += np.random.default_rng(seed).standard_normal(self.dim)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def frame(posts: list[Post], offset: int = 0, version: str = "tiny-1", **more: object) -> bytes:
    """A record of posts.embedded."""
    vectors = pack_vectors(TinyEncoder(version).encode([p.text for p in posts])) if posts else b""
    return encode_frame(
        EmbeddedFrame(Origin(0, offset), posts, encoder_version=version, dim=64, vectors=vectors, **more)
    )


class FedSearcher(Searcher):
    """A searcher that is given its frames instead of reading them from Kafka."""

    def __init__(self, settings: Settings, frames: list[bytes]) -> None:
        super().__init__(settings)
        self._frames = frames

    async def start(self) -> None:
        self.window = Window(self.settings, self.config, TinyEncoder())
        self.window.add(self._frames)
        self.window.caught_up.set()


class Served:
    """What a test holds of a running dashboard."""

    def __init__(self, url: str, view: LiveView, loop: asyncio.AbstractEventLoop) -> None:
        self.url, self.view, self._loop = url, view, loop

    def call(self, work: Callable[[LiveView], Awaitable[T]]) -> T:
        """Run something on the server's loop, such as `lambda view: view.put_alerts([...])`."""
        return asyncio.run_coroutine_threadsafe(work(self.view), self._loop).result(PATIENCE_S)


def settings_for(redis_url: str, **dashboard: object) -> Settings:
    """Settings with that Redis and no broker anywhere near."""
    return load_settings(redis={"url": redis_url}, broker={"bootstrap": "127.0.0.1:1"}, dashboard=dashboard)


@contextlib.asynccontextmanager
async def visiting(app: Starlette, url: str = "http://127.0.0.1") -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application that runs: without its lifespan a page waits five seconds for the first read."""
    async with app.router.lifespan_context(app):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=url) as client:
            yield client


@contextlib.contextmanager
def served(settings: Settings, frames: list[bytes] | None = None) -> Iterator[Served]:
    """Serve until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    ready, held = threading.Event(), {}

    async def run() -> None:
        redis = connect(settings.redis)
        view = LiveView(redis, settings)
        app = create_dashboard(settings, view, FedSearcher(settings, frames) if frames is not None else None)
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
        held.update(view=view, server=server, loop=asyncio.get_running_loop())
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        ready.set()
        await serving
        await redis.aclose()

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    assert ready.wait(PATIENCE_S)
    try:
        yield Served(f"http://127.0.0.1:{listener.getsockname()[1]}", held["view"], held["loop"])
    finally:
        held["server"].should_exit = True
        thread.join()
        listener.close()
