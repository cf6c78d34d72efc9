"""The page in a real browser: it filters, lives, searches and catches up."""

from __future__ import annotations

import re
import time

import msgspec
from playwright.sync_api import expect

from models.records import Reading
from tests.dashboard.browsing import address, cards, opened, until_open
from tests.dashboard.invented import clusters_of, invent, several


def test_a_click_on_a_category_filters_the_list_and_the_address(page):
    expect(cards(page)).to_have_count(40)
    page.get_by_role("button", name=re.compile("^Drinking water, needs")).click()
    expect(cards(page)).to_have_count(4)
    assert address(page) == "?kind=need&category=water"
    expect(page.locator("#list .category").first).to_have_text("Water")
    page.get_by_role("button", name=re.compile("^Remove filter kind")).click()
    expect(cards(page)).to_have_count(8)
    assert address(page) == "?category=water"
    page.go_back()
    expect(cards(page)).to_have_count(4)


def test_a_category_is_found_where_a_post_says_it_beside_its_main_reading(page, server):
    also = [Reading("need.boat_hire", "suggestion", 0.41), Reading("offer.water", "alert", 0.6)]
    server.call(lambda view: view.put_alerts([invent(910, text="a boat and water", also=also, at=time.time())]))
    expect(cards(page).first).to_contain_text("a boat and water")
    page.reload()
    beside = page.get_by_role("button", name=re.compile("^boat hire, needs"))
    expect(beside).to_have_text("+1")
    expect(beside).to_have_attribute("title", "1 post says it beside what they are alerted for")
    expect(page.get_by_role("button", name=re.compile("^Drinking water, offers"))).to_have_text("4")  # others stand
    expect(page.locator("#needs-total")).to_have_text(str(41 - 13))
    beside.click()
    expect(cards(page)).to_have_count(1)
    expect(cards(page).locator(".also")).to_contain_text("Need: boat hire 41 %")
    expect(page.locator("#count")).to_have_text("1 post stands")
    page.get_by_role("button", name=re.compile("^Drinking water, offers")).click()
    expect(cards(page)).to_have_count(5)


def test_a_shared_link_shows_the_same_view(browser, server, page):
    page.get_by_role("button", name="Offers", exact=False).first.click()
    page.locator("#langs button", has_text="Arabic").click()
    expect(cards(page)).to_have_count(4)
    for other in opened(browser, server, {"width": 1440, "height": 900}, "/" + address(page)):
        assert cards(other).count() == 4  # at once: the first paint is filtered on the server
        expect(other.locator("#chips")).to_contain_text("Arabic")


def test_an_alert_arrives_without_a_reload_and_counts(page, server):
    page.evaluate("window.sameDocument = true")
    expect(page.locator("#offers-total")).to_have_text("13")
    server.call(
        lambda view: view.put_alerts([invent(900, "offer.food", "en", "Warm soup at the old harbour", at=time.time())])
    )
    expect(cards(page).first).to_contain_text("Warm soup at the old harbour")
    expect(cards(page)).to_have_count(41)
    expect(page.locator("#offers-total")).to_have_text("14")
    assert page.evaluate("window.sameDocument")


