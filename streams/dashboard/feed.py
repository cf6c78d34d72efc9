"""One reader for all viewers: follows Redis, keeps the board, and hands out events through bounded queues.

A viewer that falls behind, or comes back after more than was kept, gets `resync` and fetches the state again: memory
is bounded and nobody is shown a gap as if it were complete.

| event | data | id |
|---|---|---|
| live | {"alerts": [Shown], "clusters": [ClusterEvent]}, four times a second, sooner where a page is fetched | yes |
| stats | Stats, once a second | no |
| resync | {}: fetch /api/state and /api/alerts again | yes |
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import secrets
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import RedisError

from models.errors import CrisisError
from models.records import Alert, ClusterEvent
from models.undecodable import UNDECODABLE
from streams.broker.backoff import Good, keep_up, stop_if_cancelled
from streams.broker.labels import Labels
from streams.broker.lag import LagReader
from streams.broker.topics import inputs_of
from streams.config import Settings
from streams.dashboard.batches import Batch, Batches
from streams.dashboard.filters import Filter
from streams.dashboard.page_model import Board, OpenCount
from streams.dashboard.stats import COUNTED, Rate, Stats, biggest, encode, percentiles, worker_statuses
from streams.pipeline.outcomes import put_by
from streams.view.health import Health, Known, judge
from streams.view.live import LiveView

__all__ = ["Event", "Feed"]

log = logging.getLogger(__name__)

FLUSH_S, TICK_S, LAG_S = 0.25, 1.0, 1.0
# What has not answered for so long is told, by the next tick at the latest: together less than five seconds.
MEASURE_S = 1.8  # for Redis to give all figures of a tick
REDIS_SILENT_S = 2.9
BROKER_ANSWERS_S = 2.9  # to be asked a pause of LAG_S after it answered last: a busy one takes more than two seconds
PING_S = 1.0  # what is heard on the live channels at the least
KEPT_BATCHES = 400  # about 100 s of a busy stream: enough for a phone that loses its network for a moment
BIG_BATCH = 200  # more alerts at once than anyone reads: the viewer fetches the newest instead
QUEUE = 64
SHOWN_PROPOSALS = 5
REPEATS_OF = 200  # posts of the newest alerts whose repeats are watched
# Streams of one person, and of all: sockets are left for those who ask something else (512: streams.web.deadline).
MOST_OWN, MOST_VIEWERS = 16, 300


class Event(Struct, frozen=True):
    """One server-sent event."""

    name: str
    data: bytes
    id: str | None = None


_alert = msgspec.json.Decoder(Alert).decode
_cluster = msgspec.json.Decoder(ClusterEvent).decode


class Feed:
    """Run `await run()` as one task; viewers iterate over `events(...)`."""

    def __init__(
        self,
        settings: Settings,
        view: LiveView,
        search_status: Callable[[], object] | None = None,
        taught: Callable[[], tuple[int, Labels]] = lambda: (0, {}),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self.settings, self.view = settings, view
        self._key = secrets.token_bytes(16)
        self.board = self._new_board()
        self.stats = Stats(at=0.0, problem="starting")
        self.history: deque[float] = deque([0.0] * 90, maxlen=90)  # posts/s, one per tick
        self.boot = secrets.token_hex(4)  # ids of an earlier process mean nothing here
        self.loaded = asyncio.Event()
        self._search_status, self._taught = search_status, taught
        self._number = 0
        self._kept = Batches(KEPT_BATCHES)
        self._viewers: WeakKeyDictionary[asyncio.Queue[Batch | Event], str] = WeakKeyDictionary()  # whose each is
        self._alerts: dict[str, Alert] = {}  # waiting for the next flush
        self._clusters: dict[str, ClusterEvent] = {}
        self._rate = Rate()
        self._agents = inputs_of(settings)
        self._lag: dict[str, int] | None = None
        self._known, self._known_at = Known(), self._clock()  # as Redis said, and when it was asked
        self._lag_asked = math.inf  # when the broker was asked for the lag, while it has not answered
        # When all figures came, when the live channels were last heard: never yet.
        self._answered = self._heard = -math.inf

    def _new_board(self) -> Board:
        return Board(self.settings.redis.recent_alerts, key=self._key)

    @property
    def health(self) -> Health:
        """The one sentence about the whole, from what is known at this moment."""
        now = self._clock()
        if now - min(self._answered, self._heard) > REDIS_SILENT_S:
            return judge(None, self._agents)
        lag = self._lag if now - self._lag_asked <= BROKER_ANSWERS_S else None
        at = self._known.at + now - self._known_at
        return judge(msgspec.structs.replace(self._known, at=at, lag=lag), self._agents)

    def hand_out(self) -> str:
        """Hand out what waits for the next flush; returns the id after which events tell what the board does not hold.

        Without it a page made between two flushes would be sent some of its alerts again as if they were new.
        """
        if self._alerts or self._clusters:
            self._send(resync=len(self._alerts) > BIG_BATCH)
        return f"{self.boot}-{self._number}"

    def open_counts(self) -> dict[str, OpenCount]:
        """As the board counts them, with what people said of them."""
        return self.board.open_counts(self._taught()[1])

    @property
    def viewers(self) -> int:
        """Open event streams."""
        return len(self._viewers)

    async def run(self) -> None:
        """Follow until cancelled. Redis or the broker being away is shown and retried, not fatal."""
        async with asyncio.TaskGroup() as tasks:
            for work in (self._listen, self._flush, self._tick, self._watch_lag):
                tasks.create_task(work(), name=f"dashboard{work.__name__}")

    async def _listen(self) -> None:
        def away(error: BaseException, pause_s: float) -> None:
            log.warning("Redis is away (%s); again in %.1f s", error, pause_s)

        await keep_up(self._hear, (RedisError, OSError), away, first_s=0.5, longest_s=10.0)

    async def _hear(self, good: Good) -> None:
        async with self.view.redis.pubsub(ignore_subscribe_messages=True) as channel:
            await channel.subscribe(self.view.key("live-alerts"), self.view.key("live-clusters"))
            await self._load()  # after subscribing: nothing falls between the two
            good()
            self._heard = pinged = self._clock()
            while True:
                if (now := self._clock()) - pinged >= PING_S:  # half open, it says as little as where nothing happens
                    pinged = now
                    await channel.ping()
                message = await channel.get_message(timeout=PING_S)
                stop_if_cancelled()  # its own limit may have run out in the moment we were told to end
                if message is not None:
                    self._heard = self._clock()
                    if message["type"] == "message":
                        self._receive(message["channel"].decode(), message["data"])
                elif self._clock() - self._heard > REDIS_SILENT_S:
                    raise NoConnection("the live channels are silent")

    async def _load(self) -> None:
        alerts = await self.view.recent_alerts(self.settings.redis.recent_alerts)
        clusters = await self.view.clusters(2000)
        for gone, into in (await self.view.merged_clusters()).items():
            self.board.merge(gone, into)
        news = sum([self.board.put_alert(a) for a in reversed(alerts)]) + sum(
            [self.board.put_cluster(c) for c in reversed(clusters)]
        )
        self.board.put_repeats(ids := self.board.newest_posts(2000), await self.view.repeats_of(ids))
        if news and self.loaded.is_set():
            self._send(resync=True)
        self.loaded.set()

    def _receive(self, channel: str, data: bytes) -> None:
        try:
            if channel.endswith("live-alerts"):
                if self.board.put_alert(alert := _alert(data)):
                    self._alerts[alert.alert_id] = alert
            elif self.board.put_cluster(cluster := _cluster(data)):
                self._clusters[cluster.cluster_id] = cluster
        except UNDECODABLE as error:
            log.error("a message on %s is no alert and no cluster: %s", channel, error)

    async def _flush(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            self.hand_out()

    def _send(self, resync: bool) -> None:
        self._number += 1
        alerts, clusters = self._alerts, self._clusters
        self._alerts, self._clusters = {}, {}
        self._kept.forget(alerts, clusters)
        batch = Batch(self._number, resync=True) if resync else Batch(self._number, alerts, clusters)
        self._kept.append(batch)
        self._hand_out(batch)

    def _hand_out(self, item: Batch | Event) -> None:
        for queue in list(self._viewers):
            if queue.full():  # this viewer is too slow: forget what waits, and let it start over
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(Batch(self._number, resync=True))
            else:
                queue.put_nowait(item)

    async def _tick(self) -> None:
        while True:
            at, began = time.time(), self._clock()  # what is shown as a time, and what is measured with
            try:
                async with asyncio.timeout(MEASURE_S):  # a frozen Redis answers nothing, and raises nothing
                    self.stats = await self._measure(at)
                self._answered = self._clock()
            except (RedisError, OSError) as error:
                why = f"no answer from Redis: {str(error) or f'for {self._clock() - self._known_at:.0f} s'}"
                self.stats = msgspec.structs.replace(self.stats, at=at, posts_per_s=0.0, repeats={}, problem=why)
            stop_if_cancelled()
            self.stats = msgspec.structs.replace(self.stats, health=self.health, taught=self._taught()[0])
            self.history.append(round(self.stats.posts_per_s, 1))
            self._hand_out(Event("stats", encode(self.stats)))
            await asyncio.sleep(max(0.1, TICK_S - (self._clock() - began)))

    async def _measure(self, at: float) -> Stats:
        view, ids, asked = self.view, self.board.newest_posts(REPEATS_OF), self._clock()
        now, said, counts, reasons, langs, sources, latencies, workers, proposals, repeats = await asyncio.gather(
            view.now(),
            view.sources(),
            view.counts("counts"),
            view.counts("reasons"),
            view.counts("langs"),
            view.counts("sources"),
            view.latencies_ms(),
            view.workers(),
            view.proposals(),
            view.repeats_of(ids),
        )
        self._known, self._known_at = Known(now, workers, said, None, put_by(counts)), asked
        p50, p95 = percentiles(latencies)
        if counts.get("read", 0) < self.stats.totals.get("read", 0):  # the live view was cleared: start over with it
            self.board = self._new_board()
            await self._load()
            self._send(resync=True)
        return Stats(
            at=at,
            posts_per_s=round(self._rate.add(asked, counts.get("read", 0)), 1),
            latency_p50_ms=p50,
            latency_p95_ms=p95,
            totals={name: counts.get(name, 0) for name in COUNTED},
            reasons=dict(biggest(reasons)),
            open=self.open_counts(),
            langs=biggest(langs),
            sources=biggest(sources),
            lag=self._lag,
            workers=worker_statuses(workers, now),
            clusters=len(self.board.clusters),
            proposals=proposals[:SHOWN_PROPOSALS],
            search=self._search_status() if self._search_status else None,
            repeats=self.board.put_repeats(ids, repeats),
        )

    async def _watch_lag(self) -> None:
        reader = LagReader(self.settings)
        try:
            while True:
                self._lag_asked = self._clock()
                try:
                    lag = await reader.read()
                    # Too late is no answer: the next may take as long, and the page would say now this, now that.
                    self._lag = lag if self._clock() - self._lag_asked <= BROKER_ANSWERS_S else None
                except CrisisError as error:
                    log.log(logging.INFO if self._lag is None else logging.WARNING, "%s", error)
                    self._lag = None
                self._lag_asked = math.inf
                stop_if_cancelled()
                await asyncio.sleep(LAG_S)
        finally:
            await reader.close()

    def full(self, who: str) -> str | None:
        """Why there is no room for another viewer of this person; None where there is. A person without a name may be
        many."""
        if who and sum(other == who for other in self._viewers.values()) >= MOST_OWN:
            return f"{MOST_OWN} pages of {who} are open already, which is the most: close some"
        if len(self._viewers) >= MOST_VIEWERS:
            return f"{MOST_VIEWERS} pages are open already, which is the most: try again later"
        return None

    def events(self, wanted: Filter, last_id: str | None, who: str = "") -> AsyncGenerator[Event]:
        """Events for one viewer, from after `last_id` on. Ends only when the caller stops."""
        queue: asyncio.Queue[Batch | Event] = asyncio.Queue(QUEUE)
        self._viewers[queue] = who  # at once, to be counted; one that is never read goes with its queue
        return self._told(queue, self._missed(last_id), wanted)

    async def _told(
        self, queue: asyncio.Queue[Batch | Event], missed: list[Batch], wanted: Filter
    ) -> AsyncGenerator[Event]:
        try:
            for batch in missed:
                yield self._event(batch, wanted)
            yield Event("stats", encode(self.stats))
            while True:
                item = await queue.get()
                yield self._event(item, wanted) if isinstance(item, Batch) else item
        finally:
            self._viewers.pop(queue, None)

    def _missed(self, last_id: str | None) -> list[Batch]:
        """The batches after `last_id`, or one resync where they are not all here any more."""
        if not last_id:
            return []
        boot, _, number = last_id.rpartition("-")
        first = self._kept.first(self._number + 1)
        with contextlib.suppress(ValueError):
            if boot == self.boot and first - 1 <= int(number) <= self._number:
                return self._kept.after(int(number))
        return [Batch(self._number, resync=True)]

    def _event(self, batch: Batch, wanted: Filter) -> Event:
        event_id = f"{self.boot}-{batch.number}"
        if batch.resync:
            return Event("resync", b"{}", event_id)
        shown = [self.board.shown(a, wanted) for a in batch.alerts.values()]
        return Event("live", encode({"alerts": shown, "clusters": list(batch.clusters.values())}), event_id)
