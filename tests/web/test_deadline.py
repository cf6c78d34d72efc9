"""Half-sent requests do not keep a server's sockets."""

import asyncio
import contextlib

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from streams.web import deadline
from streams.web.deadline import DeadlineProtocol


@contextlib.asynccontextmanager
async def serving():
    def deadlines(_):
        return PlainTextResponse(str([connection._deadline for connection in server.server_state.connections]))

    app = Starlette(routes=[Route("/", lambda _: PlainTextResponse("ok")), Route("/deadlines", deadlines)])
    config = uvicorn.Config(app, port=0, log_level="warning", http=DeadlineProtocol, lifespan="off")
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext
    running = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await running


async def test_a_request_whose_head_does_not_end_is_closed_and_others_are_answered(monkeypatch):
    monkeypatch.setattr(deadline, "HEAD_S", 0.3)
    async with serving() as port:
        halves = [await asyncio.open_connection("127.0.0.1", port) for _ in range(50)]
        for number, (_, writer) in enumerate(halves):
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n" if number % 2 else b"")
        for reader, writer in halves:
            assert await reader.read() == b""
            writer.close()
        monkeypatch.setattr(deadline, "HEAD_S", 3600.0)
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"http://127.0.0.1:{port}/")).text == "ok"


async def test_an_answer_may_take_as_long_as_it_needs_and_a_connection_may_be_used_again(monkeypatch):
    monkeypatch.setattr(deadline, "HEAD_S", 3600.0)
    async with serving() as port, httpx.AsyncClient() as client:
        for path, told in (("deadlines", "[None]"), ("", "ok"), ("deadlines", "[None]")):
            assert (await client.get(f"http://127.0.0.1:{port}/{path}")).text == told


async def test_there_are_only_so_many_connections(monkeypatch):
    monkeypatch.setattr(deadline, "MOST_CONNECTIONS", 10)
    async with serving() as port:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(10)]
        reader, extra = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        for _, writer in (*held, (None, extra)):
            writer.close()
