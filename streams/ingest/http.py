"""`crisis ingest http`: POST /posts, NDJSON or a JSON array, behind a bearer token for each source.

The token says whose posts these are (streams/ingest/tokens.py): ids and `source` are the server's to set.

202 comes only once the broker has acknowledged every post of the request. Under load it answers 429 and 413 instead of
filling its memory: what it holds is bounded by `held_bytes`. Single posts are not judged here; a bad one becomes a
counted reject further on, like from any other source.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
import time
from collections import deque
from dataclasses import dataclass

import click
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from models.errors import ConfigError, ServiceError
from models.posts import split_lines
from streams.config import Settings
from streams.config.secrets import in_brief, redacted
from streams.ingest.lines import SEE_REJECTED, head_of, key_of, oversize_marker
from streams.ingest.presence import present
from streams.ingest.stopping import SIGNALS
from streams.ingest.tokens import Sources, owned
from streams.ingest.writer import FrameWriter, open_writer
from streams.web.deadline import DeadlineProtocol
from streams.web.exposure import LOOPBACK, asked_by

__all__ = ["http"]

log = logging.getLogger(__name__)

YIELD_LINES = 1000  # some 10 ms of handing over
SMALL_BYTES = 4096  # of a body that is read at once, in 10 ms at the worst: a thread costs 150 us


@dataclass(frozen=True)
class HttpConfig:
    """What one server takes on."""

    body_bytes: int = 8 << 20  # of one request: some 20,000 posts
    lines: int = 50_000  # of one request: 8 MB may be four million, each to be read as if it were a post
    held_bytes: int = 64 << 20  # of all requests whose posts are not yet acknowledged
    read_s: float = 300.0  # for a client to send its body, at 30 kB/s; 10 s of silence end it (streams/web/deadline.py)
    acknowledge_s: float = 130.0  # beyond the writer's own delivery timeout
    wrong_tokens: int = 30  # a minute that are answered and logged; more get 429


class _Refused(Exception):
    def __init__(self, status: int, reason: str, **headers: str) -> None:
        super().__init__(reason)
        self.status, self.reason, self.headers = status, reason, headers


class PostServer:
    """Takes requests into a writer; `app` is the ASGI application."""

    def __init__(
        self,
        writer: FrameWriter,
        sources: Sources,
        config: HttpConfig = HttpConfig(),
        allowed_hosts: str = LOOPBACK,
    ) -> None:
        self._writer, self._sources, self._config = writer, sources, config
        self._held_bytes = 0
        self._reading = asyncio.Lock()  # one body at a time: read, one may need many times its bytes
        self._wrong_tokens: deque[float] = deque(maxlen=config.wrong_tokens)
        routes = [Route("/posts", self.posts, methods=["POST"])]
        routes += [Route(path, self.healthz) for path in ("/healthz", "/livez")]
        self.app = Starlette(routes=routes, middleware=[asked_by(allowed_hosts)])

    async def healthz(self, request: Request) -> Response:
        """503 once the broker failed: the process ends, and its supervisor starts it again."""
        error = self._writer.error
        return JSONResponse({"ok": error is None, "reason": redacted(error or "")}, 503 if error else 200)

    async def posts(self, request: Request) -> Response:
        """POST /posts."""
        held = 0
        try:
            source = self._authorise(request)
            body = bytearray()
            async with asyncio.timeout(self._config.read_s):
                async for chunk in self._stream(request):
                    body += chunk
                    held += len(chunk)
                    self._held_bytes += len(chunk)
                    if self._held_bytes > self._config.held_bytes or self._writer.crowded:
                        raise _Refused(429, "too many posts are waiting for the broker", **{"Retry-After": "1"})
            lines = await self._lines_of(bytes(body), source)
            await self._deliver(lines)
        except _Refused as refused:
            return JSONResponse({"reason": refused.reason}, refused.status, headers=refused.headers)
        except TimeoutError:
            return JSONResponse({"reason": "the request or the broker took too long: send it again"}, 503)
        except ServiceError as error:
            return JSONResponse({"reason": redacted(error)}, 503)
        except ClientDisconnect:
            return Response(status_code=400)
        finally:
            self._held_bytes -= held
        return JSONResponse({"posts": len(lines)}, 202)

    def _authorise(self, request: Request) -> str:
        """The source whose token came along. A right token is never refused for the wrong ones of others."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        source = self._sources.of(token.strip()) if scheme.lower() == "bearer" else None
        if source is None:
            now, told = time.monotonic(), self._wrong_tokens
            many = len(told) == told.maxlen and now - told[0] < 60.0
            if not many:
                told.append(now)
                log.warning("a request from %s without a token of ours", request.client.host if request.client else "?")
                raise _Refused(401, "send 'Authorization: Bearer <token>'", **{"WWW-Authenticate": "Bearer"})
            raise _Refused(429, "too many requests without a token of ours", **{"Retry-After": "60"})
        return source

    async def _stream(self, request: Request):
        too_large = f"at most {self._config.body_bytes} bytes a request: send the posts in several"
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > self._config.body_bytes:
            raise _Refused(413, too_large)
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise _Refused(415, "send the posts uncompressed")
        size = 0
        async for chunk in request.stream():
            size += len(chunk)
            if size > self._config.body_bytes:
                raise _Refused(413, too_large)
            yield chunk

    async def _lines_of(self, body: bytes, source: str) -> list[bytes]:
        if len(body) <= SMALL_BYTES:
            return self._read(body, source)
        async with self._reading:
            return await asyncio.to_thread(self._read, body, source)

    def _read(self, body: bytes, source: str) -> list[bytes]:
        """The posts of a body as those of that source; what no broker would take is not read, which may take seconds.

        Raises _Refused if it holds none, or too many.
        """
        longest = self._writer.config.line_bytes
        return [
            owned(line, source) if len(line) <= longest else oversize_marker(line, len(line))
            for line in _lines(body, self._config.lines)
        ]

    async def _deliver(self, lines: list[bytes]) -> None:
        """Returns when the broker has acknowledged all lines."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def finish(error: ServiceError | None) -> None:
            if not done.done():  # the client may be gone
                done.set_exception(error) if error else done.set_result(None)

        def then(error: ServiceError | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the server is stopping
                loop.call_soon_threadsafe(finish, error)

        for number, line in enumerate(lines):
            last = number == len(lines) - 1
            await self._writer.put(line, key=key_of(head_of(line)), then=then if last else None)
            if number % YIELD_LINES == YIELD_LINES - 1:
                await asyncio.sleep(0)  # others are answered meanwhile
        async with asyncio.timeout(self._config.acknowledge_s):
            await done


def _lines(body: bytes, most: int) -> list[bytes]:
    """The posts of a body, one line each. Raises _Refused if it holds none, or more than `most`, blank ones too."""
    too_many = f"at most {most} posts a request: send them in several"
    body = body.removeprefix(b"\xef\xbb\xbf")
    start = body.lstrip()[:1]
    if start == b"[":
        try:
            elements = msgspec.json.decode(body, type=list[msgspec.Raw])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise _Refused(400, f"not a JSON array of posts: {error}") from error
        if len(elements) > most:
            raise _Refused(413, too_many)
        lines = [_on_one_line(bytes(e)) for e in elements]
    elif start in (b"{", b""):
        if body.count(b"\n") > most:
            raise _Refused(413, too_many)
        lines = [_on_one_line(body)] if _is_one_object(body) else split_lines(body)
    else:
        raise _Refused(400, "a body is NDJSON (one post per line) or a JSON array of posts")
    if not lines:
        raise _Refused(400, "no posts in the body")
    return lines


def _on_one_line(element: bytes) -> bytes:
    # Line ends stand only between the tokens of JSON: inside a string they would be escaped.
    return element.strip().replace(b"\n", b" ").replace(b"\r", b" ")


def _is_one_object(body: bytes) -> bool:
    """One post over several lines, as people write JSON by hand; NDJSON has something after its first object."""
    try:
        msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _listening(host: str, port: int) -> list[socket.socket]:
    """Sockets that take connections already. Raises ConfigError where another process has the port, or none may."""
    opened: list[socket.socket] = []
    try:
        for family, *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE):
            try:
                opened.append(socket.create_server(address, family=family))
            except OSError as error:
                if error.errno != errno.EADDRNOTAVAIL:  # localhost is ::1 too, on machines without IPv6
                    raise
        if not opened:
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
    except OSError as error:
        for one in opened:
            one.close()
        why = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        raise ConfigError(
            f"cannot listen on {host}:{port} ({why}): choose another with --port, or CRISIS_INGEST__HTTP_PORT"
        ) from error
    return opened


async def _serve(config: uvicorn.Config, sockets: list[socket.socket], settings: Settings, writer: FrameWriter) -> None:
    """Until a signal or the writer's failure; requests that are under way get their answer. uvicorn itself would die
    of the signal in the end. Raises ServiceError where the writer failed: it takes no post any more.
    """
    loop, server = asyncio.get_running_loop(), uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign]
    for number in SIGNALS:
        loop.add_signal_handler(number, setattr, server, "should_exit", True)

    def end(_: ServiceError | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the server has ended
            loop.call_soon_threadsafe(setattr, server, "should_exit", True)

    writer.when_failed(end)
    async with present(settings, "http", lambda: in_brief(writer.error or "")):
        await server.serve(sockets)
        if writer.error is not None:
            raise writer.error


@click.command()
@click.option("--host", help="Where to listen; default: the settings' ingest.http_host.")
@click.option("--port", type=click.IntRange(0, 65535), help="Default: the settings' ingest.http_port.")
@click.option(
    "--token-file", type=click.Path(dir_okay=False), help="One 'source token' a line; else CRISIS_HTTP_TOKEN."
)
@click.pass_obj
def http(settings: Settings, host: str | None, port: int | None, token_file: str | None) -> None:
    """Serve POST /posts: NDJSON (one post per line) or a JSON array, with `Authorization: Bearer TOKEN`.

    Each token belongs to a source: ids get its name in front, and nobody deletes or edits another source's posts.
    A token that stands alone is the source "http".

    202: every post is on the broker. 400: no posts. 401: token. 413: too large. 429: busy, come again. 503: no broker.
    A broker that is away for longer than the settings' ingest.writer.delivery_timeout_s ends the server with status 1.
    Who asks by a name that is not in the settings' ingest.http_allowed_hosts gets 400.
    """
    sources = Sources.read(token_file)
    host = host or settings.ingest.http_host
    port = settings.ingest.http_port if port is None else port
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(one) for one in _listening(host, port)]
        writer = stack.enter_context(open_writer(settings))
        click.echo(f"POST posts to http://{host}:{sockets[0].getsockname()[1]}/posts", err=True)
        app = PostServer(writer, sources, allowed_hosts=settings.ingest.http_allowed_hosts).app
        config = uvicorn.Config(
            app, host, port, log_level="warning", timeout_graceful_shutdown=10, http=DeadlineProtocol
        )
        asyncio.run(_serve(config, sockets, settings, writer))
    click.echo(f"{writer.counts.sent:,} posts acknowledged by the broker; {SEE_REJECTED}", err=True)
