"""The whole pipeline on services of our own, under a steady stream, and what one fault did to it."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import redis

from models.encoders.ready import Ready, load, ready
from models.queries import load_queries
from streams.commands.key import make_key
from streams.commands.topics import prepare
from streams.config import Settings, load_settings
from streams.pipeline.outcomes import OUTCOMES
from streams.pipeline.replay import replay_records
from tests.chaos.machines import RedisNode, Supervised
from tests.chaos.traffic import Traffic, Witness, one_word
from tests.services.kafka import Node, free_ports
from tests.waiting import wait_until

RATE = 20.0  # posts a second
BEFORE_S, AFTER_S = 3.0, 3.0  # of quiet flow around a fault


@dataclass
class Outcome:
    """What one fault did. Seconds are counted from its begin (told_s) or its end (recovery_s)."""

    fault: str
    promised: str
    fault_s: float
    posts: int  # written while it was tried
    lost: int  # of them: posts without an outcome, and alerts that a run without faults gives and this one did not
    refused: int  # of them: posts on posts.rejected with a reason, that can be sent again
    doubled: int  # alerts beyond those, different alerts of one id and revision, posts counted twice
    recovery_s: float  # until every post written before its end was through
    told_s: float | None  # until /readyz of the dashboard no longer said "live"; None: it always did
    workers_ended: list[int]  # exit statuses of workers that ended on their own account
    why: list[str]  # what each of them said last
    said: str  # the first that /readyz said when it no longer said "live"
    load: float  # of the machine, averaged over the last minute: seconds grow with it


class Scene:
    """Two workers, a dashboard, a broker, Redis. Made by `scene()`."""

    def __init__(
        self,
        settings: Settings,
        kafka: Node,
        store: RedisNode,
        folder: Path,
        agents: tuple[str, ...],
        rate: float = RATE,
        hostile: Sequence[str] = (),
    ) -> None:
        self.settings, self.kafka, self.redis, self.folder = settings, kafka, store, folder
        self.workers: list[Supervised] = []
        self._started = 0
        self._subject = ("tests.chaos.subject", str(folder))
        self._ready: Ready = ready(load("flood"), load_queries())
        (self._port,) = free_ports(1)
        self.dashboard = Supervised(
            "dashboard",
            [*self._subject, "dashboard", "--no-search", "--port", str(self._port)],
            self.env,
            folder / "dashboard.log",
        )
        for names in agents:
            self.start_worker(names)
        self.traffic, self.witness = Traffic(settings, rate, hostile), Witness(settings)
        self._samples: list[tuple[float, str]] = []  # when, what /readyz said
        self._twice = 0  # posts counted twice so far
        self._end = threading.Event()
        threading.Thread(target=self._ask, name="ask", daemon=True).start()

    @property
    def env(self) -> dict[str, str]:
        s = self.settings
        return {
            "CRISIS_BROKER__BOOTSTRAP": s.broker.bootstrap,
            "CRISIS_REDIS__URL": s.redis.url,
            "CRISIS_ENCODER__REF": "flood",
            "CRISIS_PRIVACY__KEY_FILE": str(s.privacy.key_file),
            "CRISIS_PRIVACY__KEEP_IDS": "true",
            "CRISIS_WORKER__WEB_PORT": "0",
            "OMP_NUM_THREADS": "1",
        }

    def start_worker(self, agents: str = "") -> Supervised:
        """agents: comma separated; all if empty."""
        self._started += 1
        name = f"worker-{self._started}"
        args = [*self._subject, "worker", *(["--agents", agents] if agents else [])]
        self.workers.append(Supervised(name, args, self.env, self.folder / f"{name}.log"))
        return self.workers[-1]

    def stop_worker(self, worker: Supervised) -> None:
        self.workers.remove(worker)
        worker.stop()

    @contextlib.contextmanager
    def told_to(self, misbehave: str, how: str = "") -> Iterator[None]:
        """Every worker does (tests/chaos/subject.py)."""
        flag = self.folder / misbehave
        flag.write_text(how)
        try:
            yield
        finally:
            flag.unlink()

    def measure(self, fault: str, promised: str, happen: Callable[[Scene], object]) -> Outcome:
        """Let it happen under load. Raises AssertionError if the pipeline does not come back."""
        before, ends = set(self.traffic.lines), {w: len(w.ended) for w in self.workers}
        self.traffic.flow(True)
        time.sleep(BEFORE_S)
        began = time.monotonic()
        happen(self)
        over, marked = time.monotonic(), set(self.traffic.lines)
        recovered = self._through(marked)
        time.sleep(AFTER_S)
        self.traffic.flow(False)
        self._through(set(self.traffic.lines))
        ids = set(self.traffic.lines) - before
        lost, doubled = self._against_a_replay(ids)
        unwell = ((at - began, word) for at, word in self._samples if at >= began and not word.startswith("live"))
        told, said = next(unwell, (None, ""))
        if told is not None and began + told > max(over, recovered) + AFTER_S:
            told, said = None, ""
        # of all posts so far, not since the fault began: counts of posts sent just before it may come after
        if (counted := self._counted()) is not None:
            twice = max(0, counted - len(self.traffic.lines.keys() - self.witness.refused))
            doubled, self._twice = doubled + max(0, twice - self._twice), twice
        return Outcome(
            fault,
            promised,
            round(over - began, 1),
            len(ids),
            lost,
            len(ids & self.witness.refused),
            doubled,
            round(max(0.0, recovered - over), 1),
            None if told is None else round(told, 1),
            [status for w, n in ends.items() for status in w.ended[n:]],
            [reason for w, n in ends.items() for reason in w.why[n:]],
            said.strip(),
            round(os.getloadavg()[0], 1),
        )

    def settle(self) -> None:
        """Return once a post goes all the way."""
        self.traffic.flow(True)
        time.sleep(1.0)
        self.traffic.flow(False)
        self._through(set(self.traffic.lines))

    def until_said(self, live: bool) -> None:
        """Return once the dashboard says that all is well, or that it is not."""
        asked = len(self._samples)
        wait_until(
            lambda: any(word.startswith("live") == live for _, word in self._samples[asked:]),
            lambda: self._samples[-1:],
        )

    def some_more(self, posts: int = 100) -> None:
        """Return once so many more posts went through."""
        known = len(self.witness.matched)
        wait_until(lambda: len(self.witness.matched) >= known + posts, self._told)

    def _told(self) -> str:
        said = (f"--- {w.name} {w.ended}\n{w.last_words()}" for w in self.workers)
        return "\n".join((f"counted: {self._counted()}", *said))

    def through(self) -> None:
        """Return once all that was written so far is through."""
        self._through(set(self.traffic.lines))

    def _through(self, ids: set[str]) -> float:
        """When the last of these was through; waits for it."""

        def missing() -> set[str]:
            return ids - self.witness.matched.keys() - self.witness.refused

        def told() -> str:
            return f"{len(missing())} of {len(ids)} posts are not through\n{self._told()}"

        wait_until(lambda: not missing(), told)
        return max((self.witness.matched[i] for i in ids if i in self.witness.matched), default=time.monotonic())

    def _against_a_replay(self, ids: set[str]) -> tuple[int, int]:
        """Alerts that are missing, and that are too many."""
        ids = ids - self.witness.refused
        lines = [self.traffic.lines[i] for i in sorted(ids)]
        wanted = replay_records(self.settings, lines, time.time(), self._ready).alerts.by_id
        seen = self.witness.alerts
        with contextlib.suppress(AssertionError):  # what was matched is told on another topic; else it counts as lost
            wait_until(lambda: all(seen[a.post.id] for a in list(wanted.values())))
        given = {alert for i in ids for alert in seen[i]}
        told = [said for (alert, _), said in list(self.witness.told.items()) if alert in given]
        two_words = sum(not one_word(said) for said in told)
        return len(set(wanted) - given), len(given - set(wanted)) + two_words

    def _counted(self) -> int | None:
        """Posts with an outcome, by the counters; repeats of a source that wrote a post twice left out."""
        try:
            with redis.Redis.from_url(self.settings.redis.url, socket_timeout=2) as client:
                counts = client.hgetall(f"{self.settings.key_prefix}counts")
        except redis.RedisError:
            return None
        return sum(int(counts.get(name.encode(), 0)) for name in OUTCOMES if name not in ("folded", "rejected"))

    def _ask(self) -> None:
        while not self._end.wait(0.25):
            try:
                word = httpx.get(f"http://127.0.0.1:{self._port}/readyz", timeout=1.0).text
            except httpx.HTTPError as error:
                word = f"no answer: {error}"
            self._samples.append((time.monotonic(), word))

    def close(self) -> None:
        self._end.set()
        self.traffic.stop()
        self.witness.stop()
        for process in (*self.workers, self.dashboard):
            process.stop()


@contextlib.contextmanager
def scene(
    agents: tuple[str, ...] = ("", ""), log: Path | None = None, rate: float = RATE, hostile: Sequence[str] = ()
) -> Iterator[Scene]:
    """Everything up and a first post through. agents: of each worker; rate: posts/s, one in a hundred with a hostile
    text, if there are any. Raises Missing."""
    with contextlib.ExitStack() as stack:
        scratch = tempfile.TemporaryDirectory(prefix="crisis-chaos-", ignore_cleanup_errors=True)
        folder = log or Path(stack.enter_context(scratch))
        folder.mkdir(parents=True, exist_ok=True)
        kafka, store = Node(folder), RedisNode(folder)
        kafka.format()
        for node in (kafka, store):
            stack.callback(node.stop)
            node.start()
        make_key(folder / "key")
        settings = load_settings(
            broker={"bootstrap": kafka.bootstrap},
            redis={"url": store.url},
            privacy={"key_file": folder / "key", "keep_ids": True},  # a run without faults gives the same ids
        )
        prepare(settings)
        made = Scene(settings, kafka, store, folder, agents, rate, hostile)
        stack.callback(made.close)
        made.settle()
        yield made
