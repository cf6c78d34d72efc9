"""With a token set, nobody reads anything without it."""

from __future__ import annotations

import asyncio
import time

import httpx
import pytest

from models.errors import ConfigError, ServiceError
from streams.dashboard.access import Person, hash_of
from streams.dashboard.app import create_dashboard
from streams.dashboard.headers import COOKIE, SESSION_S, session_of
from streams.releases.release import Release
from streams.search.follower import Searcher
from streams.view.connect import connect
from streams.view.live import LiveView
from streams.web import body
from tests.dashboard.serving import settings_for, visiting

TOKEN = "correct-horse-battery-staple"
ME = Person("anybody", "administer", hash_of(TOKEN))


@pytest.fixture
async def client(tmp_path, redis_url):
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    settings = settings_for(redis_url, token_file=str(tmp_path / "token"), allowed_hosts="ops.example")
    redis = connect(settings.redis)
    app = create_dashboard(settings, LiveView(redis, settings), None)
    async with visiting(app, "http://ops.example") as client:
        yield client
    await redis.aclose()


@pytest.mark.parametrize(
    "path", ["/api/state", "/api/alerts", "/api/clusters", "/api/search?text=x", "/events", "/", "/nowhere", "/static"]
)
async def test_without_the_token_there_is_nothing(client, path):
    answer = await client.get(path)
    assert answer.status_code == 401 and "Bearer" in answer.headers["www-authenticate"]


@pytest.mark.parametrize("value", [f"Bearer {TOKEN}x", "Bearer ", f"Basic {TOKEN}", TOKEN, "Bearer \u00e9"])
async def test_a_wrong_token_is_no_token(client, value):
    assert (await client.get("/api/state", headers={"Authorization": value.encode("latin-1")})).status_code == 401


async def test_a_script_sends_the_token_as_bearer(client):
    answer = await client.get("/api/alerts", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200 and answer.json()["alerts"] == []


async def test_health_and_style_are_open(client):
    assert (await client.get("/livez")).status_code == 200
    assert (await client.get("/healthz")).status_code == 503  # no worker runs
    assert 'crisis_health{level="down"} 1.0' in (await client.get("/metrics")).text
    assert (await client.get("/static/page.css")).status_code == 200


async def test_a_browser_is_sent_to_the_login_page_and_back(client):
    sent = await client.get("/?kind=need&q=a%20b", headers={"accept": "text/html"})
    assert sent.status_code == 303 and sent.headers["location"] == "/login?next=%2F%3Fkind%3Dneed%26q%3Da%2520b"
    form = await client.get(sent.headers["location"])
    assert 'value="/?kind=need&amp;q=a%20b"' in form.text
    back = await client.post("/login", data={"token": TOKEN, "next": "/?kind=need&q=a%20b"})
    assert back.status_code == 303 and back.headers["location"] == "/?kind=need&q=a%20b"
    cookie = back.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and TOKEN not in back.headers["set-cookie"]
    assert (await client.get("/api/state")).status_code == 200  # the client keeps the cookie


async def test_a_wrong_login_gets_no_cookie(client):
    answer = await client.post("/login", data={"token": "guess"})
    assert answer.status_code == 403 and "set-cookie" not in answer.headers and "not the token" in answer.text


@pytest.mark.parametrize(
    "back", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "", "/\r\nX: y"]
)
async def test_login_never_leads_to_another_site(client, back):
    answer = await client.post("/login", data={"token": TOKEN, "next": back})
    assert answer.headers["location"] == "/"


async def test_the_way_back_is_escaped_in_the_form(client):
    form = await client.get("/login", params={"next": '"><script>alert(1)</script>'})
    assert "<script>" not in form.text


async def test_a_flood_of_a_form_is_refused(client):
    assert (await client.post("/login", content=b"token=" + b"x" * 100_000)).status_code == 403


