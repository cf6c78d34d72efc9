"""A page whose dashboard fell silent says so, once, and looks like it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.dashboard.browsing import cards, opened

SILENT = "retry: 150\n\n"  # a stream that opens, says nothing and ends: a proxy before a dashboard that is gone


def silence(page: Page) -> None:
    """From here on the page hears nothing, however often it connects."""
    page.evaluate(
        """() => {
          window.told = []; window.links = [];
          const note = (id, into) => new MutationObserver(() => into.push(document.getElementById(id).textContent))
            .observe(document.getElementById(id), { childList: true, characterData: true, subtree: true });
          note("stale", told); note("link-text", links);
        }"""
    )
    page.route("**/events?*", hear_nothing)
    page.locator('.levels [data-value="suggestion"]').click()  # the page opens its stream anew


def hear_nothing(route: Route) -> None:
    route.fulfill(content_type="text/event-stream", body=SILENT)


def test_a_dashboard_that_is_gone_is_told_by_a_banner_that_is_read_out_once_and_dims_what_is_old(page):
    banner = page.get_by_role("alert").and_(page.locator("#stale"))
    expect(banner).to_be_hidden()
    silence(page)
    expect(banner).to_be_visible()
    expect(banner).to_have_text(re.compile("is gone.*is old"))
    for part in (".figures", "main"):
        expect(page.locator(part)).to_have_css("opacity", "0.5")
    page.evaluate("links.length = 0")
    page.wait_for_timeout(2500)
    links = page.evaluate("links")
    assert links and all(re.fullmatch(r"no figures for [\d.]+ s", link) for link in links), links
    assert page.evaluate("told") == []  # it appears, and its words stay
    expect(page.locator("#link")).to_have_attribute("data-state", "lost")
    page.unroute("**/events?*")
    expect(banner).to_be_hidden()
    expect(page.locator("#link")).to_have_attribute("data-state", "live")
    expect(page.locator("main")).to_have_css("opacity", "1")


@pytest.mark.parametrize("width, height", [(1440, 900), (1024, 768), (360, 740)])
def test_what_is_told_of_the_whole_leaves_a_card_under_the_pointer(browser, server, width, height):
    for page in opened(browser, server, {"width": width, "height": height}):
        expect(page.locator("#ask")).to_be_visible()
        expect(page.locator("#read")).not_to_have_text("0")  # the first figures of a dashboard that has just begun
        silence(page)
        expect(page.locator("#list > .card:not(.suggestion)")).to_have_count(0)
        cards(page).first.hover()
        button = cards(page).first.locator(".v-right")
        button.hover()
        held = button.bounding_box()
        expect(page.locator("#stale")).to_be_visible()
        assert button.bounding_box() == held
        page.unroute("**/events?*")
        expect(page.locator("#stale")).to_be_hidden()
        assert button.bounding_box() == held
        page.locator("#link-text").evaluate("text => text.textContent = 'alerts come late, for reasons. '.repeat(9)")
        assert button.bounding_box() == held


COUNT_FIGURES = """() => {
  window.figures = 0;
  new EventSource("/events").addEventListener("stats", () => window.figures++);
}"""


def test_a_problem_can_be_read_under_what_lies_above_it_until_it_is_over_or_put_away(browser, server):
    with browser.new_context(viewport={"width": 360, "height": 740}) as context:
        page = context.new_page()
        page.goto(server.url)
        expect(page.locator("#link")).to_have_attribute("data-state", "live")
        page.route("**/api/alerts?*", lambda route: route.abort())
        page.locator('.levels [data-value="suggestion"]').click()
        problem = page.get_by_role("alert").and_(page.locator("#problem"))
        expect(problem).to_contain_text("could not be fetched")
        page.evaluate(COUNT_FIGURES)
        page.wait_for_function("() => window.figures > 2")  # new figures wipe nothing away before anybody read it
        problem.get_by_role("button", name="Hide this").click()  # nothing lies over it
        expect(problem).to_be_hidden()
        page.locator('.levels [data-value="alert"]').click()
        expect(problem).to_be_visible()
        page.unroute("**/api/alerts?*")
        page.go_back()
        expect(problem).to_be_hidden()  # what failed went well


def test_the_rate_is_not_read_out_every_second_and_the_health_is(page):
    said = page.get_by_role("status").and_(page.locator("#link-say"))
    expect(said).to_have_text(re.compile("."))
    assert "posts/s" not in said.text_content() and "posts/s" in page.locator("#link-text").text_content()
    assert page.locator("#link").get_attribute("role") is None


def test_a_state_that_cannot_be_fetched_is_asked_for_again(browser, server):
    """Not `page`: the browser itself complains of every answer that fails."""
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(server.url)
        expect(page.locator("#link")).to_have_attribute("data-state", "live")
        fails = [True, True]
        page.route("**/api/state", lambda route: route.abort() if fails and fails.pop() else route.continue_())
        page.route("**/events?*", lambda route: route.fulfill(status=503))  # ends a stream for good
        page.locator('.levels [data-value="suggestion"]').click()
        expect(page.locator("#problem")).to_contain_text("could not be fetched")
        page.unroute("**/events?*")
        expect(page.locator("#link")).to_have_attribute("data-state", "live")
        expect(page.locator("#problem")).not_to_contain_text("could not be fetched")
        assert not fails
