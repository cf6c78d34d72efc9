"""The machine's Chromium, headless, driven by Playwright (which brings no browser of its own here)."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator

from playwright.sync_api import Browser, expect, sync_playwright

from tests.services.needs import Missing
from tests.waiting import PATIENCE_S

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


def find_chromium() -> str:
    """Raises Missing."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if not found:
        raise Missing("Chromium: apt-get install chromium")
    return found


@contextlib.contextmanager
def running_browser() -> Iterator[Browser]:
    """Raises Missing."""
    executable = find_chromium()
    expect.set_options(timeout=1000 * PATIENCE_S)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS, timeout=1000 * PATIENCE_S)
        try:
            yield browser
        finally:
            browser.close()
