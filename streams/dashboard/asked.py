"""What a request asks, read with care, and the answer as JSON or as a stream of events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TypeVar

import anyio
import msgspec
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from models.areas import area_of
from models.errors import LabelError, QueryError
from models.undecodable import UNDECODABLE
from streams.dashboard.access import Role
from streams.dashboard.feed import Event
from streams.dashboard.filters import Filter
from streams.dashboard.headers import own_page, person_of
from streams.dashboard.stats import encode
from streams.web.body import small_body

__all__ = ["filter_of", "json_of", "number", "require", "sent", "streamed"]

T = TypeVar("T")

LONGEST_LABEL = 8192  # bytes of what a page sends


def require(request: Request, role: Role) -> None:
    """Raises HTTPException 403 unless who asks has this role, or a greater one."""
    if not (person := person_of(request)).may(role):
        raise HTTPException(
            403, f"{person.name} may {person.role}, this needs '{role}': ask whoever makes the tokens\n"
        )


def streamed(found: AsyncGenerator[Event]) -> EventSourceResponse:
    """Server-sent events, until the viewer goes or the server stops."""
    closing = anyio.Event()  # set when the server stops: the stream then ends instead of being cut

    async def stream() -> AsyncIterator[ServerSentEvent]:
        stop = asyncio.create_task(closing.wait())
        try:
            async with contextlib.aclosing(found) as events:
                while (event := await _next(events, stop)) is not None:
                    yield ServerSentEvent(event.data.decode(), event=event.name, id=event.id)
        finally:
            stop.cancel()

    return EventSourceResponse(
        stream(),
        ping=15,
        send_timeout=30,
        headers={"X-Accel-Buffering": "no"},
        shutdown_event=closing,
        shutdown_grace_period=1.0,
    )


async def _next(events: AsyncIterator[Event], stop: asyncio.Task) -> Event | None:
    """The next event, or None once `stop` is done."""
    coming = asyncio.ensure_future(anext(events))
    try:
        await asyncio.wait({coming, stop}, return_when=asyncio.FIRST_COMPLETED)
        return None if stop.done() else await coming
    finally:
        coming.cancel()
        await asyncio.wait({coming})


async def sent(request: Request, kind: type[T]) -> T:
    """What our own page, or a program, sent.

    Raises LabelError, or HTTPException: 403 for anybody else's page, 408 where it does not come in time.
    """
    if not own_page(request):
        raise HTTPException(403, "send JSON (Content-Type: application/json) from the dashboard's own page\n")
    body = await small_body(request, LONGEST_LABEL)
    if body is None:
        raise LabelError(f"at most {LONGEST_LABEL} bytes")
    try:
        return msgspec.json.decode(body, type=kind)
    except UNDECODABLE as error:
        raise LabelError(str(error)) from error


async def filter_of(request: Request) -> Filter:
    """The filter that a request asks for. Raises QueryError where its area is none."""
    wanted = Filter.of(request.query_params)
    if wanted.area and isinstance(wrong := await asyncio.to_thread(area_of, wanted.area), str):
        raise QueryError(wrong)
    return wanted


def json_of(record: object) -> Response:
    return Response(encode(record), media_type="application/json")


def number(request: Request, name: str, default: int, most: int) -> int:
    """A whole number from the query, kept within 0..most; nonsense reads as the default."""
    try:
        return max(0, min(most, int(float(request.query_params.get(name, default)))))
    except (ValueError, OverflowError):
        return default
