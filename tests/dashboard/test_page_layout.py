"""Where things are: nothing hides another, and what one needs next is within reach."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import Page, Route, expect

from tests.dashboard.browsing import cards, opened
from tests.dashboard.invented import invent


def top(page: Page, selector: str) -> float:
    return page.locator(selector).bounding_box()["y"]


def bottom(page: Page, selector: str) -> float:
    box = page.locator(selector).bounding_box()
    return box["y"] + box["height"]


def held_back(page: Page, path: str) -> list[Route]:
    """Requests that wait until somebody lets them go on."""
    routes: list[Route] = []
    page.route(path, lambda route: routes.append(route))
    return routes


LIST_BELOW_THE_BAR = """(([list, feed, bar]) => list.offsetTop - feed.offsetTop - bar.offsetHeight)(
  ["#list", ".feed", ".bar"].map((part) => document.querySelector(part)))"""
BUTTON_BELOW_THE_BAR = """(([button, bar]) => button.top >= bar.bottom)(
  ["#more-news", ".bar"].map((part) => document.querySelector(part).getBoundingClientRect()))"""


@pytest.mark.parametrize("width, height", [(1440, 900), (1366, 768), (1280, 720), (1024, 768), (360, 740)])
def test_the_button_of_new_alerts_stands_below_the_bar_and_moves_nothing(browser, server, width, height):
    for page in opened(browser, server, {"width": width, "height": height}):
        page.keyboard.press("j")
        page.keyboard.press("j")
        held = page.evaluate(LIST_BELOW_THE_BAR)
        server.call(lambda view: view.put_alerts([invent(960, text="brand new", at=time.time())]))
        button = page.locator("#more-news")
        expect(button).to_be_visible()
        if width > 860:  # on a phone the bar scrolls away
            assert page.evaluate(LIST_BELOW_THE_BAR) == held
            page.locator(".feed").evaluate("feed => feed.scrollTo({ top: 900 })")
            page.evaluate("scrollTo({ top: 900 })")
            assert page.evaluate(BUTTON_BELOW_THE_BAR)
        button.click()  # nothing lies over it
        expect(cards(page).first).to_contain_text("brand new")


def test_what_would_teach_most_is_asked_once_nobody_stands_on_a_card_as_its_line_moves_the_list(browser, server):
    for page in opened(browser, server, {"width": 1366, "height": 768}):
        late = held_back(page, "**/api/taught")
        with page.expect_request("**/api/taught"):
            page.reload()
        page.keyboard.press("j")
        held = page.evaluate(LIST_BELOW_THE_BAR)
        late[0].continue_()
        expect(page.locator("#list > .asked").first).to_be_attached()
        assert page.evaluate(LIST_BELOW_THE_BAR) == held
        expect(page.locator("#ask")).to_be_hidden()
        page.keyboard.press("Escape")
        expect(page.locator("#ask")).to_be_visible()


def test_a_new_query_scrolls_its_column_and_leaves_the_clusters_as_they_are(browser, server):
    for page in opened(browser, server, {"width": 1366, "height": 768}):
        expect(page.locator(".cluster").first).to_be_visible()
        page.locator(".drafting summary").first.click()
        expect(page.locator("#draft")).to_be_visible()
        side, growing = (page.locator(part).bounding_box()["height"] for part in (".side", ".growing"))
        assert growing >= 0.44 * side
        page.get_by_role("button", name="Save").scroll_into_view_if_needed()
        assert bottom(page, '#draft [value="save"]') <= 768
        page.locator("#draft [name=last_h]").focus()
        assert page.evaluate("[scrollY, document.scrollingElement.scrollHeight]") == [0, 768]
        assert top(page, ".top") == 0


@pytest.mark.parametrize("width, height", [(1366, 768), (360, 740)])
def test_a_very_long_post_leaves_its_verdicts_within_reach(browser, server, width, height):
    for page in opened(browser, server, {"width": width, "height": height}):
        server.call(lambda view: view.put_alerts([invent(961, text="we wait. " * 600, at=time.time())]))
        expect(cards(page).first).to_contain_text("we wait")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        text = cards(page).first.locator(".text")
        assert text.bounding_box()["height"] <= height / 2 + 1
        assert text.evaluate("text => text.scrollHeight > text.clientHeight")
        assert all(b.bounding_box()["height"] >= 24 for b in cards(page).first.locator("[data-verdict]").all())
        assert cards(page).first.bounding_box()["height"] < height


def test_on_a_touch_screen_the_verdicts_are_words(browser, server):
    for page in opened(browser, server, {"width": 360, "height": 740}, has_touch=True, is_mobile=True):
        cards(page).first.locator(".text").tap()
        words = cards(page).first.locator(".verdicts .word")
        for word, said in zip(words.all(), ("right", "handled", "wrong", "other category", "not a need"), strict=True):
            expect(word).to_be_visible()
            expect(word).to_have_text(said)
        for button in cards(page).first.locator("[data-verdict]").all():
            box = button.bounding_box()
            assert box["height"] >= 24 and box["x"] + box["width"] <= 360