@pytest.mark.parametrize("path", ["/login", "/api/labels"])
async def test_half_a_body_is_waited_for_no_longer_than_a_form_takes(client, monkeypatch, path):
    async def slowly():
        yield b"token="
        await asyncio.Event().wait()

    monkeypatch.setattr(body, "WHOLE_S", 0.1)
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    answer = await client.post(path, content=slowly(), headers=headers)
    assert answer.status_code == 408 and answer.headers["connection"] == "close"


async def test_no_answer_shows_a_secret_of_an_address(redis_url):
    def fails(*_):
        raise ServiceError("no registry at redis://:it's-hunter2@127.0.0.1:1/0")

    settings = settings_for(redis_url)
    redis, searcher = connect(settings.redis), Searcher(settings, load=fails)
    app = create_dashboard(settings, LiveView(redis, settings), searcher)
    searcher._message = await searcher._move(Release())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1") as client:
        answer = await client.get("/api/search?text=water")
    assert answer.status_code == 503 and "no registry at redis://127.0.0.1:1/0" in answer.text
    assert "hunter2" not in answer.text + searcher.status.message
    await searcher.stop()
    await redis.aclose()


async def test_the_cookie_of_an_older_token_is_worth_nothing(client):
    client.cookies.set(COOKIE, session_of(Person("anybody", "administer", hash_of("the old token")), time.time() + 60))
    assert (await client.get("/api/state")).status_code == 401


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
async def test_a_page_of_somebody_else_reaches_nothing_by_giving_its_name_our_address(redis_url, tmp_path, host):
    (tmp_path / "token").write_text(TOKEN)
    settings = settings_for(redis_url, host=host, token_file=tmp_path / "token")
    redis = connect(settings.redis)
    app = create_dashboard(settings, LiveView(redis, settings), None)
    for name, status in (("attacker.example:8080", 400), ("localhost:8080", 200), ("127.0.0.1:8080", 200)):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=f"http://{name}") as client:
            assert (await client.get("/livez")).status_code == status
    await redis.aclose()


@pytest.mark.parametrize("content", ["\nreal-secret-of-many-letters\n", "a\n", "   \n"])
def test_a_token_file_that_is_blank_or_short_stops_the_dashboard_rather_than_open_it(tmp_path, redis_url, content):
    (tmp_path / "token").write_text(content)
    settings = settings_for(redis_url, token_file=str(tmp_path / "token"))
    with pytest.raises(ConfigError, match="16 or more"):
        create_dashboard(settings, LiveView(connect(settings.redis), settings), None)


async def test_readyz_says_what_the_page_says_to_whoever_asks(client):
    answer = await client.get("/readyz")
    assert answer.status_code == 503 and "does not answer" in answer.text  # nobody was asked yet


async def test_a_session_ends_with_the_shift_also_for_who_kept_or_changed_the_cookie(client):
    client.cookies.set(COOKIE, session_of(ME, time.time() + 60))
    assert (await client.get("/api/state")).status_code == 200
    forged = session_of(ME, 1e9).replace("1000000000", "9999999999")
    for stale in (session_of(ME, time.time() - 1), forged, "9.", "x"):
        client.cookies.set(COOKIE, stale)
        assert (await client.get("/api/state")).status_code == 401


@pytest.mark.parametrize("proto", ["http", "https"])
async def test_behind_a_proxy_with_tls_the_cookie_travels_by_tls_only(client, proto):
    answer = await client.post("/login", data={"token": TOKEN}, headers={"X-Forwarded-Proto": proto})
    cookie = answer.headers["set-cookie"]
    assert ("Secure" in cookie) == (proto == "https") and f"Max-Age={SESSION_S}" in cookie


async def test_who_logs_out_needs_the_token_again_and_no_link_logs_anybody_out(client):
    await client.post("/login", data={"token": TOKEN})
    assert (await client.get("/logout")).status_code == 405
    gone = await client.post("/logout")
    assert gone.headers["location"] == "/login" and (await client.get("/api/state")).status_code == 401
