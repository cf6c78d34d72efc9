"""`crisis search`, which asks the dashboard."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from models.errors import ServiceError
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
