"""Clusters on the page in a real browser: the names of its cards' clusters, and what was merged."""

from __future__ import annotations

import time

import httpx
from playwright.sync_api import expect

from models.moments import rfc3339
from models.records import ClusterEvent
from tests.dashboard.browsing import address, cards, opened
from tests.dashboard.invented import invent
from tests.waiting import wait_until

WIDE = {"width": 1440, "height": 900}


def told(cluster: str, version: int, label: str, what: str = "grow", **more: object) -> ClusterEvent:
    now = rfc3339(time.time())
    return ClusterEvent(what, cluster, version, 2, 2.0, now, now, label, "static-1", **more)


def test_cards_name_their_clusters_though_the_list_beside_has_only_those_that_grow(browser, server):
    made = [told(f"quiet{n}", 1, f"quiet street {n}") for n in range(40)]
    server.call(lambda view: view.put_clusters(made))
    server.call(
        lambda view: view.put_alerts([invent(800 + n, at=time.time(), cluster_id=f"quiet{n}") for n in range(40)])
    )
    for page in opened(browser, server, WIDE):
        expect(page.locator("#list .in-cluster:visible", has_text="quiet street")).to_have_count(40)
        expect(page.locator("#list .in-cluster:visible", has_text="cluster quiet")).to_have_count(0)


def test_a_link_to_a_cluster_that_was_merged_shows_the_one_it_is_in_and_new_alerts_of_that(browser, server):
    alerts = [invent(700 + n, text=f"roof {n}", at=time.time(), cluster_id="ab"[n % 2] * 4) for n in range(6)]
    server.call(lambda view: view.put_alerts(alerts))
    server.call(lambda view: view.put_clusters([told("aaaa", 1, "a roof"), told("bbbb", 1, "roofs")]))
    for page in opened(browser, server, WIDE, "/?cluster=aaaa"):
        expect(cards(page)).to_have_count(3)
        server.call(
            lambda view: view.put_clusters([told("aaaa", 2, "a roof", "merge", into="bbbb"), told("bbbb", 2, "roofs")])
        )
        wait_until(lambda: httpx.get(f"{server.url}/api/alerts?cluster=aaaa").json()["total"] == 6)
        page.reload()
        expect(cards(page)).to_have_count(6)
        assert address(page) == "?cluster=bbbb"
        expect(page.locator(".cluster[data-id=bbbb]")).to_be_visible()
        server.call(lambda view: view.put_alerts([invent(710, text="a late one", at=time.time(), cluster_id="aaaa")]))
        expect(cards(page)).to_have_count(7)
        expect(page.locator("#list .in-cluster:visible", has_text="roofs (2)")).not_to_have_count(0)


def test_the_cards_of_a_cluster_that_is_merged_go_over_to_the_other_and_so_does_who_looks_at_it(browser, server):
    alerts = [invent(720 + n, text=f"roof {n}", at=time.time(), cluster_id="ab"[n % 2] * 4) for n in range(6)]
    server.call(lambda view: view.put_alerts(alerts))
    server.call(lambda view: view.put_clusters([told("aaaa", 1, "a roof"), told("bbbb", 1, "roofs")]))
    merge = told("aaaa", 2, "a roof", "merge", into="bbbb")
    for page in opened(browser, server, WIDE, "/"):
        expect(page.locator("#list .in-cluster", has_text="a roof (2)")).to_have_count(3)
        server.call(lambda view: view.put_clusters([merge]))
        page.evaluate("import('/static/clusters.js').then((m) => m.merged({ cluster_id: 'aaaa', into: 'bbbb' }))")
        expect(page.locator("#list .in-cluster", has_text="roofs (2)")).to_have_count(6)
        assert {made.get_attribute("data-crowd") for made in cards(page).filter(has_text="roof ").all()} == {
            "bbbb need.water"
        }
    for page in opened(browser, server, WIDE, "/?cluster=bbbb"):
        page.evaluate("import('/static/clusters.js').then((m) => m.merged({ cluster_id: 'bbbb', into: 'cccc' }))")
        expect(page.locator("#empty")).to_be_visible()
        assert address(page) == "?cluster=cccc"


def test_clusters_that_come_with_alerts_name_their_cards_and_the_one_looked_at_stands_whole_in_the_list(page, server):
    name = {"cluster_id": "named", "version": 1, "posts": 900, "label": "a name", "first_at": "2026-01-01T00:00:00Z"}
    whole = {**name, "last_at": name["first_at"], "medoid": {"post_id": "p", "text": "its example", "lang": "en"}}
    known = "import('/static/known.js').then(({ known }) => known.clusters.get('named')?.medoid?.text ?? '')"
    for learnt, medoid in ((name, ""), (whole, "its example"), (name, "its example")):
        page.evaluate(
            "(c) => import('/static/clusters.js').then((m) => m.learn([c]))", {**learnt, "last_at": name["first_at"]}
        )
        assert page.evaluate(known) == medoid
