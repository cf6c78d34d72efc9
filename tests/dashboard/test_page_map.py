"""The map of the page: where the posts are, and the way from there to them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from models.places.gazetteer import Gazetteer
from models.records import Alert, Geo, NamedPlace
from tests.dashboard.browsing import address, cards, opened, until_open
from tests.dashboard.invented import invent
from tests.dashboard.seeding import fill
from tests.dashboard.serving import Served, served, settings_for
from tests.dashboard.test_page_for_everyone import LOW_CONTRAST
from tests.dashboard.test_page_layout import held_back
from tests.waiting import PATIENCE_S

WIDE = {"width": 1440, "height": 900}
MOVED = "document.querySelector('#spots [title^=Jacmel]').style.translate"
PAINTED = """() => {
  const chart = document.querySelector("#chart"), read = { willReadFrequently: true };
  const copy = document.createElement("canvas").getContext("2d", read);
  copy.drawImage(chart, 40 - chart.width / 2, -chart.height / 2);
  return [...copy.getImageData(0, 0, 1, 1).data];
}"""  # left of the middle, where a mark may stand


def at(name: str, n: int, query: str, text: str = "", **more: object) -> Alert:
    """An alert of a post that names a place."""
    place = Gazetteer.bundled().choose(name)[0]
    named = NamedPlace(name, place.full_name, place.kind, place.lat, place.lon, round(place.radius_km, 1), 0.9)
    return invent(n, query, text=text or f"no water in {name}", at=time.time() - 60 + n, places=[named], **more)


@pytest.fixture
def server(redis_url: str) -> Iterator[Served]:
    """Six posts around Haiti, of which one says where it is, and one that says nothing of that."""
    made = [
        at("Jacmel", 1, "need.water"),
        at("Jacmel", 2, "offer.water"),
        at("Gonaïves", 3, "need.food"),
        at("Les Cayes", 4, "need.food"),
        at("Haiti", 5, "need.shelter"),
        invent(6, "need.water", text="here, at the school", at=time.time() - 54, geo=Geo(19.75, -72.2)),
        invent(7, "need.water", text="nowhere", at=time.time() - 53),
    ]
    with served(settings_for(redis_url)) as running:
        now = time.time()
        running.call(lambda view: fill(view, made, now))
        until_open(running, 7)
        yield running


@pytest.fixture
def page(browser: Browser, server: Served) -> Iterator[Page]:
    yield from opened(browser, server, WIDE, "/?map=1")


def position(page: Page, name: str) -> tuple[float, float]:
    """Of a mark on the sheet, whatever is above that."""
    mark, sheet = spot(page, name).bounding_box(), page.locator("#chart").bounding_box()
    return mark["x"] - sheet["x"], mark["y"] - sheet["y"]


def spot(page: Page, name: str):
    return page.locator("#spots").get_by_role("button", name=re.compile(f"^{name}"))


def test_m_opens_the_map_and_its_address_can_be_sent(browser, server):
    for page in opened(browser, server, WIDE):
        expect(page.locator("#map")).to_be_hidden()
        page.keyboard.press("m")
        expect(spot(page, r"Jacmel, Sud-Est, HT \(90 % likely meant\): 1 need, 1 offer")).to_have_text("2")
        assert address(page) == "?map=1"
        expect(page.get_by_role("button", name="Map", exact=True)).to_have_attribute("aria-pressed", "true")
        page.get_by_role("button", name="Map", exact=True).click()
        expect(page.locator("#map")).to_be_hidden()
        assert address(page) == ""


def test_the_map_tells_how_many_posts_say_where_they_are(page):
    expect(page.locator("#map-note")).to_contain_text("6 of 7 posts that stand say where they are, or name a place")
    expect(spot(page, "Haiti, HT")).to_have_class(re.compile("wide"))
    expect(spot(page, "around 19.75, -72.2")).to_have_text("1")


def test_a_mark_leads_to_its_posts_and_back(page):
    spot(page, "Jacmel").click()
    expect(cards(page)).to_have_count(2)
    expect(page.locator("#chips")).to_contain_text("in Jacmel, Sud-Est, HT")
    expect(page.locator("#count")).to_have_text("2 posts stand")
    expect(spot(page, "Jacmel")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name=re.compile("^Remove filter area")).click()
    expect(cards(page)).to_have_count(7)
    assert address(page) == "?map=1"


def test_a_place_beside_the_map_leads_to_its_posts(page):
    page.locator("#places").get_by_role("button", name=re.compile("^Gonaïves, HT")).click()
    expect(cards(page)).to_have_count(1)
    expect(cards(page).first).to_contain_text("no water in Gonaïves")


def test_the_country_holds_all_that_lies_in_it(page):
    page.locator("#place-name").fill("Haiti")
    page.keyboard.press("Enter")
    expect(cards(page)).to_have_count(6)
    expect(page.locator("#chips")).to_contain_text("in Haiti")


def test_a_place_that_nobody_knows_is_told_and_changes_nothing(page):
    page.locator("#place-name").fill("Xyzzyville")
    page.keyboard.press("Enter")
    expect(page.locator("#place-problem")).to_contain_text("no place is called 'Xyzzyville' here")
    expect(cards(page)).to_have_count(7)


def test_marks_that_would_lie_on_each_other_are_one_and_part_nearer_by(browser, server):
    for page in opened(browser, server, WIDE, "/?map=1&area=-60,-170,70,170"):
        [whole] = page.locator("#spots .spot").all()
        expect(whole).to_have_text("6")
        whole.click()
        expect(page.locator("#spots .spot").nth(2)).to_be_visible()


def test_only_what_the_map_shows_is_listed_when_somebody_asks_for_it(browser, server):
    for page in opened(browser, server, WIDE, "/?map=1&area=Jacmel"):
        expect(cards(page)).to_have_count(2)
        for _ in range(6):  # as far as Les Cayes and Gonaïves
            page.locator("#zoom-out").click()
        page.locator("#only-here").click()
        expect(page.locator("#chips")).to_contain_text("around 18.")
        expect(cards(page)).to_have_count(6)


def test_a_new_post_comes_onto_the_map_by_itself(page, server):
    expect(spot(page, "Jacmel")).to_have_text("2")
    server.call(lambda view: view.put_alerts([at("Jacmel", 70, "need.food")]))
    expect(spot(page, "Jacmel")).to_have_text("3")


@pytest.mark.parametrize(
    "area, painted",
    [
        ("22,4,24,6", True),
        ("-18.1,177.7,-17.6,178.3", True),
        ("65.5,-46,66.5,-44", True),
        ("29,-41,31,-39", False),
        ("67,-1,69,1", False),
    ],
)
def test_land_is_painted_and_the_sea_is_not(browser, server, area, painted):
    for page in opened(browser, server, WIDE, "/?map=1&area=22,4,24,6"):
        page.wait_for_function(f"() => ({PAINTED})()[3] === 255")  # land, so the outlines are there
        page.evaluate("area => history.replaceState(null, '', `?map=1&area=${area}`)", area)
        page.evaluate("dispatchEvent(new PopStateEvent('popstate'))")
        page.wait_for_function(f"opaque => ({PAINTED})()[3] === opaque", arg=255 if painted else 0)


def test_two_sides_of_the_date_line_are_neighbours(browser, server):
    fiji = [
        invent(n, "need.water", text="boat", at=time.time() - n, geo=Geo(-17.0, lon))
        for n, lon in ((81, 179.8), (82, -179.8))
    ]
    server.call(lambda view: view.put_alerts(fiji))
    for page in opened(browser, server, WIDE, "/?map=1&area=-18,179,-16,-179"):
        expect(cards(page)).to_have_count(2)
        left, right = (spot(page, f"around -17.00, {lon}").bounding_box()["x"] for lon in ("179.80", "-179.80"))
        assert 0 < right - left < 400


def test_the_map_is_moved_by_keys_and_by_dragging(page):
    expect(spot(page, "Jacmel")).to_be_visible()
    x, y = position(page, "Jacmel")
    page.locator("#chart").focus()
    page.keyboard.press("ArrowRight")
    assert position(page, "Jacmel") == pytest.approx((x - 80, y), abs=1)
    box = page.locator("#chart").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 50, box["y"] + 60)
    page.mouse.up()
    assert position(page, "Jacmel") == pytest.approx((x - 50, y + 40), abs=1)


def test_who_scrolls_past_the_map_does_not_zoom_it_and_who_stands_on_it_does(page):
    expect(spot(page, "Jacmel")).to_be_visible()
    before = [position(page, name) for name in ("Jacmel", "Gonaïves")]
    page.locator(".sheet").hover()
    page.mouse.wheel(0, -120)
    page.locator("#chart").focus()
    assert [position(page, name) for name in ("Jacmel", "Gonaïves")] == before
    page.evaluate("scrollTo(0, 0); document.querySelector('.feed').scrollTo(0, 0)")
    held = page.evaluate(MOVED)
    page.mouse.wheel(0, -120)
    page.wait_for_function(f"before => {MOVED} !== before", arg=held)
    after = [position(page, name) for name in ("Jacmel", "Gonaïves")]
    assert after[0][1] - after[1][1] == pytest.approx(2**0.5 * (before[0][1] - before[1][1]), rel=0.02)


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_the_map_is_readable_in_both_themes_and_every_part_has_a_name(browser, server, scheme):
    for page in opened(browser, server, WIDE, "/?map=1", color_scheme=scheme):
        expect(spot(page, "Jacmel")).to_be_visible()
        assert page.evaluate(LOW_CONTRAST) == []
        for button in page.locator("#map button").all():
            assert button.evaluate("b => b.textContent.trim() || b.ariaLabel")


def test_a_hostile_name_of_a_place_is_text(page, server):
    evil = NamedPlace("x", '<img src=x onerror="document.title=1">', "town", 18.4, -72.9, 5.0, 0.9)
    server.call(lambda view: view.put_alerts([invent(90, text="evil", at=time.time(), places=[evil])]))
    expect(page.locator("#places")).to_contain_text("<img src=x onerror")
    assert page.locator("#map img").count() == 0 and page.title() == "crisis streams"


@pytest.mark.parametrize("width", [320, 390, 768, 1024])
def test_the_map_fits_every_width(browser, server, width):
    for page in opened(browser, server, {"width": width, "height": 700}, "/?map=1"):
        expect(page.locator("#spots .spot").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_page_whose_area_is_no_place_shows_nothing_and_the_api_says_why(server):
    assert httpx.get(f"{server.url}/?area=Xyzzyville", timeout=PATIENCE_S).status_code == 200
    why = "no place is called 'Xyzzyville' here"
    for path in ("alerts", "towns"):
        refused = httpx.get(f"{server.url}/api/{path}?area=Xyzzyville", timeout=PATIENCE_S)
        assert refused.status_code == 400 and why in refused.text
    told = httpx.get(f"{server.url}/api/spots?area=Xyzzyville", timeout=PATIENCE_S).json()
    assert why in told["problem"] and told["standing"] == 7 and "box" not in told


def test_towns_of_an_area_are_told_biggest_first(server):
    told = httpx.get(f"{server.url}/api/towns?area=Haiti&n=3", timeout=PATIENCE_S).json()
    every = [p for p in Gazetteer.bundled().towns((17.9, -74.6, 20.2, -71.5), 500) if p.country == "HT"]
    assert [town["name"] for town in told] == [p.name for p in sorted(every, key=lambda p: -p.people)[:3]]


def test_a_mark_that_somebody_steps_to_moves_no_other_and_what_is_not_seen_is_not_stepped_to(browser, server):
    for page in opened(browser, server, WIDE, "/?map=1&area=Les Cayes"):
        expect(spot(page, "Les Cayes")).to_be_visible()
        expect(spot(page, "Jacmel")).to_be_hidden()
        before = position(page, "Les Cayes")
        page.locator("#chart").focus()
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.locator("#spots").evaluate("box => box.scrollTo(300, 0)")
        assert position(page, "Les Cayes") == before


def test_a_map_closed_before_anything_came_begins_where_most_posts_are_once_it_is_opened_again(browser, server):
    for page in opened(browser, server, WIDE):
        late = held_back(page, "**/api/spots*")
        with page.expect_request("**/api/spots*"):
            page.keyboard.press("m")
        page.keyboard.press("m")
        late[0].continue_()
        page.unroute("**/api/spots*")
        page.keyboard.press("m")
        expect(page.locator("#spots .spot")).to_have_count(5)  # at the scale of a country, not of the world


def test_posts_too_near_to_be_parted_are_reached_together(browser, server):
    here = Geo(18.2355, -72.5353)  # 200 m from what Jacmel is taken for
    server.call(lambda view: view.put_alerts([invent(95, text="at the market", at=time.time(), geo=here)]))
    for page in opened(browser, server, WIDE, "/?map=1&area=Jacmel"):
        expect(cards(page)).to_have_count(3)
        mark = page.locator("#spots .spot:not([hidden])")
        expect(mark).to_have_count(1)
        mark.click()
        expect(page.locator("#chips")).to_contain_text("around 18.2")
        expect(cards(page)).to_have_count(3)


def test_the_browsers_own_keys_stay_the_browsers(page):
    expect(spot(page, "Jacmel")).to_be_visible()
    before = position(page, "Jacmel")
    page.locator("#chart").focus()
    for key in ("Control+-", "Alt+ArrowUp"):
        page.keyboard.press(key)
    assert position(page, "Jacmel") == before


def test_a_drag_ends_where_the_button_was_let_go_unseen_and_another_button_drags_nothing(page):
    expect(spot(page, "Jacmel")).to_be_visible()
    before = position(page, "Jacmel")
    for button in (0, 2):
        page.evaluate(
            """button => {
              const sheet = document.querySelector(".sheet"), { x, y } = sheet.getBoundingClientRect();
              const send = (type, dx, more) => sheet.dispatchEvent(
                new PointerEvent(type, { pointerId: 1, clientX: x + dx, clientY: y + 20, bubbles: true, ...more }));
              send("pointerdown", 20, { button, buttons: button ? 2 : 1 });
              send("pointermove", 90, { button: -1, buttons: 0 });
            }""",
            button,
        )
    assert position(page, "Jacmel") == before
