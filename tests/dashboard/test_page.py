"""The page in a real browser: it filters, lives, reads by keyboard, fits a phone, and shows hostile text as text."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import httpx
import msgspec
import pytest
from playwright.sync_api import Browser, Page, expect

from models.records import Evidence, NamedPlace, Post, Reading
from tests.dashboard.seeding import HOSTILE, fill, hostile, invent, several
from tests.dashboard.serving import Served, frame, served, settings_for
from tests.waiting import PATIENCE_S, wait_until

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


def until_open(server: Served, total: int) -> None:
    """Wait until the dashboard has read that many open alerts."""

    def open_now() -> int:
        return httpx.get(f"{server.url}/api/alerts", timeout=PATIENCE_S).json()["total"]

    wait_until(lambda: open_now() == total, open_now)


@pytest.fixture
def page(browser: Browser, server: Served) -> Iterator[Page]:
    yield from opened(browser, server, {"width": 1440, "height": 900})


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


TABS_UP_TO = 860  # wide: narrower pages show one part at a time


def cards(page: Page):
    return page.locator("#list > .card")


def address(page: Page) -> str:
    return page.evaluate("location.search")


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
        links = page.locator("main a[href]").evaluate_all("all => all.map((a) => [a.protocol, a.rel, a.target])")
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


def test_search_by_meaning_opens_with_a_slash_and_closes_with_escape(page):
    page.keyboard.press("/")
    page.keyboard.type("trapped under roof")
    page.keyboard.press("Enter")
    expect(page.locator("#hits > .card")).to_have_count(2)
    expect(page.locator("#hits > .card").first).to_contain_text("people trapped under a collapsed roof")
    assert address(page) == "?search=trapped+under+roof"
    page.keyboard.press("Escape")
    expect(page.locator("#hits-panel")).to_be_hidden()
    expect(cards(page)).to_have_count(40)


def test_a_search_is_in_the_address_too(browser, server):
    for page in opened(browser, server, {"width": 1440, "height": 900}, "/?search=sunny+morning"):
        expect(page.locator("#hits > .card").first).to_contain_text("lovely sunny morning")


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


def test_alerts_of_one_post_read_as_one(page, server):
    at = time.time()
    both = [
        invent(950, query, text="a tent and water, please", score=score, at=at)
        for query, score in (("need.water", 0.55), ("need.shelter", 0.71))
    ]
    server.call(lambda view: view.put_alerts(both))
    expect(page.locator(".card", has_text="a tent and water")).to_have_count(2)
    expect(page.locator(".card .text", has_text="a tent and water").locator("visible=true")).to_have_count(1)
    expect(cards(page).first.locator(".category")).to_have_text("Shelter")  # the surest is on top
    page.get_by_role("button", name=re.compile("^Shelter, needs")).click()
    expect(page.locator(".card .text", has_text="a tent and water").locator("visible=true")).to_have_count(1)


def test_a_low_score_is_not_said_to_reach_its_threshold(page, server):
    server.call(
        lambda view: view.put_alerts(
            [invent(960, level="suggestion", score=0.41, threshold=0.51, probability=0.05, at=time.time())]
        )
    )
    expect(cards(page).first.locator(".score")).to_have_text("0.41 < 0.51")
    expect(cards(page).first.locator(".chance")).to_have_text("5 % likely")


def test_many_alerts_of_one_post_fold_to_the_surest_three(page, server):
    queries = ["need.water", "need.food", "need.shelter", "need.money", "need.animals"]
    many = [
        invent(970, q, text="everything is gone", score=0.5 + n / 100, at=time.time()) for n, q in enumerate(queries)
    ]
    server.call(lambda view: view.put_alerts(many))
    ours = page.locator('#list > .card[data-post="p970"]')
    expect(ours).to_have_count(5)  # all have come
    seen = ours.locator("visible=true")
    expect(seen).to_have_count(3)
    assert [one.split("\n")[1] for one in seen.all_inner_texts()] == ["Animals", "Money", "Shelter"]
    page.get_by_role("button", name="+2 weaker").click()
    expect(seen).to_have_count(5)
    page.get_by_role("button", name="less").click()
    expect(seen).to_have_count(3)


def test_an_opened_card_says_why_it_is_so_likely_and_in_the_readers_language(page, server):
    near = Evidence("Nou bezwen dlo", "ht", 0.7, "We need water", "en", {"bias": -1.5, "query": 0.5, "head": 3.25})
    server.call(lambda view: view.put_alerts([invent(980, evidence=near, at=time.time())]))
    because = cards(page).first.locator(".because")
    expect(because).to_have_text("in other words We need water English · +2.25 = bias −1.50 + query +0.50 + head +3.25")
    expect(because).to_be_hidden()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(because).to_be_visible()


def test_the_words_that_moved_an_opened_alert_are_marked_in_its_text_and_nothing_else_changes(page, server):
    text = "🙏 <b>send</b> water now"
    moved = {"query_id": "need.water", "log_odds": 2.0, "rest": 0.5, "words": [
        {"start": 5, "end": 9, "by": -0.4}, {"start": 14, "end": 19, "by": 1.9},
    ]}  # fmt: skip
    page.route("**/api/words?*", lambda route: route.fulfill(json={"moved": moved}))
    server.call(lambda view: view.put_alerts([invent(985, text=text, at=time.time())]))
    first = cards(page).first
    expect(first.locator(".text")).to_have_text(text)
    expect(first.locator("mark")).to_have_count(0)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(first.locator("mark")).to_have_text(["send", "water"])
    expect(first.locator("mark.toward")).to_have_text("water")
    expect(first.locator(".text")).to_have_text(text)
    expect(first.locator(".moved")).to_have_text("+2.00 = words +1.50 + what no single word moves +0.50")


def test_a_place_that_a_post_names_stands_on_its_card_with_how_sure_that_is(page, server):
    named = NamedPlace("Okay", "Les Cayes, Sud, HT", "town", 18.19, -73.75, 5.0, 0.62)
    server.call(lambda view: view.put_alerts([invent(986, geo=None, places=[named], at=time.time())]))
    expect(cards(page).first.locator(".place")).to_have_text("names Les Cayes, Sud, HT (62 %)")


def test_posts_of_one_cluster_are_one_card_that_says_how_many_more_and_the_counts_agree(page, server):
    def said(n, lang, **more):
        post = msgspec.structs.replace(invent(n, lang=lang, at=time.time()).post, id=f"x:{n % 2}/{n}")
        return invent(n, lang=lang, at=time.time(), post=post, cluster_id="c-new", **more)

    also = [Reading("need.food", "suggestion", 0.41)]
    alerts = [said(990, "en", also=also), said(991, "ht"), said(992, "en")]
    for alert in alerts:
        server.call(lambda view, alert=alert: view.put_alerts([alert]))
    expect(cards(page)).to_have_count(43)
    seen = page.locator('#list > .card[data-crowd^="c-new"]').locator("visible=true")
    expect(seen).to_have_count(1)
    first = page.locator('#list > .card[data-post="x:0/990"]')  # stays the card
    expect(first.locator(".also")).to_have_text("also Need: Food 41 %")
    expect(first.locator(".crowd")).to_have_text("+2 more, 2 authors, 2 languages")
    expect(cards(page).first).to_have_attribute("data-post", "x:0/990")  # where the newest of them stands
    expect(page.locator("#count")).to_have_text("43 posts stand")
    expect(page.locator("#needs-total")).to_have_text(str(43 - 13))
    first.locator(".crowd").click()
    expect(seen).to_have_count(3)
    first.locator(".crowd").click()
    expect(seen).to_have_count(1)


def test_many_new_accounts_with_one_text_are_told_on_the_card(page, server):
    text = "Give money to the rescue of our city, number {}"
    for n in range(9):
        bot = invent(700 + n, text=text.format(n), at=time.time(), post_id=f"x:bot{n}/1")
        server.call(lambda view, bot=bot: view.put_alerts([bot]))
    expect(cards(page).first.locator(".marks")).to_have_text("9 accounts, same words")
    expect(cards(page).last.locator(".marks")).to_be_hidden()


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
    assert page.locator("#needs-total").inner_text() == "27"  # a notice is no need
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
