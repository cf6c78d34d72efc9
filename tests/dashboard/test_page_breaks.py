"""A page over bad lines, restarts, floods and long breaks: it shows what it says, and takes nothing from who reads."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator

import httpx
import msgspec
import pytest
from playwright.sync_api import Browser, Page, expect

from models.alerts import place_in_cluster
from models.records import Alert
from streams.config import load_settings
from tests.dashboard.browsing import address, cards, opened, until_open
from tests.dashboard.invented import invent, several
from tests.dashboard.serving import Served, served, settings_for
from tests.dashboard.test_page_layout import held_back
from tests.waiting import PATIENCE_S

WIDE = {"width": 1440, "height": 900}
SEEN = """() => {
  const all = [...document.querySelectorAll("#list > .card")], on = document.activeElement?.dataset?.id ?? "";
  const made = all.find((one) => one.getBoundingClientRect().top > 300);
  return [made.dataset.id, Math.round(made.getBoundingClientRect().top), on];
}"""
SHOWN = "() => document.querySelectorAll('#list > .card').length"


@pytest.fixture
def rough(browser: Browser, server: Served) -> Iterator[Page]:
    """Not `page`: the browser itself complains of every answer that fails."""
    with browser.new_context(viewport=WIDE) as context:
        context.set_default_timeout(1000 * PATIENCE_S)
        made = context.new_page()
        made.goto(server.url)
        expect(made.locator("#link")).to_have_attribute("data-state", "live")
        yield made


def put(server: Served, *alerts: object) -> None:
    server.call(lambda view: view.put_alerts(list(alerts)))


def at_once(count: int, first: int, **more: object) -> list:
    now = time.time()
    return [invent(first + n, "need.food", text=f"number {n}", at=now + n / 1000, **more) for n in range(count)]


def test_a_page_that_gets_no_events_for_too_many_are_open_says_so_and_goes_on_once_there_is_room(rough, server):
    full = [True, True]  # the stream, and the look at why it was refused
    refusal = "16 pages of ana are open already, which is the most: close some"
    rough.route(
        "**/events*",
        lambda route: route.fulfill(status=429, body=refusal + "\n") if full and full.pop() else route.continue_(),
    )
    rough.reload()
    expect(rough.locator("#problem")).to_contain_text(refusal)
    expect(rough.locator("#link")).to_have_attribute("data-state", "live")
    put(server, invent(902, text="after it was full", at=time.time()))
    expect(cards(rough).first).to_contain_text("after it was full")
    expect(rough.locator("#problem")).to_be_hidden()


def test_a_filter_that_could_not_be_fetched_is_asked_for_again_and_until_then_its_list_is_seen_to_be_old(rough, server):
    rough.get_by_role("button", name="Offers", exact=False).first.click()
    expect(cards(rough)).to_have_count(13)
    fails = [True, True]
    rough.route("**/api/alerts*", lambda route: route.abort() if fails and fails.pop() else route.continue_())
    rough.keyboard.press("x")
    expect(rough.locator("#list")).to_have_attribute("aria-busy", "true")
    expect(rough.locator("#list")).to_have_css("opacity", "0.5")
    expect(rough.locator("#problem")).to_contain_text("could not be fetched")
    put(server, invent(900, text="trapped on the roof", at=time.time()))
    expect(cards(rough)).to_have_count(41)
    expect(cards(rough).first).to_contain_text("trapped on the roof")
    expect(rough.locator("#list")).to_have_attribute("aria-busy", "false")
    expect(rough.locator("#problem")).to_be_hidden()
    assert not fails and address(rough) == ""
    put(server, invent(901, text="and one more", at=time.time()))  # events go on
    expect(cards(rough).first).to_contain_text("and one more")


def test_nothing_of_the_filter_before_comes_into_a_list_that_waits_for_its_answer(page, server):
    late = held_back(page, "**/api/alerts*")
    page.get_by_role("button", name="Offers", exact=False).first.click()
    expect(page.locator("#list")).to_have_attribute("aria-busy", "true")
    put(server, invent(902, text="no offer", at=time.time()))
    page.wait_for_timeout(1000)
    assert cards(page).count() == 40
    late[0].continue_()
    page.unroute("**/api/alerts*")
    expect(cards(page)).to_have_count(13)
    expect(page.locator("#list")).to_have_attribute("aria-busy", "false")


def test_a_link_to_a_place_that_nobody_knows_says_so(rough, server):
    rough.goto(f"{server.url}/?area=Xyzzyville")
    expect(rough.locator("#problem")).to_contain_text("no place is called 'Xyzzyville' here")
    expect(rough.locator("#empty")).to_have_text("What fits these filters could not be fetched.")
    expect(rough.locator("#link")).to_have_attribute("data-state", "live")


def test_what_the_map_could_not_fetch_is_asked_for_again_and_the_problem_goes(rough):
    rough.route("**/api/spots*", lambda route: route.abort())
    rough.keyboard.press("m")
    expect(rough.locator("#problem")).to_contain_text("What the map shows could not be fetched")
    rough.unroute("**/api/spots*")
    expect(rough.locator("#problem")).to_be_hidden()
    expect(rough.locator("#map-note")).to_contain_text("posts that stand")


@contextlib.contextmanager
def restarting(
    browser: Browser, redis_url: str, *alerts: Alert
) -> Iterator[tuple[Page, Callable[[], Served], Callable[[Served], None]]]:
    """A page of these alerts, and what ends its dashboard and returns another one, which the page goes on with once its
    requests are let through."""
    with (
        contextlib.ExitStack() as first,
        contextlib.ExitStack() as second,
        browser.new_context(viewport=WIDE) as context,
    ):
        one = first.enter_context(served(settings_for(redis_url)))
        put(one, *alerts)
        until_open(one, len(alerts))
        context.set_default_timeout(1000 * PATIENCE_S)
        page = context.new_page()
        page.goto(one.url)
        expect(page.locator("#link")).to_have_attribute("data-state", "live")

        def again() -> Served:
            page.route("**/*", lambda route: route.abort())
            first.close()
            return second.enter_context(served(settings_for(redis_url)))

        def on(other: Served) -> None:
            page.unroute("**/*")
            page.route("**/*", lambda route: route.continue_(url=route.request.url.replace(one.url, other.url)))

        yield page, again, on


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_a_restart_leaves_whoever_reads_where_they_are(browser, redis_url, by):
    with restarting(browser, redis_url, *several(230, time.time() - 4000)) as (page, again, on):
        page.get_by_role("button", name="Older alerts").click()
        expect(cards(page)).to_have_count(200)
        place = 150 if by == "mouse" else 60
        if by == "keyboard":
            cards(page).nth(place).evaluate("made => made.focus()")
            page.keyboard.press("Enter")
        cards(page).nth(place).evaluate("made => made.scrollIntoView({ block: 'center' })")
        page.wait_for_timeout(300)
        before = page.evaluate(SEEN)
        other = again()
        put(other, invent(903, text="came in the break", at=time.time()))
        until_open(other, 231)
        on(other)
        expect(page.locator("#more-news")).to_have_text("↑ 1 new alert")
        assert page.evaluate(SEEN) == before
        if by == "keyboard":
            expect(cards(page).nth(place)).to_have_class(re.compile("whole"))
            page.keyboard.press("j")
            assert page.evaluate(SEEN)[2] == cards(page).nth(place + 1).get_attribute("data-id")
        page.keyboard.press("g")
        expect(cards(page).first).to_contain_text("came in the break")
        expect(cards(page)).to_have_count(201)
        page.get_by_role("button", name="Older alerts").click()
        expect(cards(page)).to_have_count(231)


def test_what_was_deleted_in_a_break_is_read_by_nobody_any_more(browser, redis_url):
    alerts = [invent(905 + n, text=f"my private street {n}", at=time.time() - 5 + n) for n in range(3)]
    with restarting(browser, redis_url, *several(40, time.time() - 60), *alerts) as (page, again, on):
        expect(cards(page).first).to_contain_text("my private street 2")
        page.keyboard.press("j")
        other = again()
        gone = [
            msgspec.structs.replace(alert, revision=alert.revision + 1, status="withdrawn", withdrawn_because="deleted")
            for alert in alerts[1:]
        ]
        put(other, *gone)
        until_open(other, 41)
        on(other)
        expect(cards(page).first).to_contain_text("No longer among these alerts")
        expect(page.locator("#list")).not_to_contain_text("private street 1")
        expect(cards(page).nth(2)).to_contain_text("private street 0")
        assert page.evaluate("document.activeElement === document.querySelector('#list > .card')")
        page.keyboard.press("Escape")
        expect(cards(page)).to_have_count(41)


def test_more_alerts_at_once_than_anyone_reads_leave_whoever_reads_where_they_are(page, server):
    cards(page).nth(25).evaluate("made => made.scrollIntoView({ block: 'center' })")
    page.wait_for_timeout(300)
    before = page.evaluate(SEEN)
    put(server, *at_once(230, 2000))
    expect(page.locator("#more-news")).to_have_text(re.compile(r"↑ \d\d+ new alerts"))
    assert page.evaluate(SEEN) == before
    page.keyboard.press("g")
    expect(cards(page).first).to_contain_text("number 229")


def test_after_a_long_break_the_newest_that_wait_are_shown_at_once_and_those_of_a_crowd_give_way(page, server):
    page.keyboard.press("j")
    put(server, invent(906, text="trapped on the roof", at=time.time()))
    for n in range(8):
        flood = [place_in_cluster(one, "c-flood") for one in at_once(150, 3000 + 150 * n)]
        put(server, *flood)
        page.wait_for_timeout(300)
    expect(page.locator("#more-news")).to_have_text("↑ 1,201 new alerts")
    took = page.evaluate(
        """async () => {
          const began = performance.now();
          document.querySelector("#more-news").click();
          return performance.now() - began;
        }"""
    )
    assert took < 2000, took
    assert page.evaluate(SHOWN) <= 300
    expect(cards(page).filter(has_text="trapped on the roof")).to_have_count(1)
    expect(page.locator("#more-news")).to_be_hidden()


def test_what_stands_under_a_filter_is_counted_again_as_others_go(browser, redis_url):
    board = load_settings(redis={"url": redis_url, "recent_alerts": 40}, broker={"bootstrap": "127.0.0.1:1"})
    with served(board) as server:
        now = time.time()
        put(server, *(invent(n, lang="es", text=f"agua {n}", at=now - 100 + n) for n in range(40)))
        until_open(server, 40)
        for page in opened(browser, server, WIDE, "/?lang=es"):
            expect(page.locator("#count")).to_have_text("40 posts stand")
            put(server, *(invent(100 + n, lang="es", text=f"agua {n}", at=now + n) for n in range(3)))
            put(server, *at_once(20, 200))
            stands = httpx.get(f"{server.url}/api/alerts?lang=es&n=1").json()["standing"]
            expect(page.locator("#count")).to_have_text(f"{stands} posts stand", timeout=20_000)


def test_news_of_an_alert_that_is_older_than_the_list_is_no_new_alert(browser, server):
    put(server, *several(180, time.time() - 4000))
    until_open(server, 180)
    for page in opened(browser, server, WIDE):
        title = page.title()
        page.evaluate("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
        answer = httpx.get(f"{server.url}/api/alerts?n=500").json()["alerts"][-1]["alert"]
        oldest = msgspec.convert(answer, Alert)
        assert page.locator(f'#list [data-id="{oldest.alert_id}"]').count() == 0
        put(server, msgspec.structs.replace(oldest, revision=oldest.revision + 1))
        put(server, invent(908, text="brand new", at=time.time()))
        expect(cards(page).first).to_contain_text("brand new")
        expect(page).to_have_title(f"(1) {title}")


def press(page: Page, selector: str, held_ms: int) -> None:
    box = page.locator(selector).first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.wait_for_timeout(held_ms)
    page.mouse.up()


@pytest.mark.parametrize("part, chosen", [("#langs", "lang"), ("#sources", "source")])
def test_a_press_that_lasts_while_new_figures_come_is_not_lost(page, part, chosen):
    press(page, f"{part} button", 2500)
    expect(page.locator("#chips")).to_be_visible()
    assert address(page).startswith(f"?{chosen}=")


@pytest.mark.parametrize("hours", [-1, 1])
def test_ages_go_by_the_clock_of_the_dashboard_and_one_that_is_off_is_told(browser, server, hours):
    put(server, invent(909, text="just now", at=time.time() - 120))
    with browser.new_context(viewport=WIDE) as context:
        page = context.new_page()
        page.add_init_script(
            f"const now = Date.now.bind(Date), off = {3_600_000 * hours}; Date.now = () => now() + off;"
        )
        page.goto(server.url)
        expect(cards(page).first.locator(".age")).to_have_text(re.compile(r"^[23] min ago$"))
        told = f"this machine’s clock is 60 min {'behind' if hours < 0 else 'ahead'}"
        expect(page.locator("#link-text")).to_contain_text(told)


def test_a_filter_chosen_far_down_begins_at_the_top_of_its_list(browser, server):
    for page in opened(browser, server, {"width": 360, "height": 740}, has_touch=True, is_mobile=True):
        far = cards(page).filter(visible=True).nth(10)
        far.evaluate("made => made.scrollIntoView({ block: 'center' })")
        assert page.evaluate("scrollY") > 500
        far.locator(".category").tap()
        expect(page.locator("#chips")).to_be_visible()
        page.wait_for_function("() => scrollY === 0")
        expect(cards(page).first).to_be_in_viewport()


HEALTH = "no worker reads posts.raw; posts wait since 14:02 (start one: crisis worker) · 0.0 posts/s"


@pytest.mark.parametrize("width", [320, 360])
def test_the_sentence_of_health_can_be_read_on_a_phone(browser, server, width):
    for page in opened(browser, server, {"width": width, "height": 740}):
        text = page.locator("#link-text")
        text.evaluate("(text, said) => { text.textContent = said; }", HEALTH)
        cut = text.evaluate("text => [text.scrollHeight - text.clientHeight, text.scrollWidth - text.clientWidth]")
        assert max(cut) <= 0, cut


def test_a_search_says_which_filters_do_not_hold_for_it_and_hides_what_is_of_the_alerts(page):
    page.get_by_role("button", name=re.compile("^Drinking water, needs")).click()
    expect(page.locator("#count")).to_have_text("4 posts stand")
    page.keyboard.press("/")
    page.keyboard.type("roof")
    page.keyboard.press("Enter")
    expect(page.locator("#hits-note")).to_contain_text("Not filtered by kind, category.")
    for part in ("#count", "#ask"):
        expect(page.locator(part)).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator("#count")).to_be_visible()
