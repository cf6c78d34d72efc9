"""Teaching from the page: its API and, in a real browser, one key each."""

from __future__ import annotations

import contextlib
import csv
import io
import re
import time
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from models.moments import rfc3339
from models.records import Reading
from streams.broker.labels import read_labels
from streams.broker.topics import make_topics
from streams.config import Settings, load_settings
from streams.dashboard.categories import bundled_categories
from tests.dashboard.browsing import cards, opened, until_open
from tests.dashboard.invented import invent, several
from tests.dashboard.seeding import fill
from tests.dashboard.serving import Served, served
from tests.outputs.topics import fresh_prefix
from tests.waiting import PATIENCE_S, wait_until

CLIENT = httpx.Client(timeout=PATIENCE_S)
GET, POST = CLIENT.get, CLIENT.post


@pytest.fixture
def settings(embedded_broker: str, embedded_redis_url: str) -> Settings:
    made = load_settings(
        redis={"url": embedded_redis_url}, broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix()}
    )
    make_topics(made)
    return made


@pytest.fixture
def server(settings: Settings) -> Iterator[Served]:
    with served(settings) as running:
        now = time.time()
        running.call(lambda view: fill(view, several(12, now), now))
        until_open(running, 12)
        wait_until(lambda: GET(f"{running.url}/api/taught").json()["problem"] == "")
        yield running


def test_a_verdict_is_taught_measured_and_taken_back(server, settings):
    shown = GET(f"{server.url}/api/alerts").json()["alerts"]
    alert = next(one["alert"] for one in shown if one["alert"]["level"] == "alert")
    sent = {"alert_id": alert["alert_id"], "verdict": "wrong", "by": "Ada"}
    assert POST(f"{server.url}/api/labels", json=sent).json()["text"] == alert["post"]["text"]
    (kept,) = read_labels(settings).values()
    assert (kept.post_id, kept.query_id, kept.verdict, kept.level) == (
        alert["post"]["id"],
        alert["query_id"],
        "wrong",
        "alert",
    )
    taught = GET(f"{server.url}/api/taught").json()
    assert taught["said"] == {kept.key: ["wrong", "Ada", ""]} and taught["total"] == 1
    (measured,) = taught["precision"]
    assert (measured["right"], measured["judged"]) == (0, 1) and 0.7 < measured["high"] < 0.85
    assert taught["ask"] and alert["alert_id"] not in taught["ask"]
    back = {"post_id": kept.post_id, "query_id": kept.query_id}
    assert POST(f"{server.url}/api/labels/undo", json=back).status_code == 204
    assert read_labels(settings) == {}
    assert POST(f"{server.url}/api/labels/undo", json=back).status_code == 400


@pytest.fixture
def say(server):
    """Say something of the newest alert, as a program does; gives (status, answer)."""
    alert = GET(f"{server.url}/api/alerts").json()["alerts"][0]["alert"]
    reading = {"post_id": alert["post"]["id"], "query_id": alert["query_id"]}

    def said(by: str, verdict: str, **more: object) -> tuple[int, dict | str | None]:
        body = {"alert_id": alert["alert_id"], "verdict": verdict, "by": by} | more
        path, body = ("/undo", reading | more) if verdict == "undo" else ("", body)
        answer = POST(f"{server.url}/api/labels{path}", json=body)
        return answer.status_code, answer.json() if answer.status_code == 200 else answer.text

    return said


def test_two_who_say_the_same_are_one_word_of_the_first_and_a_later_one_gives_the_earlier_back(say, settings):
    assert say("Ada", "handled")[0] == 200
    for seen in ({}, {"seen": None}, {"seen": ["handled", "Ada", ""]}):  # whatever Ben saw when he said so
        status, stands = say("Ben", "handled", **seen)
        assert (status, stands["by"]) == (200, "Ada")
    assert say("Ben", "wrong")[1]["replaced"]["by"] == "Ada"
    assert say("Ben", "none")[1]["replaced"]["by"] == "Ada"  # of his own two words neither is kept for the other
    status, stands = say("", "undo")
    assert (status, stands["by"], stands["verdict"]) == (200, "Ada", "handled")
    assert [(x.by, x.replaced) for x in read_labels(settings).values()] == [("Ada", None)]
    assert say("", "undo")[0] == 204
    assert read_labels(settings) == {}


