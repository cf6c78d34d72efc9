"""Half-sent requests and unread answers do not keep a server's sockets, nor does whoever takes them all."""

import asyncio
import contextlib
import socket
from types import SimpleNamespace

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from streams.web import body, deadline
from streams.web.body import small_body
from streams.web.deadline import DeadlineProtocol, _whose
from tests.waiting import PATIENCE_S

HALF = b"POST /%s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\ntoken="
WHOLE = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
BIG = b"GET /big HTTP/1.1\r\nHost: x\r\n%s\r\n"
BIG_BYTES = 20_000_000  # more than the kernel takes for a reader that reads nothing


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
    routes += [Route("/big", lambda _: PlainTextResponse(b"x" * BIG_BYTES))]
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


def unread(port: int) -> socket.socket:
    """A connection that takes a few kB and no more."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    one.connect(("127.0.0.1", port))
    return one


@pytest.mark.parametrize("more", [b"", b"Connection: close\r\n"])
async def test_an_answer_that_nobody_reads_is_given_up_and_others_are_answered(monkeypatch, more):
    """One that is closed once it is read, too."""
    monkeypatch.setattr(deadline, "UNREAD_S", 0.3)
    monkeypatch.setattr(deadline, "MOST_CONNECTIONS", 10)
    async with serving() as port:
        held = [unread(port) for _ in range(10)]
        for one in held:
            one.sendall(BIG % more)
        async with asyncio.timeout(PATIENCE_S), httpx.AsyncClient() as client:
            while True:
                with contextlib.suppress(httpx.TransportError):
                    assert (await client.get(f"http://127.0.0.1:{port}/")).text == "ok"
                    break
                await asyncio.sleep(0.05)
        for one in held:
            one.close()


async def test_an_answer_that_is_read_slowly_is_read_to_its_end(monkeypatch):
    monkeypatch.setattr(deadline, "UNREAD_S", 1.0)
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=100_000)
        writer.write(BIG % b"Connection: close\r\n")
        found = 0
        for _ in range(20):
            found += len(await reader.readexactly(BIG_BYTES // 20))
            await asyncio.sleep(0.15)
        assert found + len(await reader.read()) > BIG_BYTES
        writer.close()


async def test_who_has_most_connections_gives_up_an_idle_one_for_somebody_else(monkeypatch):
    monkeypatch.setattr(deadline, "MOST_CONNECTIONS", 10)
    async with serving() as port:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(9)]
        for _, writer in held[:8]:
            writer.write(HALF % b"upload")
        other = httpx.AsyncHTTPTransport(local_address="127.0.0.2")
        async with httpx.AsyncClient(transport=other) as client:
            for path in ("", "deadlines", ""):  # kept; the second connection is the tenth
                assert (await client.get(f"http://127.0.0.1:{port}/{path}")).status_code == 200
            third = httpx.AsyncHTTPTransport(local_address="127.0.0.3")
            async with httpx.AsyncClient(transport=third) as another:
                assert (await another.get(f"http://127.0.0.1:{port}/")).text == "ok"
            assert (await client.get(f"http://127.0.0.1:{port}/")).text == "ok"
        with contextlib.suppress(ConnectionResetError):
            assert await held[8][0].read() == b""
        assert not any(reader.at_eof() for reader, _ in held[:8])
        for _, writer in held:
            writer.close()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("::1", "::ffff:192.0.2.2", False),
    ],
)
def test_connections_are_of_one_who_has_their_address_or_their_network_in_ipv6(one, other, same):
    named = [_whose(SimpleNamespace(client=(host, 1))) for host in (one, other)]
    assert (named[0] == named[1]) is same


def test_connections_without_an_address_are_all_of_one():
    assert _whose(SimpleNamespace(client=None)) == ""
