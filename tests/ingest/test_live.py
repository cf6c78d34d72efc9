"""A live source that is not connected says why, and not more than a page may say."""

from __future__ import annotations

import asyncio

import pytest

from streams.ingest.live import Disconnected, ReconnectConfig, keep_connected


async def test_of_what_a_server_worded_its_first_line_is_told_without_addresses():
    told: asyncio.Queue[str] = asyncio.Queue()

    async def refused() -> None:
        raise Disconnected("m.example: error '429' for 'https://me:hunter2@m.example/a?token=b'\n<script>")

    running = asyncio.create_task(keep_connected(refused, ReconnectConfig(), told.put_nowait))
    assert await told.get() == "m.example: error '429' for '…'"
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