def test_who_did_not_see_what_stands_there_now_changes_nothing_and_is_told(say, settings):
    say("Ada", "handled")
    for seen in (None, ["right", "Ada", ""], ["handled", "Eve", ""]):
        for verdict in ("wrong", "undo"):
            status, told = say("Ben", verdict, seen=seen)
            assert status == 409 and told.startswith("Ada said meanwhile: handled.")
    assert [x.by for x in read_labels(settings).values()] == ["Ada"]
    assert say("Ben", "wrong", seen=["handled", "Ada", ""])[0] == 200
    assert say("Ada", "undo", seen=["wrong", "Ben", ""])[0] == 200
    assert say("Ada", "undo", seen=["handled", "Ada", ""])[0] == 204
    status, told = say("Ben", "right", seen=["handled", "Ada", ""])
    assert status == 409 and told.startswith("what stood there was taken back meanwhile.")
    assert say("Ben", "right", seen=["maybe", "Ada", ""])[0] == 400


def test_a_file_of_what_is_listed_says_who_judged_what_and_when(server, say):
    before = rfc3339(time.time())
    say("Ada", "wrong")
    heads, _, *rows = csv.reader(io.StringIO(GET(f"{server.url}/api/alerts.csv").text.removeprefix("\ufeff")))
    told = [dict(zip(heads, row, strict=True)) for row in rows]
    features = GET(f"{server.url}/api/alerts.geojson").json()["features"]
    for found in (
        [(row["judged"], row["judged by"], row["judged at"]) for row in told if row["judged"]],
        [(p["judged"], p["judged_by"], p["judged_at"]) for p in (f["properties"] for f in features) if p["judged"]],
    ):
        ((verdict, by, at),) = found
        assert (verdict, by) == ("wrong", "Ada") and before <= at <= rfc3339(time.time())
    assert len(told) == len(features) == 12


def test_what_somebody_takes_care_of_leaves_every_open_map(browser, server):
    shown = GET(f"{server.url}/api/alerts").json()["alerts"]
    placed = [one["alert"] for one in shown if one["alert"]["post"].get("geo")]
    assert placed
    for page in opened(browser, server, {"width": 1440, "height": 900}, "/?map=1"):
        expect(page.locator("#map-note")).to_contain_text(f"{len(placed)} of 12 posts")
        sent = {"alert_id": placed[0]["alert_id"], "verdict": "handled", "by": "Ada"}
        assert POST(f"{server.url}/api/labels", json=sent).status_code == 200
        expect(page.locator("#map-note")).to_contain_text(f"{len(placed) - 1} of 11 posts")


def test_nobody_elses_page_can_teach(server, settings):
    alert = GET(f"{server.url}/api/alerts").json()["alerts"][0]["alert"]
    sent = {"alert_id": alert["alert_id"], "verdict": "wrong", "by": "Eve"}
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
        assert POST(f"{server.url}/api/labels", json=sent, headers=headers).status_code == 403
    assert POST(f"{server.url}/api/labels", data=sent).status_code == 403  # what a form can send
    for wrong in (
        {"alert_id": "no such"},
        {"verdict": "maybe"},
        {"by": ""},
        {"by": "x" * 9000},
        {"text": "my own words"},
    ):
        assert POST(f"{server.url}/api/labels", json=sent | wrong).status_code == 400
    assert read_labels(settings) == {}


def test_one_key_teaches_the_next_card_follows_and_the_same_key_takes_it_back(browser: Browser, server, settings):
    for page in opened(browser, server, {"width": 1440, "height": 900}):
        expect(cards(page)).to_have_count(12)
        page.keyboard.press("j")
        page.keyboard.press("w")
        page.locator("#who-name").fill("Ada")
        page.keyboard.press("Enter")
        first, second = cards(page).nth(0), cards(page).nth(1)
        expect(first.locator(".verdicts .v-wrong")).to_have_attribute("aria-pressed", "true")
        expect(first.locator(".said")).to_have_text("says Ada")
        page.keyboard.press("k")  # whichever was focused when the dialog closed: back to the first
        page.keyboard.press("k")
        page.keyboard.press("r")  # asked for the name once only
        expect(second).to_be_focused()
        page.keyboard.press("n")
        expect(second.locator(".verdicts .v-none")).to_have_attribute("aria-pressed", "true")
        wait_until(lambda: sorted(x.verdict for x in read_labels(settings).values()) == ["none", "right"])
        page.locator(".teaching summary").click()
        expect(page.locator("#lessons li")).to_have_count(2)
        page.locator("#lessons li", has_text="not a need").get_by_role("button").click()
        expect(page.locator("#lessons li")).to_have_count(1)
        expect(second.locator(".verdicts .v-none")).to_have_attribute("aria-pressed", "false")
        page.keyboard.press("Escape")
        page.keyboard.press("j")
        page.keyboard.press("r")
        wait_until(lambda: not read_labels(settings))


