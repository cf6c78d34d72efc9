"""A dashboard with forty alerts, and its page on a wide screen."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from models.records import Post
from tests.dashboard.browsing import opened, until_open
from tests.dashboard.invented import several
from tests.dashboard.seeding import fill
from tests.dashboard.serving import Served, frame, served, settings_for

POSTS = [
    Post("s1", "people trapped under a collapsed roof", time.time(), time.time(), "en", "sms"),
    Post("s2", "what a lovely sunny morning", time.time(), time.time(), "en", "sms"),
]


@pytest.fixture
def server(redis_url: str) -> Iterator[Served]:
    with served(settings_for(redis_url), [frame(POSTS)]) as running:
        now = time.time()
        running.call(lambda view: fill(view, several(40, now), now))
        until_open(running, 40)
        yield running


@pytest.fixture
def page(browser: Browser, server: Served) -> Iterator[Page]:
    yield from opened(browser, server, {"width": 1440, "height": 900})
