"""The page in a browser, and what every test of it looks at."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
from playwright.sync_api import Browser, Page, expect

from tests.dashboard.serving import Served
from tests.waiting import PATIENCE_S, wait_until


def until_open(server: Served, total: int) -> None:
    """Wait until the dashboard has read that many open alerts."""

    def open_now() -> int:
        return httpx.get(f"{server.url}/api/alerts", timeout=PATIENCE_S).json()["total"]

    wait_until(lambda: open_now() == total, open_now)


def opened(browser: Browser, server: Served, viewport: dict, path: str = "/", **options: object) -> Iterator[Page]:
    """A page that fails the test on any script error, refused resource or dialog."""
    context = browser.new_context(viewport=viewport, **options)
    context.set_default_timeout(1000 * PATIENCE_S)
    made, wrong = context.new_page(), []
    made.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    made.on(
        "console", lambda line: wrong.append(f"console: {line.text}") if line.type in ("error", "warning") else None
    )
    made.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    made.goto(f"{server.url}{path}")
    expect(made.locator("#link")).to_have_attribute("data-state", "live")
    yield made
    context.close()
    assert not wrong


def cards(page: Page):
    return page.locator("#list > .card")


def address(page: Page) -> str:
    return page.evaluate("location.search")
