"""Who may do what at the page, what is written down of it, and that nothing listens to strangers without a token."""

from __future__ import annotations

import json

import httpx
import pytest
from click.testing import CliRunner

from models.errors import ConfigError
from models.pseudonyms import Link
from streams.commands.token import token
from streams.config import load_settings
from streams.dashboard.access import People, Person, hash_of
from streams.dashboard.app import create_dashboard
from streams.view.connect import connect
from streams.view.live import LiveView
from streams.view.vault import Vault
from streams.worker.health import Heart, health_app, serve_health
from tests.dashboard.invented import invent
from tests.dashboard.serving import settings_for, visiting
from tests.waiting import until

LINK = Link("~a/1", "bsky:did:plc:a/1", "https://bsky.app/profile/a/post/1")
ROLES = ("look", "label", "administer")


@pytest.fixture
async def page(tmp_path, redis_url):
    """ask(role, path) → the answer; with an alert on the board and a link in the vault."""
    file = tmp_path / "tokens"
    given = {
        role: CliRunner().invoke(token, [f"p-{role}", "--role", role, "--file", str(file)], obj=load_settings())
        for role in ROLES
    }
    settings = settings_for(redis_url, token_file=file, access_log=tmp_path / "access.log")
    private = {"privacy": settings.privacy.model_copy(update={"vault_url": redis_url.removesuffix("/0") + "/1"})}
    settings = settings.model_copy(update=private)
    redis, vault = connect(settings.redis), Vault.of(settings)
    await vault.keep([LINK])
    await LiveView(redis, settings).put_alerts([invent(1, at=1.7e9, text="my mother Zeynep is trapped")])
    app = create_dashboard(settings, LiveView(redis, settings), None)
    async with visiting(app) as client:

        async def ask(role: str, path: str, **sent: object) -> httpx.Response:
            bearer = {"Authorization": f"Bearer {given[role].output.strip()}"}
            return await client.request("POST" if sent else "GET", path, headers=bearer, **sent)

        yield ask
    await vault.aclose()
    await redis.aclose()


async def test_who_may_only_look_downloads_nothing_and_is_offered_nothing(page):
    for path in ("/api/alerts.csv", "/api/alerts.geojson"):
        assert [(await page(role, path)).status_code for role in ROLES] == [403, 200, 200]
    offered = ["take-csv" in (await page(role, "/")).text for role in ROLES]
    assert offered == [False, True, True]


async def test_each_role_may_do_what_it_is_for_and_no_more(page):
    said = {"json": {"alert_id": "none", "verdict": "right", "by": "somebody else"}}
    for role, looks, opens, labels, reads in (
        ("look", 200, 403, 403, 403),
        ("label", 200, 303, 400, 403),  # 400: this alert is not on the board
        ("administer", 200, 303, 400, 200),
    ):
        assert (await page(role, "/api/alerts")).status_code == looks
        assert (await page(role, f"/open?post={LINK.post_id}")).status_code == opens
        assert (await page(role, "/api/labels", **said)).status_code == labels
        assert (await page(role, "/api/access")).status_code == reads
        shown = (await page(role, "/")).text  # the page offers "open" to whom it will be opened
        assert ("data-opens" in shown) == (opens == 303) and f'data-person="p-{role}"' in shown


async def test_a_post_is_opened_at_its_platform_and_both_records_say_by_whom(page, tmp_path):
    gone_to = await page("label", f"/open?post={LINK.post_id}")
    assert gone_to.headers["location"] == LINK.url
    assert (await page("label", "/open?post=~unknown/1")).status_code == 404
    await page("look", f"/open?post={LINK.post_id}")
    told = (await page("administer", "/api/access")).json()
    assert [(o["who"], o["post"], o["found"]) for o in told["openings"]] == [
        ("p-label", "~unknown/1", False),
        ("p-label", LINK.post_id, True),
    ]
    newest = [(r["who"], r["status"]) for r in told["requests"]]
    assert newest == [("p-look", 403), ("p-label", 404), ("p-label", 303)]