@pytest.mark.parametrize("key, words, sign", [("n", "not a need", ".v-none"), ("h", "handled", ".v-handled")])
def test_a_judged_card_folds_to_what_was_said_opens_on_request_and_comes_back(
    browser: Browser, server, settings, key, words, sign
):
    for page in opened(browser, server, {"width": 1440, "height": 900}):
        page.evaluate("localStorage.setItem('who', 'Ana')")
        page.reload()
        expect(cards(page)).to_have_count(12)
        needs = int(page.locator("#needs-total").inner_text())
        page.keyboard.press("j")
        first = cards(page).nth(0)
        page.keyboard.press("Enter")
        page.keyboard.press(key)
        expect(cards(page).nth(1)).to_be_focused()
        expect(first).not_to_have_class(re.compile(r"\bwhole\b"))
        expect(first.locator(".text")).to_be_hidden()
        expect(first.locator(".category")).to_be_visible()
        expect(first.locator(".verdicts button:visible .word")).to_have_text(words)
        expect(first.locator(".said")).to_have_text("says Ana")
        assert first.bounding_box()["height"] < 45
        open_now = {"need": needs - 1, "offer": needs}[first.locator(".kind").get_attribute("data-value")]
        expect(page.locator("#needs-total")).to_have_text(str(open_now))
        expect(page.locator("#count")).to_have_text("11 posts stand")
        page.keyboard.press("k")
        page.keyboard.press("Enter")
        expect(first.locator(".text")).to_be_visible()
        page.keyboard.press("Enter")
        expect(first.locator(".text")).to_be_hidden()
        first.click(position={"x": 8, "y": 20})
        expect(first.locator(".text")).to_be_visible()
        first.locator(".text").click()
        expect(first.locator(".text")).to_be_hidden()
        first.locator(sign).click()  # the same word once more takes it back
        expect(first.locator(".text")).to_be_visible()
        expect(page.locator("#count")).to_have_text("12 posts stand")


@pytest.fixture
def two(browser: Browser, server) -> Iterator[tuple[Page, Page]]:
    """The page as Ada and as Ben have it open, each on the first card."""
    with contextlib.ExitStack() as stack:
        pages = []
        for name in ("Ada", "Ben"):
            context = stack.enter_context(browser.new_context(viewport={"width": 1440, "height": 900}))
            context.set_default_timeout(1000 * PATIENCE_S)
            context.add_init_script(f"localStorage.setItem('who', '{name}')")
            page = context.new_page()
            page.goto(server.url)
            expect(cards(page)).to_have_count(12)
            expect(page.locator("#link")).to_have_attribute("data-state", "live")
            page.keyboard.press("j")
            expect(cards(page).nth(0)).to_be_focused()
            pages.append(page)
        yield pages[0], pages[1]


def stands(settings: Settings) -> list[tuple[str, str]]:
    return [(label.by, label.verdict) for label in read_labels(settings).values()]


def test_two_colleagues_who_say_the_same_do_not_undo_each_other(two, settings):
    ada, ben = two
    ada.keyboard.press("h")
    said = cards(ben).nth(0).locator(".said")
    expect(said).to_have_text("says Ada")  # it came to his page
    ben.keyboard.press("h")
    expect(ben.locator("#say")).to_have_text("Ada says so already")
    expect(said).to_contain_text("Ada")  # who says so; "already" until the topic tells of the label once more
    expect(cards(ben).nth(0)).to_be_focused()
    expect(cards(ben).nth(0)).to_have_class(re.compile(r"\bjudged\b"))
    assert stands(settings) == [("Ada", "handled")]


