"""What the page lists, as files: all of it that fits, and nothing that the page would not show."""

from __future__ import annotations

import csv
import io
import json
import time

import httpx
from playwright.sync_api import expect

from tests.dashboard.browsing import cards
from tests.dashboard.invented import invent
from tests.waiting import PATIENCE_S


def fetched(server, path: str) -> httpx.Response:
    answer = httpx.get(f"{server.url}{path}", timeout=PATIENCE_S)
    assert answer.status_code == 200 and "attachment" in answer.headers["content-disposition"]
    return answer


def rows(text: str) -> list[dict[str, str]]:
    heads, _, *found = csv.reader(io.StringIO(text.removeprefix("\ufeff")))
    return [dict(zip(heads, row, strict=True)) for row in found]


def test_all_that_fits_is_in_the_table_newest_first(server):
    answer = fetched(server, "/api/alerts.csv?kind=offer")
    assert answer.text.startswith("\ufeff") and answer.headers["content-type"] == "text/csv; charset=utf-8"
    shown = httpx.get(f"{server.url}/api/alerts?kind=offer&n=500", timeout=PATIENCE_S).json()["alerts"]
    assert [row["alert"] for row in rows(answer.text)] == [one["alert"]["alert_id"] for one in shown]


def test_all_that_fits_is_in_the_collection(server):
    answer = fetched(server, "/api/alerts.geojson?category=water")
    features = json.loads(answer.text)["features"]
    assert len(features) == 8 and {f["properties"]["category"] for f in features} == {"water"}
    assert answer.headers["content-type"] == "application/geo+json"


def test_neither_an_author_nor_a_withdrawn_text_nor_a_false_link_is_in_a_file(server):
    alert = invent(920, text="my street", at=time.time(), author="ada", url="javascript:alert(1)")
    gone = invent(921, text="deleted words", at=time.time(), status="withdrawn", withdrawn_because="deleted")
    server.call(lambda view: view.put_alerts([alert, gone]))
    for form in ("csv", "geojson"):
        told = fetched(server, f"/api/alerts.{form}").text
        assert "my street" in told and not any(hidden in told for hidden in ("ada", "javascript", "deleted words"))


def test_an_area_that_is_none_is_refused(server):
    answer = httpx.get(f"{server.url}/api/alerts.csv?area=Xyzzyville", timeout=PATIENCE_S)
    assert answer.status_code == 400 and "no place is called" in answer.text


def test_the_page_offers_what_it_lists(page):
    page.locator("#langs button", has_text="Arabic").click()
    expect(cards(page)).to_have_count(4)
    with page.expect_download() as waiting:
        page.get_by_role("link", name="CSV").click()
    found = rows(waiting.value.path().read_text(encoding="utf-8"))
    assert len(found) == 4 and {row["language"] for row in found} == {"ar"}
    assert waiting.value.suggested_filename.startswith("alerts-")
