"""The pages and the API of the dashboard; app.py makes an application of them.

| path | answers |
|---|---|
| / | the page; its query string is the filter |
| /api/state | State: the numbers, the categories, growing clusters |
| /api/alerts?kind&category&level&lang&source&cluster&priority&area&q&n&before | AlertPage, newest first |
| /api/spots?(filter), /api/towns?area&n | what the map shows: map_routes.py |
| /api/alerts.csv?(filter), /api/alerts.geojson?(filter) | the same as files: downloads.py |
| /api/clusters?n | [ClusterEvent], those first in which somebody needs, offers or warns, by burst, then by size |
| /api/search?text&k&lang&last_s | HitPage: posts by meaning |
| /api/taught | Taught: what people said about alerts, how often they were right, which to ask about |
| POST /api/labels | takes Said, answers with the Label that stands; only of our page or a program (headers.own_page) |
| POST /api/labels/undo | takes TakenBack, answers with the Label that stands again, or 204; both 409 if not as `seen` |
| /open?post | on to the post at its platform, from the vault, or Link as JSON; role label |
| /api/access | who asked for what lately, without texts, and who opened which post; role administer |
| /api/words?alert | Words: which words of its post move an alert's reading, and by how much |
| POST /api/queries/try | takes Draft, answers with Outcome: what a query would have alerted; role label |
| POST /api/queries | takes Draft, makes it live, answers with the Query; refuses an id that is there; role administer |
| /events?(filter)&since | server-sent events, see feed.py; 429 where too many are open |
| /readyz, /healthz | the health of the whole in the sentence the page shows, 503 while nothing new can come |
| /metrics | the same as a level, `crisis_health`, for Prometheus |
| /livez | 503 only where starting this process again helps: what a liveness probe asks |
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from importlib.resources import files

from jinja2 import Environment, PackageLoader, select_autoescape
from markupsafe import Markup
from msgspec.structs import replace
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from models.errors import LabelError, QueryError, ServiceError
from models.feedback.records import label_alert
from models.moments import rfc3339
from streams import metrics
from streams.config import Settings
from streams.dashboard.access import ANYBODY, NOBODY, People
from streams.dashboard.asked import filter_of, json_of, number, require, sent, streamed
from streams.dashboard.categories import bundled_categories
from streams.dashboard.downloads import Downloads
from streams.dashboard.drafts import Draft, Drafts, Words
from streams.dashboard.feed import Feed
from streams.dashboard.filters import Filter
from streams.dashboard.headers import GUESS_S, log_in, log_out, person_of
from streams.dashboard.lessons import Lessons, Said, TakenBack
from streams.dashboard.map_routes import MapRoutes
from streams.dashboard.page_model import AlertPage, Category, fitting
from streams.dashboard.stats import PageData, State, encode
from streams.outputs.printable import printable, web_link
from streams.search.client import Hit, HitPage
from streams.search.follower import Searcher
from streams.view.live import LiveView
from streams.view.vault import Vault
from streams.web.gzipped import Gzipped

__all__ = ["Routes"]

SHOWN_ALERTS, SHOWN_CLUSTERS = 100, 30
MOST_ALERTS, MOST_CLUSTERS, MOST_HITS = 500, 500, 100
LONGEST_QUERY = 2000  # characters of a search text
ENDED = "the dashboard no longer follows Redis: see its log, start it again"
SEARCHES = 4  # at a time: they share one thread, and a queue without end would make everybody wait

_STATIC = files("streams.dashboard") / "static"
_SCRIPTS = sorted(path.name for path in _STATIC.iterdir() if path.name.endswith(".js"))
_templates = Environment(loader=PackageLoader("streams.dashboard"), autoescape=select_autoescape(default=True))


class Routes:
    """The handlers and what they share."""

    def __init__(
        self,
        settings: Settings,
        view: LiveView,
        searcher: Searcher | None,
        people: People | None,
        newest: Sequence[Mapping[str, object]] = (),
        vault: Vault | None = None,
    ) -> None:
        self.view, self.searcher, self.people, self.newest, self.vault = view, searcher, people, newest, vault
        self.lessons = Lessons(settings)
        self.drafts = Drafts(settings, searcher, self.lessons)
        status = (lambda: searcher.status) if searcher is not None else None
        self.feed = Feed(settings, view, status, lambda: (self.lessons.revision, self.lessons.labels))
        self.categories: Sequence[Category] = ()
        self._read = asyncio.Event()
        self.task: asyncio.Task | None = None
        self._searching = 0

    def table(self) -> list[Route | Mount]:
        static = StaticFiles(directory=str(_STATIC))
        return [
            Route("/", self.page),
            Route("/api/state", self.state),
            Route("/api/alerts", self.alerts),
            *MapRoutes(self.feed, self.lessons).table(),
            *Downloads(self.feed, self.lessons).table(),
            Route("/api/clusters", self.clusters),
            Route("/api/search", self.search),
            Route("/api/taught", self.taught),
            Route("/api/labels", self.label, methods=["POST"]),
            Route("/api/labels/undo", self.take_back, methods=["POST"]),
            Route("/api/access", self.access),
            Route("/open", self.open),
            Route("/api/words", self.words),
            Route("/api/queries/try", self.try_query, methods=["POST"]),
            Route("/api/queries", self.save_query, methods=["POST"]),
            Route("/events", self.events),
            Route("/healthz", self.readyz),
            Route("/readyz", self.readyz),
            Route("/livez", self.livez),
            Route("/metrics", self.metrics),
            Route("/login", self.login, methods=["GET", "POST"]),
            Route("/logout", lambda _: log_out(), methods=["POST"]),
            Mount("/static", static),
        ]

    def _state(self) -> State:
        board = self.feed.board
        return State(
            replace(self.feed.stats, open=self.feed.open_counts()),
            board.categories(self.categories),
            board.growing(SHOWN_CLUSTERS),
            list(self.feed.history),
            self.feed.hand_out(),
        )

    async def _alerts(self, wanted: Filter, most: int, before: int | None = None) -> AlertPage:
        """Those that fit now; what comes while they are looked for is told by the events after `event_id`."""
        board, event_id = self.feed.board, self.feed.hand_out()
        wanted = board.asked(wanted)
        found, standing = await asyncio.to_thread(fitting, board.kept(), wanted, self.lessons.labels)
        shown, total = board.page(found, most, before)
        return AlertPage(shown, total, event_id, standing, board.named(shown, wanted.cluster))

    def _name(self, request: Request) -> str:
        """Who asks, where the token says it: a name that nobody can put on."""
        person = person_of(request)
        return "" if person.name in (NOBODY.name, ANYBODY) else person.name

    async def read_categories(self) -> None:
        """Read the bundled categories beside everything else: the server answers meanwhile."""
        self.categories = await asyncio.to_thread(bundled_categories)
        self._read.set()

    async def _loaded(self) -> None:
        """A page asked for right after the start waits a moment for the first read, rather than show nothing."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5.0):
                await self._read.wait()
                await self.feed.loaded.wait()

    async def page(self, request: Request) -> Response:
        await self._loaded()
        wanted = await self._wanted(request)
        if (now := self.feed.board.asked(wanted)) != wanted:  # a link to a cluster that was merged since
            return RedirectResponse(f"/?{request.url.include_query_params(cluster=now.cluster).query}", 303)
        alerts, state = await self._alerts(wanted, SHOWN_ALERTS), self._state()
        whole = {c.cluster_id for c in state.clusters}
        clusters = state.clusters + [c for c in alerts.clusters if c.cluster_id not in whole]
        told = replace(state, clusters=clusters), replace(alerts, clusters=[])
        data = encode(PageData(*told, wanted)).decode()
        for sign in "<>&\u2028\u2029":  # inside <script> no entity is decoded: write them as JSON escapes
            data = data.replace(sign, f"\\u{ord(sign):04x}")
        return HTMLResponse(
            _templates.get_template("page.html").render(
                data=Markup(data),
                scripts=_SCRIPTS,
                token=self.people is not None,
                person=self._name(request),
                takes=person_of(request).may("label"),
                opens=self.vault is not None and person_of(request).may("label"),
            )
        )

    async def state(self, _: Request) -> Response:
        await self._loaded()
        return json_of(self._state())

    async def alerts(self, request: Request) -> Response:
        await self._loaded()
        most = number(request, "n", SHOWN_ALERTS, MOST_ALERTS)
        before = number(request, "before", 0, 2**53)
        return json_of(await self._alerts(await filter_of(request), most, before or None))

    async def clusters(self, request: Request) -> Response:
        await self._loaded()
        return json_of(self.feed.board.growing(number(request, "n", SHOWN_CLUSTERS, MOST_CLUSTERS)))

    async def search(self, request: Request) -> Response:
        if self.searcher is None:
            raise ServiceError("this dashboard runs without search")
        text = request.query_params.get("text", "").strip()
        if not text or len(text) > LONGEST_QUERY:
            return PlainTextResponse(f"text: say what to search for, in at most {LONGEST_QUERY} characters\n", 400)
        lang, last_s = request.query_params.get("lang") or None, number(request, "last_s", 0, 10**9) or None
        if self._searching >= SEARCHES:
            busy = "too many searches are waiting: try again in a moment\n"
            return PlainTextResponse(busy, 429, {"Retry-After": "2"})
        self._searching += 1
        try:
            found = await self.searcher.search(text, number(request, "k", 20, MOST_HITS), lang, last_s)
        finally:
            self._searching -= 1
        hits = [
            Hit(
                f.post.id,
                f.post.text,
                f.post.lang,
                f.post.source,
                rfc3339(f.post.created_at),
                round(f.score, 4),
                web_link(f.post.url),
            )
            for f in found
        ]
        status = self.searcher.status
        return json_of(HitPage(hits, status.posts, status.state == "ready"))

    async def taught(self, _: Request) -> Response:
        await self._loaded()
        return json_of(await self.lessons.taught(self.feed.board.open_alerts()))

    async def access(self, request: Request) -> Response:
        require(request, "administer")
        openings = await self.vault.openings() if self.vault is not None else []
        return json_of({"requests": list(self.newest), "openings": openings})

    async def open(self, request: Request) -> Response:
        """On to the post at its platform; the vault writes down who went."""
        require(request, "label")
        post_id = request.query_params.get("post", "")[:1000]
        if self.vault is None:
            raise ServiceError(
                "no link is kept: there is no vault (privacy.vault_url), or ids are as the page shows them"
            )
        link = await self.vault.open(post_id, person_of(request).name)
        if link is None:
            return PlainTextResponse("no link of this post is kept: it was deleted, or it is longer ago\n", 404)
        if "json" in request.headers.get("accept", ""):
            return json_of(link)
        if (url := web_link(link.url)) is not None:
            return RedirectResponse(url, 303)
        return PlainTextResponse(f"its source gave no link; it calls the post {printable(link.id)}\n")

    async def label(self, request: Request) -> Response:
        require(request, "label")
        said = await sent(request, Said)
        alert = self.feed.board.alert(said.alert_id)
        if alert is None:
            raise LabelError("this alert is not on the board any more")
        label = label_alert(
            alert, said.verdict, self._name(request) or said.by, time.time(), said.query_id, said.instead
        )
        return json_of(await self.lessons.say(label, said.seen))

    async def take_back(self, request: Request) -> Response:
        require(request, "label")
        back = await sent(request, TakenBack)
        stands = await self.lessons.take_back(back.key, back.seen)
        return Response(status_code=204) if stands is None else json_of(stands)

    async def events(self, request: Request) -> ASGIApp:
        last_id = request.headers.get("last-event-id") or request.query_params.get("since")
        wanted, who = await self._wanted(request), self._name(request)
        if why := self.feed.full(who):
            return PlainTextResponse(f"{why}\n", 429, {"Retry-After": "60", "Connection": "close"})
        return Gzipped(streamed(self.feed.events(wanted, last_id, who)))

    async def _wanted(self, request: Request) -> Filter:
        """The filter asked for; one whose area is no place is taken as it is, and nothing fits it: the page goes on,
        and what it asks of /api/alerts tells why."""
        with contextlib.suppress(QueryError):
            await filter_of(request)
        return Filter.of(request.query_params)

    async def words(self, request: Request) -> Response:
        await self._loaded()
        alert = self.feed.board.alert(request.query_params.get("alert", ""))
        if alert is None or alert.status != "active":
            return json_of(Words(problem="this alert is not on the board any more"))
        return json_of(await self.drafts.words(alert))

    async def try_query(self, request: Request) -> Response:
        require(request, "label")
        return json_of(await self.drafts.tried(await sent(request, Draft)))

    async def save_query(self, request: Request) -> Response:
        require(request, "administer")
        return json_of(await self.drafts.saved(await sent(request, Draft)))

    async def livez(self, _: Request) -> Response:
        """Says the same, but nothing beyond this process makes it 503: no Redis comes back by starting it again, and
        the page must be there to say that it is away."""
        if self._ended():
            return PlainTextResponse(f"{ENDED}\n", 503)
        return PlainTextResponse(f"{self.feed.health.for_anybody()}\n")

    async def readyz(self, _: Request) -> Response:
        """The sentence the page shows, but for what a platform's server said; 503 where nothing new can come."""
        if self._ended():
            return PlainTextResponse(f"{ENDED}\n", 503)
        health = self.feed.health
        return PlainTextResponse(f"{health.for_anybody()}\n", 503 if health.level == "down" else 200)

    async def metrics(self, _: Request) -> Response:
        """The level of that sentence, which /readyz gives away too, and nothing else."""
        metrics.show_health("down" if self._ended() else self.feed.health.level)
        page = generate_latest(metrics.REGISTRY.restricted_registry(["crisis_health"]))
        return Response(page, media_type=CONTENT_TYPE_LATEST)

    def _ended(self) -> bool:
        return self.task is not None and self.task.done()

    async def login(self, request: Request) -> Response:
        if self.people is None:
            return RedirectResponse("/", 303)
        wrong = False
        if request.method == "POST":
            if (answer := await log_in(request, self.people)) is not None:
                return answer
            wrong = True
            await asyncio.sleep(GUESS_S)
        back = request.query_params.get("next", "/")
        return HTMLResponse(_templates.get_template("login.html").render(back=back, wrong=wrong), 403 if wrong else 200)