def test_over_what_somebody_takes_care_of_one_is_asked_first_and_what_one_takes_back_gives_it_back(two, settings):
    ada, ben = two
    ada.keyboard.press("h")
    said, asked = cards(ben).nth(0).locator(".said"), ben.get_by_role("dialog", name="Ada takes care of this")
    expect(said).to_have_text("says Ada")
    for leave in ("Enter", "Escape"):
        ben.keyboard.press("r")
        expect(asked).to_be_visible()
        ben.keyboard.press(leave)
        expect(asked).to_have_count(0)
        expect(cards(ben).nth(0)).to_be_focused()
    assert stands(settings) == [("Ada", "handled")]
    ben.keyboard.press("w")
    asked.get_by_role("button", name="Yes, wrong").click()
    expect(said).to_have_text("says Ben")
    expect(cards(ada).nth(0).locator(".said")).to_have_text("says Ben")
    assert stands(settings) == [("Ben", "wrong")]
    ben.keyboard.press("k")
    ben.keyboard.press("w")  # his own word once more takes it back
    expect(said).to_have_text("says Ada")
    assert stands(settings) == [("Ada", "handled")]


def test_who_speaks_before_the_others_word_has_come_to_his_page_is_told_and_shown_it(two, settings):
    ada, ben = two
    known = ben.evaluate("fetch('/api/taught').then((answer) => answer.text())")
    old = [known]  # what Ben's page hears until he speaks: it asks again whenever the topic tells of a label
    ben.route(
        "**/api/taught",
        lambda route: route.fulfill(body=known, content_type="application/json") if old else route.continue_(),
    )
    ada.keyboard.press("h")
    wait_until(lambda: stands(settings) == [("Ada", "handled")])
    first = cards(ben).nth(0)
    ben.keyboard.press("h")
    expect(ben.locator("#say")).to_have_text("Ada says so already")  # the card hears the old state again in a moment
    ben.reload()
    expect(cards(ben)).to_have_count(12)
    expect(first.locator(".said")).to_have_text("")
    ben.on("request", lambda request: old.clear() if request.method == "POST" else None)
    ben.keyboard.press("j")
    ben.keyboard.press("w")
    expect(ben.locator("#problem")).to_contain_text("Ada said meanwhile: handled.")
    expect(first.locator(".said")).to_have_text("says Ada")
    expect(first.locator(".v-handled")).to_have_attribute("aria-pressed", "true")
    assert stands(settings) == [("Ada", "handled")]


def test_in_a_crowd_a_judged_card_gives_the_face_to_one_that_nobody_judged(browser: Browser, server, settings):
    crowd = [
        invent(n, text=f"one of three {n}", at=time.time() + n, post_id=f"x:{n}/1", cluster_id="c-three")
        for n in range(3)
    ]
    server.call(lambda view: view.put_alerts(crowd))
    until_open(server, 15)
    for page in opened(browser, server, {"width": 1440, "height": 900}):
        page.evaluate("localStorage.setItem('who', 'Ana')")
        page.reload()
        expect(cards(page)).to_have_count(15)
        seen = page.locator('#list > .card[data-crowd^="c-three"]').locator("visible=true")
        page.keyboard.press("j")
        for n in range(3):
            expect(seen).to_have_attribute("data-post", f"x:{n}/1")
            expect(seen).to_be_focused()
            expect(seen.locator(".crowd")).to_contain_text("+2 more")
            page.keyboard.press("w")
        expect(seen).to_have_count(1)
        expect(seen).to_have_attribute("data-post", "x:0/1")  # all are judged: it is told, not hidden
        expect(seen.locator(".said")).to_have_text("says Ana")
        expect(cards(page).locator("visible=true").nth(1)).to_be_focused()
        page.reload()
        expect(seen).to_have_attribute("data-post", "x:0/1")
        page.locator('#list [data-post="x:0/1"] .crowd').click()
        expect(seen).to_have_count(3)
        page.locator('#list [data-post="x:1/1"] .v-wrong').click()
        expect(seen.first).to_have_attribute("data-post", "x:1/1")


def test_of_the_readings_of_one_post_an_unjudged_one_keeps_the_text(browser: Browser, server, settings):
    at = time.time()
    both = [
        invent(95, query, text="a tent and water, please", score=score, at=at)
        for query, score in (("need.water", 0.55), ("need.shelter", 0.71))
    ]
    server.call(lambda view: view.put_alerts(both))
    until_open(server, 14)
    for page in opened(browser, server, {"width": 1440, "height": 900}):
        page.evaluate("localStorage.setItem('who', 'Ana')")
        page.reload()
        expect(cards(page)).to_have_count(14)
        page.keyboard.press("j")
        page.keyboard.press("w")
        expect(cards(page).nth(0)).to_be_focused()
        expect(cards(page).nth(0).locator(".category")).to_have_text("Water")
        expect(cards(page).nth(0).locator(".text")).to_be_visible()
        expect(cards(page).nth(1).locator(".said")).to_have_text("says Ana")


