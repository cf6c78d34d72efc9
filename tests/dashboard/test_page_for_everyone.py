"""The page by keyboard, on a phone, in both themes, to a screen reader, in every script, and with hostile text."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import expect

from tests.dashboard.browsing import address, cards, opened, until_open
from tests.dashboard.invented import HOSTILE, hostile
from tests.dashboard.seeding import fill

TABS_UP_TO = 860  # wide: narrower pages show one part at a time


def test_hostile_text_is_text_and_nothing_else(browser, server):
    now = time.time()
    for page in opened(browser, server, {"width": 1440, "height": 900}):
        server.call(lambda view: fill(view, [], now, hostile_too=True))
        expect(page.locator(".card", has_text="onerror")).to_have_count(1)
        page.reload()
        expect(page.locator(".card", has_text="onerror")).to_have_count(1)
        expect(page.locator(".cluster", has_text="<b>bold</b>")).to_have_count(1)
        shown = [t.replace("\n", " ").strip() for t in page.locator(".card .text").all_inner_texts()]
        assert HOSTILE["script"] in shown
        assert page.title() == "crisis streams"
        inside = page.evaluate(
            "[...document.querySelectorAll('main :is(script, img, b, u, i, s)')].filter((e) => !e.closest('thead, .score, .outcomes')).length"
        )
        assert inside == 0
        links = page.locator("main a[href]:not(#take a)").evaluate_all(
            "all => all.map((a) => [a.protocol, a.rel, a.target])"
        )
        assert all(link == ["https:", "noopener noreferrer nofollow", "_blank"] for link in links) and links
        for card in page.locator(".card").all()[-len(HOSTILE) :]:
            box = card.bounding_box()
            assert box is None or box["width"] <= 760
        page.locator(".card", has_text="gnp.exe").locator("button", has_text="<b>bold</b>").click()  # a hostile filter
        expect(page.locator("#chips")).to_contain_text("<b>bold</b>")


def test_right_to_left_text_reads_from_the_right_and_carries_its_language(page):
    text = page.locator('.card .text[lang="ar"]').first
    assert text.evaluate("e => getComputedStyle(e).direction") == "rtl"
    assert page.locator('.card .text[lang="de"]').first.evaluate("e => getComputedStyle(e).direction") == "ltr"
    assert all(
        isolated == "isolate"
        for isolated in page.locator(".card .text").evaluate_all(
            "all => all.map((e) => getComputedStyle(e).unicodeBidi)"
        )
    )


def test_the_page_is_used_by_keyboard_alone(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the alerts"
    page.keyboard.press("Enter")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert page.evaluate("[...document.querySelectorAll('#list > .card')].indexOf(document.activeElement)") == 0
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    expect(cards(page).first).to_have_class(re.compile("whole"))
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    page.keyboard.press("f")
    page.keyboard.type("minibuses")
    expect(cards(page)).to_have_count(3)
    assert address(page) == "?q=minibuses"
    page.keyboard.press("Escape")
    expect(cards(page)).to_have_count(40)


@pytest.mark.parametrize("width", [320, 390, 768, 1024])
def test_no_width_scrolls_sideways(browser, server, width):
    now = time.time()
    server.call(lambda view: view.put_alerts(hostile(now)))
    until_open(server, 40 + len(HOSTILE))
    for page in opened(browser, server, {"width": width, "height": 700}):
        for part in ("alerts", "needs", "clusters", "pipeline"):
            if width <= TABS_UP_TO:
                page.locator(f'.tabs [data-show="{part}"]').click()
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        if width <= TABS_UP_TO:
            page.locator('.tabs [data-show="needs"]').click()
            page.get_by_role("button", name=re.compile("^Drinking water, offers")).click()
            expect(cards(page)).to_have_count(4)  # choosing a category leads to its alerts


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_every_text_is_readable_in_both_themes(browser, server, scheme):
    """WCAG 2.2, 1.4.3: 4.5:1 between text and ground, computed from what the browser paints."""
    for page in opened(browser, server, {"width": 1440, "height": 900}, color_scheme=scheme):
        assert page.evaluate(LOW_CONTRAST) == []
        page.keyboard.press("t")
        assert page.evaluate("document.documentElement.dataset.theme") == {"dark": "light", "light": "dark"}[scheme]
        assert page.evaluate(LOW_CONTRAST) == []
        page.reload()
        assert page.evaluate("document.documentElement.dataset.theme") == {"dark": "light", "light": "dark"}[scheme]


LOW_CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (css) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = css; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = (c) => [0.2126, 0.7152, 0.0722].reduce((sum, w, i) => { const v = c[i] / 255; return sum + w * (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); }, 0);
  const ground = (e) => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return rgba("Canvas"); };
  const low = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.checkVisibility({ visibilityProperty: true }) || e.closest("[aria-hidden], .unseen, .skip, .fresh")) continue;
    const [a, b] = [light(rgba(getComputedStyle(e).color)), light(ground(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) low.push(`${e.className || e.tagName} ${ratio.toFixed(2)} ${e.textContent.slice(0, 30)}`);
  }
  return low;
}"""


def test_parts_have_names_that_a_screen_reader_can_tell(page):
    for role, name in (
        ("navigation", "Open needs and offers"),
        ("region", "Newest alerts"),
        ("region", re.compile("Growing clusters")),
        ("search", ""),
        ("list", "Alerts, newest first"),
    ):
        expect(page.get_by_role(role, name=name).first).to_be_attached()
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, input')].filter((b) => b.checkVisibility() && !(b.textContent.trim() || b.ariaLabel || b.labels?.length)).length"
    )
    assert unnamed == 0
    assert page.locator("h1").count() == 1
    assert page.locator("#say").get_attribute("aria-live") == "polite"
