"""`crisis search`, which asks the dashboard."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from models.errors import ConfigError, ServiceError
from streams.commands.open import open_post
from streams.commands.search import search as command
from streams.config import load_settings
from streams.search.client import base_url
from tests.dashboard.serving import frame, served, settings_for
from tests.search.sending import POSTS, post


def run(url: str, *args: str):
    return CliRunner().invoke(command, [*args, "--url", url], obj=load_settings())


def test_the_command_asks_the_dashboard(redis_url):
    with served(settings_for(redis_url), [frame([*POSTS, post("evil", "trapped \x1b[31mred\u202e")])]) as server:
        plain = run(server.url, "trapped under a roof", "-k", "2")
        assert (
            plain.exit_code == 0
            and "people trapped under a collapsed roof" in plain.stdout
            and "en · sms" in plain.stdout
        )
        lines = run(server.url, "trapped", "--format", "json", "--lang", "fr").stdout.splitlines()
        assert [json.loads(line)["id"] for line in lines] == ["toit"]
        assert (
            "\x1b" not in run(server.url, "red").stdout
            and "\u202e" not in run(server.url, "red", "--format", "json").stdout
        )
        assert "sun" not in run(server.url, "morning", "--last", "1h", "--format", "json").stdout
        assert "No post found" in run(server.url, "x", "--lang", "zz").stdout


def test_the_command_says_what_to_start_when_nobody_answers():
    result = run("http://127.0.0.1:9", "water")
    assert isinstance(result.exception, ServiceError) and "crisis dashboard" in str(result.exception)


def test_the_command_says_when_search_is_off(redis_url):
    with served(settings_for(redis_url)) as server:
        assert "without search" in str(run(server.url, "water").exception)


def test_a_token_is_sent_along_and_a_missing_one_explained(redis_url, tmp_path):
    (tmp_path / "token").write_text("a-secret-of-some-length")
    settings = settings_for(redis_url, token_file=str(tmp_path / "token"))
    with served(settings, [frame(POSTS)]) as server:
        assert "set CRISIS_DASHBOARD_TOKEN" in str(run(server.url, "water").exception)
        result = CliRunner().invoke(command, ["trapped", "--url", server.url], obj=settings)
        assert result.exit_code == 0 and "collapsed roof" in result.stdout


ADA = "ada administer a-token-of-ada-that-is-long"
BOB = "bob label a-token-of-bob-that-is-long"


@pytest.mark.parametrize(
    "tokens",
    [
        f"{ADA}\n{BOB}\n",
        f"# of the shift\n{ADA}\n",
        f"#\n{ADA}\n",
        "sha256:" + "0" * 64,
        f"ada label sha256:{'0' * 64}",
    ],
)
def test_a_token_file_that_does_not_say_who_asks_gives_nobody_s_token_and_the_error_says_what_to_set(tmp_path, tokens):
    (tmp_path / "tokens").write_text(tokens)
    settings = load_settings(dashboard={"token_file": str(tmp_path / "tokens")})
    for asking in (command, open_post):
        with pytest.raises(ConfigError, match=f"{tmp_path}/tokens .* CRISIS_DASHBOARD_TOKEN"):
            CliRunner().invoke(asking, ["x", "--url", "http://127.0.0.1:9"], obj=settings, catch_exceptions=False)


def test_who_asks_with_a_token_of_their_own_stands_on_the_record_whoever_stands_first_in_the_file(
    redis_url, tmp_path, monkeypatch
):
    (tmp_path / "tokens").write_text(f"{ADA}\n{BOB}\n")
    settings = settings_for(redis_url, token_file=str(tmp_path / "tokens"), access_log=str(tmp_path / "access.log"))
    monkeypatch.setenv("CRISIS_DASHBOARD_TOKEN", BOB.split()[-1])
    with served(settings, [frame(POSTS)]) as server:
        result = CliRunner().invoke(command, ["trapped", "--url", server.url], obj=settings)
    assert result.exit_code == 0 and "collapsed roof" in result.stdout
    entries = [json.loads(line) for line in (tmp_path / "access.log").read_text().splitlines()]
    assert {(one["who"], one["role"]) for one in entries} == {("bob", "label")}


@pytest.mark.parametrize(
    "host, expected",
    [
        ("127.0.0.1", "http://127.0.0.1:8080"),
        ("0.0.0.0", "http://127.0.0.1:8080"),
        ("::", "http://[::1]:8080"),
        ("::1", "http://[::1]:8080"),
        ("ops.example", "http://ops.example:8080"),
    ],
)
def test_the_address_of_the_dashboard_follows_the_settings(host, expected):
    assert base_url(load_settings(dashboard={"host": host})) == expected
