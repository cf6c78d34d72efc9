"""What people teach from the page: follows the `labels` topic and writes to it; what was measured, and what to ask.

One writer at a time, and few that wait: a label is a record on the broker before the page shows it as taught.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Iterable, Sequence

from aiokafka.errors import KafkaError
from msgspec import UNSET, Struct, UnsetType
from starlette.exceptions import HTTPException

from models.errors import CrisisError, LabelError, ServiceError
from models.feedback.choice import Candidate, worth_labelling
from models.feedback.precision import Precision, precision
from models.feedback.records import Label, Verdict, in_place_of, label_key
from models.records import Alert
from streams.broker.backoff import Good, keep_up
from streams.broker.labels import Labels, follow_labels, publish_labels
from streams.broker.topics import partitions_of
from streams.config import Settings

__all__ = ["Lessons", "Said", "TakenBack"]

log = logging.getLogger(__name__)

WAITING = 8  # writers at a time; a person who labels gives one a second
SHOWN, ASKED = 50, 5  # labels listed, posts asked about
POOL, COMPARED = 300, 500  # alerts from which those are chosen, labels they must not be copies of

Shown = tuple[Verdict, str, str]  # what the page knows of a label: what was said, by whom, which query instead
Seen = Shown | None | UnsetType  # the label that somebody saw when he spoke, None: there was none; unset: does not say


class Said(Struct, frozen=True, forbid_unknown_fields=True):
    """What the page sends. The words come from the alert: a page cannot teach what nobody posted."""

    alert_id: str
    verdict: Verdict
    by: str
    query_id: str = ""  # one of the alert's readings; default the first
    instead: str = ""
    seen: Seen = UNSET


class TakenBack(Struct, frozen=True, forbid_unknown_fields=True):
    """What the page sends to undo: the label's post and query."""

    post_id: str
    query_id: str
    seen: Seen = UNSET

    @property
    def key(self) -> str:
        """The label's key."""
        return label_key(self.post_id, self.query_id)


class Taught(Struct, frozen=True):
    """Answer of /api/taught. `labels`: the newest; `said`: of each open alert that was judged, by post and query, what,
    by whom, and which query it is of instead; `shift_h`: how far back `precision` looks; `ask`: ids of alerts worth
    asking about.
    """

    total: int
    labels: list[Label]
    said: dict[str, Shown]
    precision: list[Precision]
    shift_h: float
    ask: list[str]
    problem: str = ""


class Lessons:
    """Run `await run()` as one task; the rest may be called on its event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.labels: Labels = {}
        self.revision = 0  # grows with every change
        self.problem = "labels were not read yet"  # why nothing can be taught, if so
        self._writing = asyncio.Lock()
        self._waiting = 0

    async def run(self) -> None:
        """Follow until cancelled; a broker that is away is retried."""

        def broken(error: BaseException, pause_s: float) -> None:
            self.problem = f"no labels: the broker at {self.settings.broker.bootstrap} does not answer"
            log.info("%s (%s); again in %.0f s", self.problem, error, pause_s)

        await keep_up(self._session, (KafkaError, OSError, CrisisError), broken, longest_s=30.0)

    async def _session(self, good: Good) -> None:
        while not await partitions_of(self.settings, ["labels"]):
            self.problem = f"no topic {self.settings.topics.name('labels')}: `crisis topics` makes it"
            await asyncio.sleep(2.0)
        async with follow_labels(self.settings, self._heard) as labels:
            good()
            self.problem = ""
            await self._heard(labels)
            await asyncio.Event().wait()

    async def _heard(self, labels: Labels) -> None:
        self.labels = dict(labels)
        self.revision += 1

    async def say(self, label: Label, seen: Seen = UNSET) -> Label:
        """Put a label on the broker; returns the one that stands: what somebody says already stays theirs.

        Raises HTTPException 409 where another one stands than was seen, LabelError for one that cannot be kept,
        ServiceError where the broker or the queue of writers says no.
        """
        async with self._turn():
            before = self.labels.get(label.key)
            if before is not None and before.word == label.word:
                return before
            _refuse_unseen(before, seen)
            label = in_place_of(label, before)
            await self._write(label.key, label)
        return label

    async def take_back(self, key: str, seen: Seen = UNSET) -> Label | None:
        """Take a label back; returns the one that it had replaced, which stands again. Raises as `say` does."""
        async with self._turn():
            before = self.labels.get(key)
            if before is None:
                raise LabelError("nothing was said about that, or it is taken back already")
            _refuse_unseen(before, seen)
            await self._write(key, before.replaced)
        return before.replaced

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if self._waiting >= WAITING:
            raise ServiceError("too many labels are waiting to be written: try again in a moment")
        self._waiting += 1
        try:
            async with self._writing:
                yield
        finally:
            self._waiting -= 1

    async def _write(self, key: str, label: Label | None) -> None:
        given = {} if label is None else {key: label}
        await asyncio.to_thread(publish_labels, self.settings, list(given.values()), [key])
        others = {other: said for other, said in self.labels.items() if other != key}
        await self._heard(others | given)  # the topic will say the same in a moment

    async def taught(self, alerts: Iterable[Alert]) -> Taught:
        """What was taught, measured, and is worth asking. alerts: open ones, the newest first."""
        return await asyncio.to_thread(self._taught, list(alerts))

    def _taught(self, alerts: Sequence[Alert]) -> Taught:
        newest = sorted(self.labels.values(), key=lambda said: -said.at)
        shift_h = self.settings.dashboard.shift_h
        return Taught(
            len(newest),
            newest[:SHOWN],
            {said.key: _shown(said) for a in alerts if (said := self.labels.get(_key(a)))},
            precision(newest, time.time() - shift_h * 3600),
            shift_h,
            self._worth_asking(alerts, newest),
            self.problem,
        )

    def _worth_asking(self, alerts: Iterable[Alert], newest: Sequence[Label]) -> list[str]:
        pool: dict[str, Candidate] = {}
        for alert in alerts:
            if _key(alert) not in self.labels and len(pool) < POOL:
                likely = 0.5 if alert.probability is None else alert.probability
                pool[alert.alert_id] = Candidate(alert.post.id, alert.query_id, likely, alert.post.text)
        chosen = worth_labelling(list(pool.values()), [(said.query_id, said.text) for said in newest[:COMPARED]], ASKED)
        wanted = {(one.post_id, one.query_id) for one in chosen}
        return [alert_id for alert_id, one in pool.items() if (one.post_id, one.query_id) in wanted]


def _key(alert: Alert) -> str:
    return label_key(alert.post.id, alert.query_id)


def _shown(label: Label) -> Shown:
    return label.verdict, label.by, label.instead


def _refuse_unseen(now: Label | None, seen: Seen) -> None:
    """Raises HTTPException 409 where another label stands than somebody saw: he spoke of what is no longer so."""
    if seen is not UNSET and seen != (now and _shown(now)):
        told = f"{now.by} said meanwhile: {now.verdict}" if now else "what stood there was taken back meanwhile"
        raise HTTPException(409, f"{told}. Nothing was changed: say it again if you still mean it\n")
