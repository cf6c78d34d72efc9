"""A stream of events is packed, and every event can be read as soon as it was sent."""

import asyncio
import zlib

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from streams.web.gzipped import Gzipped

EVENTS = [b'event: stats\r\ndata: {"at":%d,"open":"%s"}\r\n\r\n' % (n, b"a long table " * 300) for n in range(20)]


def streaming(events):
    async def stream():
        for event in events:
            yield event

    return Gzipped(StreamingResponse(stream(), media_type="text/event-stream"))


async def sent(answer, **headers) -> list[dict]:
    """The messages of an answer."""
    found = []

    async def send(message):
        await asyncio.sleep(0)
        found.append(message)

    async def receive():
        await asyncio.Event().wait()

    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "GET", "headers": named, "asgi": {"spec_version": "2.4"}}
    await answer(scope, receive, send)
    return found


async def test_each_event_can_be_read_before_the_next_one_is_sent():
    start, *bodies = await sent(streaming(EVENTS), accept_encoding="deflate, gzip")
    assert dict(start["headers"])[b"content-encoding"] == b"gzip"
    reader = zlib.decompressobj(31)
    assert [reader.decompress(body["body"]) for body in bodies] == [*EVENTS, b""]
    assert reader.eof and not bodies[-1]["more_body"]


async def test_an_event_like_the_one_before_it_is_small():
    _, *bodies = await sent(streaming(EVENTS), accept_encoding="gzip")
    assert max(len(body["body"]) for body in bodies[1:]) < 100 < len(EVENTS[0])


@pytest.mark.parametrize("headers", [{}, {"accept_encoding": "identity"}, {"accept_encoding": "br"}])
async def test_who_does_not_take_gzip_gets_events_as_they_are(headers):
    start, *bodies = await sent(streaming(EVENTS), **headers)
    assert b"content-encoding" not in dict(start["headers"])
    assert [body["body"] for body in bodies] == [*EVENTS, b""]


async def test_events_of_two_tasks_are_sent_in_the_order_in_which_they_were_packed():
    found = []

    async def answer(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        both = [send({"type": "http.response.body", "body": event, "more_body": True}) for event in EVENTS]
        await asyncio.gather(*both)

    async def slow_at_first(message):
        await asyncio.sleep(0.05 if len(found) == 1 else 0)
        found.append(message.get("body", b""))

    scope = {"type": "http", "method": "GET", "headers": [(b"accept-encoding", b"gzip")]}
    await Gzipped(answer)(scope, None, slow_at_first)
    assert zlib.decompressobj(31).decompress(b"".join(found)) == b"".join(EVENTS)


async def test_it_is_packed_once_where_other_answers_are_packed_too():
    routes = [Route("/events", lambda _: streaming(EVENTS)), Route("/", lambda _: PlainTextResponse("x" * 5000))]
    app = Starlette(routes=routes, middleware=[Middleware(GZipMiddleware, minimum_size=1000)])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        assert (await client.get("/events")).content == b"".join(EVENTS)
        assert (await client.get("/")).text == "x" * 5000