def test_alerts_that_came_while_the_tab_was_hidden_are_counted_in_its_title(page, server):
    title = page.title()
    page.evaluate("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
    server.call(lambda view: view.put_alerts([invent(n, text="brand new", at=time.time()) for n in (901, 902)]))
    expect(page).to_have_title(f"(2) {title}")
    page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    expect(page).to_have_title(title)


def test_an_alert_that_does_not_fit_the_filter_stays_away(page, server):
    page.get_by_role("button", name=re.compile("^Drinking water, needs")).click()
    expect(cards(page)).to_have_count(4)
    server.call(
        lambda view: view.put_alerts(
            [invent(901, "offer.food", at=time.time()), invent(902, "need.water", text="only this", at=time.time())]
        )
    )
    expect(cards(page).first).to_contain_text("only this")
    expect(cards(page)).to_have_count(5)


def test_a_withdrawn_alert_loses_its_text_on_every_open_page(page, server):
    alert = invent(903, text="my private street", at=time.time())
    server.call(lambda view: view.put_alerts([alert]))
    expect(cards(page).first).to_contain_text("my private street")
    gone = msgspec.structs.replace(alert, revision=alert.revision + 1, status="withdrawn", withdrawn_because="deleted")
    server.call(lambda view: view.put_alerts([gone]))
    expect(cards(page).first).to_contain_text("The post was deleted")
    assert "private street" not in page.content()


def test_a_reader_further_down_is_not_disturbed(page, server):
    page.keyboard.press("j")
    page.keyboard.press("j")
    held = page.evaluate("document.activeElement.dataset.id")
    server.call(lambda view: view.put_alerts([invent(904, text="brand new", at=time.time())]))
    expect(page.locator("#more-news")).to_have_text("↑ 1 new alert")
    assert page.evaluate("document.activeElement.dataset.id") == held and cards(page).count() == 40
    page.keyboard.press("g")
    expect(cards(page).first).to_contain_text("brand new")


def test_the_list_does_not_move_while_somebody_points_at_the_buttons_of_a_card(page, server):
    cards(page).first.hover()
    cards(page).first.locator(".v-right").hover()
    server.call(lambda view: view.put_alerts([invent(906, text="came meanwhile", at=time.time())]))
    expect(page.locator("#more-news")).to_have_text("↑ 1 new alert")
    assert cards(page).count() == 40
    page.locator("h1").hover()
    server.call(lambda view: view.put_alerts([invent(907, text="came later", at=time.time())]))
    expect(cards(page).first).to_contain_text("came later")


def test_search_by_meaning_opens_with_a_slash_and_closes_with_escape(page):
    page.keyboard.press("/")
    page.keyboard.type("trapped under roof")
    page.keyboard.press("Enter")
    expect(page.locator("#hits > .card")).to_have_count(2)
    expect(page.locator("#hits > .card").first).to_contain_text("people trapped under a collapsed roof")
    assert address(page) == "?search=trapped+under+roof"
    expect(page.locator("#hits > .card").first).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator("#hits > .card").last).to_be_focused()
    page.keyboard.press("k")
    expect(page.locator("#hits > .card").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#hits-panel")).to_be_hidden()
    expect(cards(page)).to_have_count(40)


def test_a_search_is_in_the_address_too(browser, server):
    for page in opened(browser, server, {"width": 1440, "height": 900}, "/?search=sunny+morning"):
        expect(page.locator("#hits > .card").first).to_contain_text("lovely sunny morning")


def test_who_loses_the_connection_is_told_and_catches_up(page, server):
    page.context.set_offline(True)
    page.evaluate("dispatchEvent(new Event('offline'))")
    server.call(lambda view: view.put_alerts([invent(905, text="while you were away", at=time.time())]))
    page.context.set_offline(False)
    expect(cards(page).first).to_contain_text("while you were away")


def test_older_alerts_are_one_click_away(browser, server):
    now = time.time()
    server.call(lambda view: view.put_alerts(several(180, now - 4000)))
    until_open(server, 180)
    for page in opened(browser, server, {"width": 1440, "height": 900}):
        expect(cards(page)).to_have_count(100)
        page.get_by_role("button", name="Older alerts").click()
        expect(cards(page)).to_have_count(180)
        expect(page.get_by_role("button", name="Older alerts")).to_be_hidden()


def test_all_alerts_that_are_kept_can_be_reached(browser, server):
    now = time.time()
    server.call(lambda view: view.put_alerts(several(430, now - 4000)))
    until_open(server, 430)
    for page in opened(browser, server, {"width": 1440, "height": 900}):
        for shown in (100, 200, 300, 400, 430):
            expect(cards(page)).to_have_count(shown)
            older = page.get_by_role("button", name="Older alerts")
            if shown < 430:
                older.click()
        expect(older).to_be_hidden()
        server.call(lambda view: view.put_alerts([invent(908, text="the newest", at=time.time())]))
        page.keyboard.press("Escape")
        page.locator(".feed").evaluate("feed => feed.scrollTo({ top: 0 })")
        expect(page.locator(".card", has_text="the newest").or_(page.locator("#more-news:visible"))).to_have_count(1)


def test_a_burst_in_which_nobody_asks_for_anything_stands_below_the_clusters_in_which_somebody_does(page, server):
    first, *_, last = clusters_of(several(40, time.time()), time.time())[0]
    gone = msgspec.structs.replace(last, event="expire", version=1000)  # the page shows twelve
    loud = msgspec.structs.replace(first, cluster_id="loud", label="fine match", burst=99.0, posts=900, categories={})
    server.call(lambda view: view.put_clusters([gone, loud]))
    expect(page.locator(".cluster").last).to_contain_text("fine match")
    expect(page.locator(".cluster").first).not_to_contain_text("fine match")
    page.reload()
    expect(page.locator(".cluster").last).to_contain_text("fine match")


def test_notices_have_a_table_a_colour_and_a_filter_of_their_own(page, server):
    at = time.time()
    told = [("warning.danger", "urgent"), ("order.evacuation", "soon"), ("report.damage", "routine")]
    notices = [
        invent(970 + n, query, text=f"notice {n}", at=at + n, priority=priority, priority_probability=0.6)
        for n, (query, priority) in enumerate(told)
    ]
    server.call(lambda view: view.put_alerts(notices))
    expect(cards(page).first).to_contain_text("notice 2")
    for n, (query, priority) in enumerate(told):
        shown = cards(page).filter(has_text=f"notice {n}")
        expect(shown).to_have_class(re.compile(rf"\bnotice\b.*\b{priority}\b"))
        expect(shown.locator(".kind")).to_have_text(query.partition(".")[0].capitalize())
        expect(shown.locator(".priority")).to_have_text(priority)
        expect(shown.locator(".priority")).to_have_attribute("title", f"Priority: {priority}, 60 % likely")
    expect(page.locator("#notices tbody tr")).to_have_count(4)
    expect(page.locator("#needs-total")).to_have_text("27")  # a notice is no need
    page.locator("#notices button", has_text=re.compile("[1-9]")).first.click()
    expect(cards(page)).to_have_count(1)
    assert address(page).startswith("?kind=")


def test_a_priority_is_one_click_away_on_the_bar_and_on_a_card(page, server):
    at = time.time()
    made = [
        invent(980 + n, query, text=f"case {n}", at=at + n, priority=priority, priority_probability=0.6)
        for n, (query, priority) in enumerate(
            [("need.water", "urgent"), ("warning.danger", "urgent"), ("need.food", "soon"), ("need.money", "routine")]
        )
    ]
    server.call(lambda view: view.put_alerts(made))
    expect(cards(page)).to_have_count(44)
    page.get_by_role("group", name="Priority").get_by_role("button", name="Urgent").click()
    expect(cards(page)).to_have_count(2)
    assert address(page) == "?priority=urgent"
    page.get_by_role("group", name="Priority").get_by_role("button", name="Soon").click()
    expect(cards(page)).to_have_count(1)
    page.keyboard.press("x")
    expect(cards(page)).to_have_count(44)
    cards(page).filter(has_text="case 3").locator(".priority").click()
    expect(cards(page)).to_have_count(1)
    assert address(page) == "?priority=routine"