async def test_the_record_says_who_looked_at_what_and_holds_no_text(page, tmp_path):
    await page("look", "/api/alerts?q=Zeynep&category=water&n=5")
    await page("look", "/api/search?text=Zeynep")
    lines = [json.loads(line) for line in (tmp_path / "access.log").read_text().splitlines()]
    assert [(e["who"], e["role"], e["did"], e["asked"]) for e in lines][:1] == [
        ("p-look", "look", "GET /api/alerts", {"category": "water", "n": "5"})
    ]
    assert "Zeynep" not in (tmp_path / "access.log").read_text()
    assert (tmp_path / "access.log").stat().st_mode & 0o077 == 0


async def test_a_wrong_token_is_written_down_too(page, tmp_path, redis_url):
    async def recorded() -> list:
        return [e for e in (tmp_path / "access.log").read_text().splitlines() if '"status": 401' in e]

    settings = settings_for(redis_url, token_file=tmp_path / "tokens", access_log=tmp_path / "access.log")
    app = create_dashboard(settings, LiveView(connect(settings.redis), settings), None)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1") as stranger:
        assert (await stranger.get("/api/alerts", headers={"Authorization": "Bearer guess"})).status_code == 401
    assert await until(recorded)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "ops.example"])
def test_neither_page_nor_metrics_listens_beyond_this_machine_without_a_token(redis_url, host):
    settings = settings_for(redis_url, host=host)
    with pytest.raises(ConfigError, match="give it a token"):
        create_dashboard(settings, LiveView(connect(settings.redis), settings), None)
    with pytest.raises(ConfigError, match="metrics_token_file"):
        serve_health(host, 0, Heart())


@pytest.mark.parametrize(
    "given, host, status",
    [
        (None, "127.0.0.1", 200),
        (None, "attacker.example", 400),
        ("a token", "127.0.0.1", 200),
        ("a token", "attacker.example", 400),
        ("wrong", "localhost", 401),
    ],
)
async def test_metrics_answer_who_has_the_token_or_asks_on_this_machine(given, host, status):
    app = health_app(Heart(), "a token" if given else None)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=f"http://{host}") as client:
        answer = await client.get("/metrics", headers={"Authorization": f"Bearer {given}"} if given else {})
        assert answer.status_code == status


@pytest.mark.parametrize(
    "lines",
    [
        "ada look short",
        "ada boss sixteen-letters-and\nbob look sixteen-letters-too",
        "ada look " + "x" * 20 + "\nada label " + "y" * 20,
        f"ada admin sha256:{'5' * 64}",
        f"ada b look sha256:{'5' * 64}",
        "a passphrase of several words",
    ],
)
def test_a_token_file_with_a_bad_line_lets_nobody_in(tmp_path, lines):
    (tmp_path / "tokens").write_text(lines)
    with pytest.raises(ConfigError):
        People.read(tmp_path / "tokens")


def test_a_file_of_one_word_lets_whoever_has_it_do_everything(tmp_path):
    word = "sixteen-letters-and"
    (tmp_path / "tokens").write_text(f"{word}\n# whoever\n")
    assert People.read(tmp_path / "tokens").of(word) == Person("anybody", "administer", hash_of(word))


@pytest.mark.parametrize("name", ["ada b", "Ada", "", "#ada", "ada\tb", "-ada", "a" * 32])
@pytest.mark.parametrize("before", [None, "", "bob look " + "x" * 20 + "\n"])
def test_a_name_that_no_line_can_hold_is_refused_and_nothing_is_written(tmp_path, name, before):
    file = tmp_path / "tokens"
    if before is not None:
        file.write_text(before)
    made = CliRunner().invoke(token, ["--file", str(file), "--", name], obj=load_settings())
    assert isinstance(made.exception, ConfigError) and "a-z, 0-9, - and _" in str(made.exception) and not made.output
    assert [f.read_text() for f in tmp_path.iterdir()] == ([] if before is None else [before])


def test_the_token_is_printed_once_and_the_file_keeps_its_hash(tmp_path):
    file = tmp_path / "tokens"
    made = CliRunner().invoke(token, ["ada", "--file", str(file)], obj=load_settings()).output.strip()
    assert (
        made not in file.read_text() and People.read(file).of(made).name == "ada" and file.stat().st_mode & 0o077 == 0
    )
    again = CliRunner().invoke(token, ["ada", "--file", str(file)], obj=load_settings())
    assert isinstance(again.exception, ConfigError) and len(file.read_text().splitlines()) == 1
