"""The dashboard's HTTP API over a real Redis."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time

import httpx
import httpx_sse
import msgspec
import pytest

from models.moments import rfc3339
from models.records import ClusterEvent, Post
from streams.broker.lag import LagReader
from streams.broker.topics import AGENTS
from streams.dashboard.app import create_dashboard
from streams.dashboard.categories import ORDER, bundled_categories
from streams.dashboard.page_model import fitting
from streams.view.connect import connect
from streams.view.live import LiveView
from streams.view.status import SourceStatus, WorkerStatus, encode_status
from tests.dashboard.invented import HOSTILE, invent, several
from tests.dashboard.seeding import fill
from tests.dashboard.serving import FedSearcher, frame, served, settings_for, visiting
from tests.waiting import PATIENCE_S, until

NOW = time.time()


class Api:
    """A client of an application that is not listening anywhere."""

    def __init__(self, client: httpx.AsyncClient, view: LiveView, feed) -> None:
        self.client, self.view, self.feed = client, view, feed

    async def get(self, path: str, **params: object) -> dict | list:
        answer = await self.client.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
async def api(redis_url):
    settings = settings_for(redis_url)
    redis = connect(settings.redis)
    view = LiveView(redis, settings)
    posts = [
        Post(f"s{n}", text, NOW - n, NOW - n, lang, "sms")
        for n, (lang, text) in enumerate(
            [
                ("en", "people trapped under a roof"),
                ("en", "lovely weather today"),
                ("fr", "people trapped sous le toit"),
            ]
        )
    ]
    app = create_dashboard(settings, view, FedSearcher(settings, [frame(posts)]))
    await fill(view, several(40, NOW), NOW, hostile_too=True)
    async with visiting(app) as client:
        await app.state.feed.loaded.wait()
        yield Api(client, view, app.state.feed)
    await redis.aclose()


async def test_state_has_everything_the_page_shows(api):
    await until(lambda: api.feed.stats.totals)
    state = await api.get("/api/state")
    stats = state["stats"]
    assert stats["totals"]["read"] == 191 and stats["totals"]["rejected"] == 7
    assert stats["latency_p50_ms"] < stats["latency_p95_ms"]
    assert {w["name"] for w in stats["workers"]} == {"worker-1", "worker-2"}
    assert dict(map(tuple, stats["sources"])).keys() == {"bluesky", "mastodon", "sms", "radio-desk"}
    assert stats["open"]["need.water"]["alert"] > 0 and len(state["history"]) == 90
    assert state["clusters"][0]["label"] and [c["category"] for c in state["categories"]][:2] == list(ORDER[:2])
    assert stats["search"]["state"] == "ready" and stats["search"]["posts"] == 3


async def test_alerts_come_newest_first_with_repeats_and_total(api):
    page = await api.get("/api/alerts", n=10)
    ranks = [s["rank"] for s in page["alerts"]]
    assert len(ranks) == 10 and page["total"] == 46 and ranks == sorted(ranks, reverse=True)
    assert any(s.get("repeats") == 11 for s in (await api.get("/api/alerts", n=100))["alerts"])


@pytest.mark.parametrize(
    "params, fits",
    [
        ({"kind": "offer"}, lambda a: a["kind"] == "offer"),
        ({"kind": "need", "category": "water"}, lambda a: a["query_id"] == "need.water"),
        ({"level": "suggestion"}, lambda a: a["level"] == "suggestion"),
        ({"lang": "ar"}, lambda a: a["post"]["lang"] == "ar"),
        ({"source": "sms"}, lambda a: a["post"]["source"] == "sms"),
        ({"cluster": "c0"}, lambda a: a.get("cluster_id") == "c0"),
        ({"q": "stadium minibuses"}, lambda a: "minibuses" in a["post"]["text"]),
    ],
)
async def test_every_filter_of_the_address_works_on_the_server(api, params, fits):
    every = [s["alert"] for s in (await api.get("/api/alerts", n=500))["alerts"]]
    page = await api.get("/api/alerts", n=500, **params)
    assert [s["alert"]["alert_id"] for s in page["alerts"]] == [a["alert_id"] for a in every if fits(a)]
    assert page["alerts"] and page["total"] == len(page["alerts"])


async def test_alerts_are_looked_through_beside_the_event_loop(api, monkeypatch):
    threads = []

    def noted(*asked):
        threads.append(threading.current_thread())
        return fitting(*asked)

    monkeypatch.setattr("streams.dashboard.routes.fitting", noted)
    assert (await api.get("/api/alerts", q="water"))["total"] == (await api.get("/api/alerts", q="WATER"))["total"] > 0
    await api.client.get("/?q=water")
    assert len(threads) == 3 and threading.main_thread() not in threads


async def test_older_alerts_are_asked_for_by_rank(api):
    first = await api.get("/api/alerts", n=20)
    second = await api.get("/api/alerts", n=20, before=first["alerts"][-1]["rank"])
    ids = [s["alert"]["alert_id"] for page in (first, second) for s in page["alerts"]]
    assert len(set(ids)) == 40


@pytest.mark.parametrize(
    "params", [{"n": "x"}, {"n": "-5"}, {"n": "1e400"}, {"before": "nan"}, {"kind": "\x00"}, {"q": "\ud7ff" * 999}]
)
async def test_nonsense_in_the_address_is_no_server_error(api, params):
    assert (await api.client.get("/api/alerts", params=params)).status_code == 200


async def test_a_live_alert_shows_up_in_the_api(api):
    alert = invent(777, "offer.shelter", text="a room", at=NOW + 5)
    await api.view.put_alerts([alert])
    await until(lambda: alert.alert_id in api.feed.board._alerts)
    assert (await api.get("/api/alerts", n=1))["alerts"][0]["alert"]["alert_id"] == alert.alert_id


async def test_a_link_to_a_cluster_that_was_merged_leads_to_the_one_it_is_in_and_its_old_id_finds_that(api):
    before = await api.get("/api/alerts", cluster="c1", n=500)
    kept = {s["alert"]["alert_id"] for c in ("c0", "c1") for s in (await api.get("/api/alerts", cluster=c))["alerts"]}
    (was,) = (c for c in await api.view.clusters() if c.cluster_id == "c1")
    await api.view.put_clusters([msgspec.structs.replace(was, event="merge", version=was.version + 1, into="c0")])
    await until(lambda: "c1" not in api.feed.board.clusters)
    for asked in ("c0", "c1"):
        page = await api.get("/api/alerts", cluster=asked, n=500)
        assert (
            {s["alert"]["alert_id"] for s in page["alerts"]}
            == kept
            > {s["alert"]["alert_id"] for s in before["alerts"]}
        )
        assert (
            {s["alert"]["cluster_id"] for s in page["alerts"]} == {c["cluster_id"] for c in page["clusters"]} == {"c0"}
        )
    answer = await api.client.get("/", params={"cluster": "c1", "q": "water & bread", "map": "1"})
    assert answer.status_code == 303
    assert httpx.URL(answer.headers["location"]).params == httpx.QueryParams(cluster="c0", q="water & bread", map="1")
    assert answer.headers["location"].startswith("/?"), "the address that a proxy is known by is its own matter"


async def test_a_dashboard_that_starts_later_knows_what_was_merged(api, redis_url):
    (was,) = (c for c in await api.view.clusters() if c.cluster_id == "c1")
    await api.view.put_clusters([msgspec.structs.replace(was, event="merge", version=was.version + 1, into="c0")])
    async with visiting(create_dashboard(settings_for(redis_url), api.view, None)) as client:
        page = (await client.get("/api/alerts", params={"cluster": "c1"})).json()
        assert page["alerts"] and {s["alert"]["cluster_id"] for s in page["alerts"]} == {"c0"}


async def test_the_page_is_given_the_clusters_of_its_cards_by_name_beside_those_that_grow(api):
    made = [ClusterEvent("grow", f"new{n}", 1, 2, 2.0, rfc3339(NOW), rfc3339(NOW), f"name {n}", "e") for n in range(60)]
    await api.view.put_clusters(made)
    await api.view.put_alerts([invent(800 + n, at=NOW + n, cluster_id=f"new{n}") for n in range(60)])
    await until(lambda: len(api.feed.board._alerts) >= 100)
    found = re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', (await api.client.get("/")).text, re.DOTALL)
    data = json.loads(found[1])
    named = {c["cluster_id"]: c["label"] for c in data["state"]["clusters"]}
    of_cards = {s["alert"].get("cluster_id") for s in data["alerts"]["alerts"]} - {None}
    assert of_cards <= set(named) and named["new59"] == "name 59" and len(named) == len(data["state"]["clusters"])


async def test_a_withdrawn_alert_leaves_the_list(api):
    (alert,) = [s["alert"] for s in (await api.get("/api/alerts", n=1))["alerts"]]
    known = msgspec.convert(alert, type=type(invent(1, at=NOW)))
    await api.view.put_alerts([msgspec.structs.replace(known, revision=known.revision + 9, status="withdrawn")])
    await until(lambda: api.feed.board._alerts[known.alert_id].status == "withdrawn")
    assert known.alert_id not in [s["alert"]["alert_id"] for s in (await api.get("/api/alerts", n=500))["alerts"]]


async def test_clearing_the_live_view_clears_the_page(api):
    await until(lambda: api.feed.stats.totals.get("read"))
    await api.view.clear()
    await until(lambda: not api.feed.board._alerts)
    assert (await api.get("/api/alerts"))["total"] == 0


async def test_search_finds_by_likeness_and_filters_by_language(api):
    page = await api.get("/api/search", text="trapped under the roof", k=2)
    assert page["hits"][0]["id"] == "s0" and page["searched"] == 3 and page["complete"]
    assert page["hits"][0]["score"] >= page["hits"][1]["score"]
    assert [h["id"] for h in (await api.get("/api/search", text="trapped", lang="fr"))["hits"]] == ["s2"]
    assert [h["id"] for h in (await api.get("/api/search", text="trapped", last_s=1))["hits"]] == ["s0", "s1"]


@pytest.mark.parametrize("text", ["", "   ", "x" * 2001])
async def test_a_search_for_nothing_or_too_much_is_refused_with_the_reason(api, text):
    answer = await api.client.get("/api/search", params={"text": text})
    assert answer.status_code == 400 and "2000" in answer.text


async def test_clusters_are_listed_strongest_first(api):
    found = await api.get("/api/clusters", n=5)
    assert len(found) == 5 and [c["burst"] for c in found] == sorted([c["burst"] for c in found], reverse=True)


async def test_the_page_carries_its_first_paint_and_no_text_leaves_the_data_block(api):
    answer = await api.client.get("/", params={"kind": "need", "q": "</script><b>"})
    data = re.search(r'<script id="data" type="application/json">(.*?)</script>', answer.text, re.S)[1]
    page = json.loads(data)
    assert page["wanted"] == {"kind": "need", "q": "</script><b>"} and page["alerts"]["total"] == 0
    everything = await api.client.get("/")
    assert everything.text.count("</script>") == 2 and "<img" not in everything.text.replace('<img src="/static', "")
    block = json.loads(re.search(r'application/json">(.*?)</script>', everything.text, re.S)[1])
    texts = [s["alert"]["post"]["text"] for s in block["alerts"]["alerts"]]
    assert set(HOSTILE.values()) <= set(texts)


async def test_the_page_says_which_headers_a_browser_must_obey(api):
    for path in ("/", "/api/state", "/static/page.js", "/healthz", "/nowhere"):
        headers = (await api.client.get(path)).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == ("no-cache" if "static" in path else "no-store")


async def test_a_foreign_host_name_is_refused(api):
    assert (await api.client.get("/api/state", headers={"host": "evil.example"})).status_code == 400
    assert (await api.client.get("/api/state", headers={"host": "localhost:8080"})).status_code == 200


async def test_health_is_that_of_the_whole_in_the_sentence_the_page_shows(api, monkeypatch):
    async def it_says(words: str) -> bool:
        return api.feed.health.sentence.startswith(words)

    async def answers() -> set[tuple[str, int]]:
        found = {path: await api.client.get(f"/{path}") for path in ("healthz", "readyz", "livez")}
        assert {answer.text for answer in found.values()} == {f"{api.feed.health.sentence}\n"}
        return {(path, answer.status_code) for path, answer in found.items()}

    async def nothing_waits(_: LagReader) -> dict[str, int]:
        return {}

    down = {("healthz", 503), ("readyz", 503), ("livez", 200)}
    await until(lambda: it_says("the broker does not answer"), lambda: api.feed.health)
    assert await answers() == down
    monkeypatch.setattr(LagReader, "read", nothing_waits)
    await api.view.redis.delete(api.view.key("workers"))
    await until(lambda: it_says("no worker has ever spoken: no new post is read"), lambda: api.feed.health)
    assert await answers() == down
    await api.view.put_worker("w1", WorkerStatus(time.time() + 3600, list(AGENTS)))  # speaks on and on
    await until(lambda: it_says("live"), lambda: api.feed.health)
    assert await answers() == {("healthz", 200), ("readyz", 200), ("livez", 200)}
    said = encode_status(SourceStatus(time.time() + 3600, "429 of m.example"))
    await api.view.redis.hset(api.view.key("sources-at"), "mastodon", said)
    await until(lambda: it_says("source mastodon: 429 of m.example"), lambda: api.feed.health)
    for path in ("healthz", "readyz", "livez"):
        told = (await api.client.get(f"/{path}")).text
        assert told.startswith("source mastodon ") and "429" not in told, "what a server says is not for anybody"


async def test_prometheus_is_told_the_level_that_the_page_shows_and_nothing_else(api, monkeypatch):
    async def told() -> dict[str, str]:
        lines = (await api.client.get("/metrics")).text.splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))

    async def is_at(level: str) -> bool:
        shown = {f'crisis_health{{level="{one}"}}': str(float(one == level)) for one in ("live", "late", "down")}
        return await told() == shown and api.feed.health.level == level

    async def nothing_waits(_: LagReader) -> dict[str, int]:
        return {}

    await until(lambda: is_at("down"), told)
    monkeypatch.setattr(LagReader, "read", nothing_waits)
    await api.view.redis.delete(api.view.key("workers"))
    await api.view.put_worker("w1", WorkerStatus(time.time() + 3600, list(AGENTS)))
    await until(lambda: is_at("live"), told)
    await api.view.put_worker("w1", WorkerStatus(time.time() + 3600, list(AGENTS), stands_s=9.0))  # the vault is away
    await until(lambda: is_at("late"), told)
    await api.view.put_worker("w1", WorkerStatus(time.time() + 3600, [a for a in AGENTS if a != "match"]))
    await until(lambda: is_at("down"), told)


async def test_no_probe_starts_the_page_again_for_what_it_has_to_tell(api):
    """Without a worker, and without Redis."""
    assert (await api.client.get("/livez")).status_code == 200
    settings = settings_for("redis://127.0.0.1:1/0")
    redis = connect(settings.redis)
    app = create_dashboard(settings, LiveView(redis, settings), None)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost") as client:
        assert (await client.get("/livez")).status_code == 200
    await redis.aclose()


async def test_health_says_so_when_redis_is_away():
    settings = settings_for("redis://127.0.0.1:1/0")
    redis = connect(settings.redis)
    app = create_dashboard(settings, LiveView(redis, settings), None)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost") as client:
        answer = await client.get("/healthz")
        assert answer.status_code == 503 and "Redis" in answer.text
        assert (await client.get("/api/search", params={"text": "x"})).status_code == 503
    await redis.aclose()


def test_every_bundled_category_is_listed_most_urgent_first():
    assert [c.category for c in bundled_categories()] == list(ORDER)


async def test_events_over_a_real_connection_with_reconnect(redis_url):
    settings = settings_for(redis_url)
    with served(settings) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_S) as client:
            since = (await client.get("/api/alerts")).json()["event_id"]
            async with httpx_sse.aconnect_sse(client, "GET", "/events", params={"since": since}) as source:
                events = source.aiter_sse()
                assert (await anext(events)).event == "stats"
                await asyncio.to_thread(server.call, lambda view: view.put_alerts([invent(1, at=NOW)]))
                live = await anext(e async for e in events if e.event == "live")
                assert live.json()["alerts"][0]["alert"]["post"]["id"] == "p1"
            await asyncio.to_thread(server.call, lambda view: view.put_alerts([invent(2, at=NOW)]))
            await asyncio.sleep(0.4)
            async with httpx_sse.aconnect_sse(client, "GET", "/events", headers={"last-event-id": live.id}) as source:
                missed = await anext(source.aiter_sse())
                assert missed.event == "live" and missed.json()["alerts"][0]["alert"]["post"]["id"] == "p2"
