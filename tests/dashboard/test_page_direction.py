"""Which way the page lays out what people wrote: by its language, wherever it stands."""

from __future__ import annotations

import time

import msgspec
import pytest
from playwright.sync_api import expect

from models.moments import rfc3339
from streams.search.client import Hit, HitPage
from tests.dashboard.browsing import cards, opened
from tests.dashboard.invented import clusters_of, invent

NAMED_FIRST = "RT @harbour: عندنا ماء قرب الميناء"  # its first letters are Latin


def direction(text) -> str:
    return text.evaluate("e => getComputedStyle(e).direction")


@pytest.mark.parametrize(
    "lang, text, way",
    [
        ("ar", NAMED_FIRST, "rtl"),
        ("ary", "https://example.org ماء", "rtl"),
        ("ur-PK", "WAPDA سے پانی چاہیے", "rtl"),
        ("ckb", "RT @x: ئاو", "rtl"),
        ("he", "RT @x: מים", "rtl"),
        ("ar-Latn", "3andna moya orb el mina", "ltr"),
        ("en", "RT @harbour: we have water", "ltr"),
        ("und", "ماء", "rtl"),  # not known: by the first letter
        ("arn", "Chew ta ko?", "ltr"),  # Mapuche only begins like Arabic
    ],
)
def test_a_post_on_a_card_reads_the_way_its_language_is_written(page, server, lang, text, way):
    server.call(lambda view: view.put_alerts([invent(990, lang=lang, text=text, at=time.time())]))
    expect(cards(page).first.locator(".text")).to_have_text(text)
    assert direction(cards(page).first.locator(".text")) == way


def test_a_cluster_and_its_examples_read_the_way_their_language_is_written(browser, server):
    now = time.time()
    events, _ = clusters_of([invent(n, lang="ar", text=f"{NAMED_FIRST} {n}", at=now) for n in range(990, 993)], now)
    server.call(lambda view: view.put_clusters([msgspec.structs.replace(events[0], cluster_id="arabic", burst=99.0)]))
    for page in opened(browser, server, {"width": 1440, "height": 900}):
        shown = page.locator('.cluster[data-id="arabic"]')
        expect(shown.locator(".examples li")).to_have_count(2)
        assert {direction(text) for text in shown.locator(".medoid, .examples li").all()} == {"rtl"}


def test_what_a_search_finds_reads_the_way_its_language_is_written(page):
    found = HitPage([Hit("s9", NAMED_FIRST, "ar", "sms", rfc3339(time.time()), 0.9)], 1, True)
    page.route("**/api/search?*", lambda route: route.fulfill(body=msgspec.json.encode(found)))
    page.keyboard.press("/")
    page.keyboard.type("water")
    page.keyboard.press("Enter")
    expect(page.locator("#hits .text")).to_have_text(NAMED_FIRST)
    assert direction(page.locator("#hits .text")) == "rtl"
