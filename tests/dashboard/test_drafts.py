"""A new query from the page: seen before it is saved, in a real browser, then live."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping

import httpx
import pytest
from playwright.sync_api import Browser, expect

from models.errors import QueryError
from models.filters import Where
from models.moments import rfc3339
from models.queries import Query
from models.records import Post
from streams.broker.queries import Changed, change_query, publish_queries, read_queries
from streams.broker.topics import make_topics
from streams.config import Settings, load_settings
from streams.dashboard.drafts import Draft, Drafts
from streams.dashboard.lessons import Lessons
from tests.dashboard.browsing import opened
from tests.dashboard.serving import Served, frame, served
from tests.outputs.invented import invent
from tests.outputs.topics import fresh_prefix
from tests.waiting import PATIENCE_S, wait_until

NOW = time.time()
KNOWN = Query("need.roof", "need", "roof", "Roof", {"en": ["people trapped under a collapsed roof"]}, threshold=0.3)
POSTS = [
    Post("s1", "people trapped under a collapsed roof", NOW - 7000, NOW - 7000, "en", "sms"),
    Post("s2", "send a boat to the roof", NOW - 3000, NOW - 3000, "en", "sms"),
    Post("s3", "send a boat to the roof", NOW - 2000, NOW - 2000, "es", "web"),
    Post("s4", "what a lovely sunny morning", NOW + 3e6, NOW, "en", "sms"),  # from a clock that is a month ahead
]
DRAFT = {"query_id": "need.boats", "sentences": ["send a boat to the roof"], "probability": 0.5}


@pytest.fixture
def settings(embedded_broker: str, embedded_redis_url: str) -> Settings:
    made = load_settings(
        redis={"url": embedded_redis_url}, broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix()}
    )
    make_topics(made)
    publish_queries(made, {KNOWN.id: KNOWN})
    return made


@pytest.fixture
def server(settings: Settings) -> Iterator[Served]:
    with served(settings, [frame(POSTS)]) as running:
        yield running


def sent(server: Served, path: str, **changes: object) -> httpx.Response:
    return httpx.post(f"{server.url}{path}", json=DRAFT | changes, timeout=PATIENCE_S)


def test_what_a_query_would_have_alerted_is_told_and_nothing_is_saved(server, settings):
    found = sent(server, "/api/queries/try").json()
    assert (found["query_id"], found["posts"], found["alerts"]) == ("need.boats", 4, 2)
    assert {one["text"] for one in found["examples"]} == {"send a boat to the roof"}
    assert found["hours"] == pytest.approx(7000 / 3600, abs=0.01)
    assert sum(found["by_hour"].values()) == 2 and found["alerts_an_hour"] == pytest.approx(2 / found["hours"], abs=0.1)
    spanish = sent(server, "/api/queries/try", where={"languages": ["es"]}).json()
    assert [one["lang"] for one in spanish["examples"]] == ["es"]
    lately = sent(server, "/api/queries/try", last_h=0.7).json()
    assert (lately["posts"], lately["alerts"]) == (2, 1)
    assert lately["hours"] == pytest.approx(2000 / 3600, abs=0.01) and lately["alerts_an_hour"] == pytest.approx(1.8)
    unheard = sent(server, "/api/queries/try", where={"sources": ["twiter", "sms"]}).json()["unheard"]
    assert unheard == "None of these posts came from twiter; they came from sms, web."
    both = sent(server, "/api/queries/try", sentences=["people trapped under a collapsed roof"]).json()
    assert both["already"] == both["alerts"] == 1
    assert set(read_queries(settings)) == {"need.roof"}


def test_what_is_saved_is_what_was_tried_and_nobody_elses_query_is_changed(server, settings):
    where = {"languages": ["en"], "sources": ["sms"], "must": ["boat*"], "must_not": ["drill"], "area": [1, 2, 3, 4]}
    more = {"where": where, "expires": (end := rfc3339(NOW + 86_400))}
    assert sent(server, "/api/queries", **more).json()["id"] == "need.boats"
    saved = read_queries(settings)["need.boats"]
    assert saved.where == Where(["en"], ["sms"], [1, 2, 3, 4], ["boat*"], ["drill"])
    assert (saved.probability, saved.expires, saved.label) == (0.5, end, "Boats")
    again = sent(server, "/api/queries", sentences=["something else"])
    assert again.status_code == 400 and "already" in again.text
    assert saved == read_queries(settings)["need.boats"]


def test_an_area_is_given_by_name_and_posts_that_name_a_place_there_count(server, settings):
    found = sent(server, "/api/queries/try", area="Jacmel").json()
    assert (found["place"], found["alerts"]) == ("Jacmel, Sud-Est, HT", 0)
    unclear = sent(server, "/api/queries", area="Springfield")
    assert unclear.status_code == 400 and "Springfield, Illinois, US" in unclear.text
    saved = sent(server, "/api/queries", area="Jacmel").json()
    assert saved["where"]["place"] == "Jacmel, Sud-Est, HT" and len(saved["where"]["area"]) == 4


def test_which_words_move_an_alert_is_said_of_those_on_the_board(server, settings):
    alert = invent(query=KNOWN.id, text="people trapped under a collapsed roof")
    server.call(lambda view: view.put_alerts([alert]))
    wait_until(lambda: httpx.get(f"{server.url}/api/alerts", timeout=PATIENCE_S).json()["total"] == 1)
    found = httpx.get(f"{server.url}/api/words", params={"alert": alert.alert_id}, timeout=PATIENCE_S).json()["moved"]
    assert [(word["start"], word["end"]) for word in found["words"]][:2] == [(0, 6), (7, 14)]
    assert found["rest"] + sum(word["by"] for word in found["words"]) == pytest.approx(found["log_odds"], abs=1e-2)
    gone = httpx.get(f"{server.url}/api/words", params={"alert": "0" * 32}, timeout=PATIENCE_S).json()
    assert "not on the board" in gone["problem"]


REFUSED: list[dict] = [
    {"query_id": "boats"},
    {"query_id": "need.b ts"},
    {"sentences": [" "]},
    {"sentences": ["x"] * 51},
    {"lang": "<b>"},
    {"lang": "xx"},
    {"where": {"area": [9, 9]}},
    {"where": {"colour": ["red"]}},
    {"where": {"languages": ["fil", "no"]}},
    {"probability": 2.0},
    {"alerts_per_hour": 5},
    {"target_precision": 0.8},
    {"target_precision": 80},
    {"expires": "tomorrow"},
    {"expires": "2020-01-01T00:00:00Z"},
    {"threshold": 0.1},
]


def test_a_draft_that_is_no_query_is_refused_and_says_why(server, settings):
    for changes in REFUSED:
        for path in ("/api/queries/try", "/api/queries"):
            answer = sent(server, path, **changes)
            assert answer.status_code == 400 and answer.text.strip(), changes
    assert set(read_queries(settings)) == {"need.roof"}


def test_a_bundled_query_that_was_removed_is_not_made_anew_of_a_sentence(server, settings):
    answer = sent(server, "/api/queries", query_id="need.search_rescue")
    assert answer.status_code == 400 and "`crisis query add need.search_rescue`" in answer.text
    assert set(read_queries(settings)) == {"need.roof"}


def test_of_two_who_save_one_name_at_the_same_time_the_first_has_it(settings):
    first, second = Draft("need.boats", ["send a boat"]), Draft("need.boats", ["a boat, please"])

    def change(settings: Settings, query_id: str, new: Callable) -> Changed:
        def read_by_both(known: Mapping[str, Query]) -> Query:
            made = new(known)
            publish_queries(settings, {query_id: first.query()})
            return made

        return change_query(settings, query_id, read_by_both)

    with pytest.MonkeyPatch.context() as patched, pytest.raises(QueryError, match="already"):
        patched.setattr("streams.dashboard.drafts.change_query", change)
        asyncio.run(Drafts(settings, None, Lessons(settings)).saved(second))
    assert read_queries(settings)["need.boats"] == first.query()


def test_nobody_elses_page_can_make_a_query(server, settings):
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        for path in ("/api/queries/try", "/api/queries"):
            answer = httpx.post(f"{server.url}{path}", json=DRAFT, headers=headers, timeout=PATIENCE_S)
            assert answer.status_code == 403
    assert set(read_queries(settings)) == {"need.roof"}


def test_a_query_is_typed_looked_at_and_saved(browser: Browser, server, settings):
    for page in opened(browser, server, {"width": 1440, "height": 900}):
        page.locator(".drafting summary").first.click()
        form = page.locator("#draft")
        form.get_by_label("named").fill("boats")
        form.get_by_label("Sentences").fill("send a boat to the roof")
        form.get_by_text("Only posts …").click()
        form.get_by_label("of sources").fill("sms, radio")
        form.get_by_role("button", name="Show what it would have alerted").click()
        expect(page.locator("#draft-told")).to_contain_text("1 alert and")
        expect(page.locator("#draft-told")).to_contain_text("None of these posts came from radio")
        expect(page.locator("#draft-told")).to_contain_text("Nothing was saved")
        expect(page.locator("#draft-alerts li")).to_have_count(1)
        expect(page.locator("#draft-alerts li")).to_contain_text("send a boat to the roof")
        expect(page.locator("#draft-hours li")).to_have_count(1)
        assert set(read_queries(settings)) == {"need.roof"}
        form.get_by_role("button", name="Save").click()
        expect(page.locator("#draft-told")).to_have_text("need.boats is live.")
        wait_until(lambda: set(read_queries(settings)) == {"need.roof", "need.boats"})
        assert read_queries(settings)["need.boats"].where == Where(sources=["sms", "radio"])


def test_a_query_ends_by_the_servers_clock_whatever_the_laptop_says(browser: Browser, server, settings):
    for page in opened(browser, server, {"width": 1440, "height": 900}):
        page.evaluate("() => { const now = Date.now.bind(Date); Date.now = () => now() - 65 * 60000; }")
        expect(page.locator("#link-text")).to_contain_text("clock is 65 min behind")
        page.locator(".drafting summary").first.click()
        form = page.locator("#draft")
        form.get_by_label("named").fill("boats")
        form.get_by_label("Sentences").fill("send a boat to the roof")
        form.get_by_label("ends in").fill("1")
        form.get_by_role("button", name="Save").click()
        expect(page.locator("#draft-told")).to_have_text("need.boats is live.")
        assert read_queries(settings)["need.boats"].expires_at == pytest.approx(time.time() + 3600, abs=PATIENCE_S)