@pytest.fixture
def asking(server) -> Iterator[Served]:
    """The same dashboard, with an alert on top whose post was also read as two other needs."""
    also = [Reading("need.food", "alert", 0.58), Reading("need.shelter", "suggestion", 0.31)]
    made = invent(500, "need.water", text="we have nothing left to cook", also=also, at=time.time())
    server.call(lambda view: view.put_alerts([made]))
    until_open(server, 13)
    yield server


def told(settings) -> list[tuple[str, str]]:
    return [(said.verdict, said.instead) for said in read_labels(settings).values()]


def test_of_another_category_one_says_which_the_further_readings_first_and_it_is_taught(
    browser: Browser, asking, settings
):
    for page in opened(browser, asking, {"width": 1440, "height": 900}):
        expect(cards(page)).to_have_count(13)
        dialog, choice = page.locator("#which"), page.locator("#which option")
        page.keyboard.press("j")
        page.keyboard.press("o")
        page.locator("#who-name").fill("Ada")
        page.keyboard.press("Enter")
        expect(dialog).to_be_visible()
        assert choice.all_inner_texts()[:2] == ["1 Need: Food, 58 %", "2 Need: Shelter, 31 %"]
        queries = choice.evaluate_all("all => all.map((one) => one.value)")
        listed = [f"{kind}.{c.category}" for c in bundled_categories() for kind in c.kinds]
        assert sorted(queries) == sorted({*listed, "-"} - {"need.water"})  # each once, and not the one it is not
        assert [q.split(".")[0] for q in queries[2:10]] == ["need"] * 8  # those of its own kind before the others
        page.keyboard.press("Enter")  # chose nothing yet
        expect(dialog).to_be_visible()
        page.keyboard.press("2")
        expect(dialog).to_be_hidden()
        expect(cards(page).nth(0).locator(".said")).to_have_text("says Ada: Need: Shelter")
        expect(cards(page).nth(1)).to_be_focused()
        wait_until(lambda: told(settings) == [("other", "need.shelter")])
        page.locator(".teaching summary").click()
        expect(page.locator("#lessons li")).to_contain_text("Need: Drinking water → Need: Shelter")
        page.reload()  # what was said instead is known to whoever comes later
        expect(cards(page).nth(0).locator(".said")).to_have_text("says Ada: Need: Shelter")


def test_arrows_choose_another_category_and_escape_leaves_without_teaching(browser: Browser, asking, settings):
    for page in opened(browser, asking, {"width": 1440, "height": 900}):
        page.evaluate("localStorage.setItem('who', 'Ada')")
        page.reload()
        expect(cards(page)).to_have_count(13)
        dialog, first = page.locator("#which"), cards(page).nth(0)
        page.keyboard.press("j")
        page.keyboard.press("o")
        expect(dialog).to_be_visible()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        expect(first).to_be_focused()
        expect(first.locator(".v-other")).to_have_attribute("aria-pressed", "false")
        first.locator(".v-other").click()  # the same question by mouse; what was chosen before is forgotten
        expect(dialog).to_be_visible()
        assert page.evaluate("document.querySelector('#which-list').selectedIndex") == -1
        asking.call(lambda view: view.put_alerts([invent(501, text="came meanwhile", at=time.time())]))
        expect(page.locator("#more-news")).to_have_text("↑ 1 new alert")  # the list waits for the answer
        assert told(settings) == []
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(dialog).to_be_hidden()
        wait_until(lambda: told(settings) == [("other", "need.food")])
        first.locator(".v-other").click()  # the same word once more takes it back, and asks nothing
        wait_until(lambda: told(settings) == [])
        expect(dialog).to_be_hidden()


def test_a_category_that_is_not_listed_is_taught_as_another_without_a_name(browser: Browser, asking, settings):
    for page in opened(browser, asking, {"width": 390, "height": 800}):
        page.evaluate("localStorage.setItem('who', 'Ada')")
        page.reload()
        expect(cards(page)).to_have_count(13)
        page.keyboard.press("j")
        page.keyboard.press("o")
        page.locator("#which-list").select_option("-")
        page.get_by_role("button", name="Teach", exact=True).click()
        wait_until(lambda: told(settings) == [("other", "")])
