"""What people teach from the page: follows the `labels` topic and writes to it; what was measured, and what to ask.

One writer at a time, and few that wait: a label is a record on the broker before the page shows it as taught.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence

from aiokafka.errors import KafkaError
from msgspec import Struct

from models.errors import CrisisError, ServiceError
from models.feedback.choice import Candidate, worth_labelling
from models.feedback.precision import Precision, precision
from models.feedback.records import Label, Verdict, label_key
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


class Said(Struct, frozen=True, forbid_unknown_fields=True):
    """What the page sends. The words come from the alert: a page cannot teach what nobody posted."""

    alert_id: str
    verdict: Verdict
    by: str
    query_id: str = ""  # one of the alert's readings; default the first
    instead: str = ""


class TakenBack(Struct, frozen=True, forbid_unknown_fields=True):
    """What the page sends to undo: the label's post and query."""

    post_id: str
    query_id: str

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
    said: dict[str, tuple[Verdict, str, str]]
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

    async def write(self, given: Sequence[Label], taken_back: Sequence[str] = ()) -> None:
        """Put labels on the broker, or take some back. Raises LabelError for one that cannot be kept, ServiceError
        where the broker or the queue of writers says no.
        """
        if self._waiting >= WAITING:
            raise ServiceError("too many labels are waiting to be written: try again in a moment")
        self._waiting += 1
        try:
            async with self._writing:
                await asyncio.to_thread(publish_labels, self.settings, given, taken_back)
        finally:
            self._waiting -= 1
        changed = {key: said for key, said in self.labels.items() if key not in taken_back}
        await self._heard(changed | {said.key: said for said in given})  # the topic will say the same in a moment

    async def taught(self, alerts: Iterable[Alert]) -> Taught:
        """What was taught, measured, and is worth asking. alerts: open ones, the newest first."""
        return await asyncio.to_thread(self._taught, list(alerts))

    def _taught(self, alerts: Sequence[Alert]) -> Taught:
        newest = sorted(self.labels.values(), key=lambda said: -said.at)
        shift_h = self.settings.dashboard.shift_h
        return Taught(
            len(newest),
            newest[:SHOWN],
            {said.key: (said.verdict, said.by, said.instead) for a in alerts if (said := self.labels.get(_key(a)))},
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
