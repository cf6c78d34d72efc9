"""The body of a request that is small, such as a form: within so many bytes, and within a time however it drips."""

from __future__ import annotations

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

__all__ = ["small_body"]

WHOLE_S = 10.0  # for all of it: a few kB


async def small_body(request: Request, most_bytes: int) -> bytes | None:
    """All of it, or None where it is longer than `most_bytes`.

    Raises HTTPException 408 where it takes longer than WHOLE_S, 400 where who sends it is gone.
    """
    body = b""
    try:
        async with asyncio.timeout(WHOLE_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most_bytes:
                    return None
    except TimeoutError:
        told = f"the body took longer than {WHOLE_S:g} s: send it again\n"
        raise HTTPException(408, told, {"Connection": "close"}) from None
    except ClientDisconnect:
        raise HTTPException(400, "the body ended too early\n") from None
    return body
