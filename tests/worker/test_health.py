"""What a worker tells of itself, to whom, and how long it waits for who asks."""

import asyncio
import contextlib

import httpx
import pytest

from streams.web import deadline
from streams.worker.health import Heart, serve_health
from tests.waiting import until

TOKEN = "a token of more than sixteen letters"


@contextlib.asynccontextmanager
async def serving(tmp_path, **options):
    """As in Compose: on every address, with a token."""
    (tmp_path / "token").write_text(TOKEN)
    server = serve_health("0.0.0.0", 0, Heart(), tmp_path / "token", **options)
    await until(lambda: server.started)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True


async def answer(port, path="/metrics", host=None, address="127.0.0.1", token=TOKEN):
    headers = {"Authorization": f"Bearer {token}"} | ({"Host": host} if host is not None else {})
    async with httpx.AsyncClient() as client:
        return (await client.get(f"http://{address}:{port}{path}", headers=headers)).status_code


@pytest.mark.parametrize("path", ["/metrics", "/livez", "/healthz", "/readyz"])
async def test_a_page_of_somebody_else_reads_nothing_though_it_has_the_token(tmp_path, path):
    async with serving(tmp_path) as port:
        for host in ("attacker.example", f"attacker.example:{port}", "127.0.0.1.attacker.example", "127.0.0.9", ""):
            assert await answer(port, path, host) == 400, host
        assert await answer(port, path) != 400


async def test_who_finds_it_by_its_address_may_ask_by_that_one_and_by_no_other(tmp_path):
    """Prometheus in deploy/compose.yaml: `dns_sd_configs` gives it the numbers behind the name of the service."""
    async with serving(tmp_path) as port:
        for host, status in ((None, 200), ("127.0.0.2", 200), (f"127.0.0.3:{port}", 400), ("127.0.0.2:1", 400)):
            assert await answer(port, host=host, address="127.0.0.2") == status, host
        assert await answer(port, address="127.0.0.2", token="guess") == 401


async def test_it_is_asked_by_the_names_that_the_settings_say(tmp_path):
    async with serving(tmp_path, allowed_hosts="worker, ops.example") as port:
        for host, status in (("worker:6066", 200), ("OPS.example", 200), ("localhost", 400)):
            assert await answer(port, host=host) == status, host


async def test_who_asks_for_one_figure_by_its_name_gets_that_one_alone(tmp_path):
    async with serving(tmp_path) as port, httpx.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as client:

        async def told(*names: str) -> set[str]:
            page = (await client.get(f"http://127.0.0.1:{port}/metrics", params={"name[]": names})).text
            return {line.split()[0] for line in page.splitlines() if not line.startswith("#")}

        assert await told("crisis_clusters", "crisis_ready") == {"crisis_clusters", "crisis_ready"}
        assert await told("no_such") == set() and len(await told()) > 20


@pytest.mark.parametrize(
    "half",
    [b"", b"GET /livez HTTP/1.1\r\nHost: x\r\n", b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx"],
)
async def test_half_sent_requests_do_not_keep_its_sockets(tmp_path, monkeypatch, half):
    for limit in ("HEAD_S", "SILENT_S"):
        monkeypatch.setattr(deadline, limit, 0.3)
    monkeypatch.setattr(deadline, "MOST_CONNECTIONS", 20)
    async with serving(tmp_path) as port:
        halves = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
        for _, writer in halves:
            writer.write(half)
        for reader, writer in halves:
            async with asyncio.timeout(20):
                await reader.read()
            writer.close()
        assert await answer(port, "/livez") == 200
