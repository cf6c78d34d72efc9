"""Half-sent requests do not keep a server's sockets."""

import asyncio
import contextlib

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from streams.web import body, deadline
from streams.web.body import small_body
from streams.web.deadline import DeadlineProtocol

HALF = b"POST /%s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\ntoken="
WHOLE = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@contextlib.asynccontextmanager
async def serving():
    def deadlines(_):
        return PlainTextResponse(str([connection._deadline for connection in server.server_state.connections]))

    async def upload(request):
        with contextlib.suppress(ClientDisconnect):
            return PlainTextResponse(str(len(await request.body())))
        return PlainTextResponse("gone")

    async def form(request):
        return PlainTextResponse(str(await small_body(request, 2000)))

    routes = [Route("/", lambda _: PlainTextResponse("ok")), Route("/deadlines", deadlines)]
    routes += [Route("/upload", upload, methods=["POST"]), Route("/form", form, methods=["POST"])]
    app = Starlette(routes=routes)
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


@pytest.mark.parametrize("begin", [HALF % b"upload", HALF % b"form", WHOLE + HALF % b"upload", HALF % b"nowhere"])
async def test_a_request_whose_body_does_not_end_is_closed_and_others_are_answered(monkeypatch, begin):
    """Behind an answered one too, and where nobody reads the body."""
    monkeypatch.setattr(deadline, "SILENT_S", 0.3)
    monkeypatch.setattr(deadline, "MOST_CONNECTIONS", 50)
    async with serving() as port:
        halves = [await asyncio.open_connection("127.0.0.1", port) for _ in range(50)]
        for _, writer in halves:
            writer.write(begin)
        for reader, writer in halves:
            async with asyncio.timeout(20):
                await reader.read()
            writer.close()
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"http://127.0.0.1:{port}/")).text == "ok"


async def test_a_long_upload_goes_on_as_long_as_bytes_come(monkeypatch):
    monkeypatch.setattr(deadline, "SILENT_S", 1.0)
    monkeypatch.setattr(deadline, "HEAD_S", 1.0)

    async def slowly():
        for _ in range(15):
            yield b"x" * 100
            await asyncio.sleep(0.1)

    async with serving() as port, httpx.AsyncClient() as client:
        answer = await client.post(f"http://127.0.0.1:{port}/upload", content=slowly())
        assert answer.text == "1500"
        assert (await client.get(f"http://127.0.0.1:{port}/deadlines")).text == "[None]"


async def test_a_form_that_drips_is_refused_however_steadily_it_does(monkeypatch):
    monkeypatch.setattr(body, "WHOLE_S", 0.3)
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HALF % b"form")
        answer = bytearray()

        async def drip():
            while not answer:  # a byte that meets a closed connection would have it reset
                writer.write(b"x")
                await asyncio.sleep(0.05)

        dripping = asyncio.create_task(drip())
        with contextlib.suppress(ConnectionResetError):  # by a byte that was on its way
            async with asyncio.timeout(20):
                while piece := await reader.read(65_536):  # to its end: the connection is not kept
                    answer += piece
        await dripping
        assert b" 408 " in answer and b"send it again" in answer
        writer.close()


async def test_a_form_within_its_bounds_is_read_whole_and_a_longer_one_not_at_all():
    async with serving() as port, httpx.AsyncClient() as client:
        for sent, told in ((b"x" * 2000, str(b"x" * 2000)), (b"x" * 2001, "None"), (b"", "b''")):
            assert (await client.post(f"http://127.0.0.1:{port}/form", content=sent)).text == told


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
