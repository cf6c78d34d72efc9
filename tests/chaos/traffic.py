"""A steady stream of distinct posts, written as a source writes them, and the witness of what came of each."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import count
from typing import NamedTuple

import msgspec
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from models.errors import ServiceError
from models.records import MatchedFrame, Post, Reject
from streams.broker.connect import threaded_options
from streams.config import Settings
from streams.ingest.writer import FrameWriter, open_writer
from streams.pipeline.frames import decode_frames

TEXTS = (
    "we are trapped on the roof, the water is rising, house {n}",
    "lovely weather for football today, match {n}",
    "No drinking water for two days, please send water to street {n}",
    "the bus number {n} was late again this morning",
    "We can offer a warm room and blankets for {n} people",
    "I am reading a book about the history of trains, page {n}",
)


HOSTILE_EVERY = 100


def is_hostile(number: int) -> bool:
    """Of the post `chaos-NUMBER`, in a stream that holds hostile ones."""
    return number % HOSTILE_EVERY == HOSTILE_EVERY - 1


SAME_SCORE = 0.001


class Traffic:
    """Writes `rate` posts a second while it flows. After a failure it goes on from its cursor, as a source does.

    hostile: texts of which one in HOSTILE_EVERY posts has one.
    """

    def __init__(self, settings: Settings, rate: float, hostile: Sequence[str] = ()) -> None:
        self._settings, self._rate, self._hostile = settings, rate, hostile
        self.lines: dict[str, bytes] = {}  # all that were written, by id
        self.written: dict[str, float] = {}  # post id → when it was first written, monotonic seconds
        self.taken: set[str] = set()  # acknowledged by the broker
        self._numbers, self._again = count(), list[str]()
        self._flow, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="traffic", daemon=True)
        self._thread.start()

    def flow(self, on: bool) -> None:
        (self._flow.set if on else self._flow.clear)()

    def stop(self) -> None:
        self._end.set()
        self._flow.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._end.is_set():
            try:
                writer = open_writer(self._settings)
            except ServiceError:
                time.sleep(1.0)
                continue
            try:
                self._write(writer)
            except ServiceError:
                continue
            finally:
                try:
                    writer.close()
                except ServiceError:
                    pass

    def _write(self, writer: FrameWriter) -> None:
        for missing in [i for i in self.lines if i not in self.taken]:
            self._put(writer, missing)
        due = time.monotonic()
        while not self._end.is_set():
            if not self._flow.is_set():
                self._flow.wait(0.2)
                due = time.monotonic()
                if writer.error is not None:
                    raise writer.error
                continue
            n = next(self._numbers)
            text = TEXTS[n % len(TEXTS)].format(n=n)
            if self._hostile and is_hostile(n):
                text = self._hostile[n // HOSTILE_EVERY % len(self._hostile)]
                text = f"{n} {text}"[: len(text)]  # never the same twice: nothing is known of it
            post = {"id": f"chaos-{n}", "text": text, "lang": "en", "source": "chaos"}
            self.lines[post["id"]] = json.dumps(post).encode()
            self.written[post["id"]] = time.monotonic()
            self._put(writer, post["id"])
            due += 1 / self._rate
            time.sleep(max(0.0, due - time.monotonic()))

    def _put(self, writer: FrameWriter, post_id: str) -> None:
        def then(error: ServiceError | None) -> None:
            if error is None:
                self.taken.add(post_id)

        writer.write(self.lines[post_id], key=post_id, then=then)


class Said(NamedTuple):
    """What an alert says at one of its revisions."""

    status: str
    level: str
    query_id: str
    score: float


def one_word(said: Collection[Said]) -> bool:
    """Whether what was told of one revision is one thing: a post that is read again, after a worker died, is read
    among others, and float32 sums over other numbers of rows differ, of 7,675 alerts 10 in a score's fourth digit."""
    scores = [one.score for one in said]
    return len({one[:3] for one in said}) == 1 and max(scores) - min(scores) < SAME_SCORE


class Witness:
    """Follows what the pipeline publishes, from a thread of its own, whatever happens to the broker."""

    def __init__(self, settings: Settings) -> None:
        self.matched: dict[str, float] = {}  # post id → when it was first seen on posts.matched, monotonic seconds
        self.alerts: dict[str, set[str]] = defaultdict(set)  # post id → ids of its alerts
        self.told: dict[tuple[str, int], set[Said]] = defaultdict(set)  # alert id, revision → what it said
        self.rejected = 0
        self.refused: set[str] = set()  # ids of posts that were read and then refused
        self._names = {settings.topics.name(t): t for t in ("posts.matched", "alerts", "posts.rejected")}
        self._settings, self._end, self._anew = settings, threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="witness", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join(10)

    def begin_anew(self) -> None:
        """The topics were made anew: what lies below the offsets read so far has not been read."""
        self._anew.set()

    def _run(self) -> None:
        options = {"enable_auto_commit": False, "auto_offset_reset": "earliest", "allow_auto_create_topics": False}
        consumer = KafkaConsumer(**threaded_options(self._settings.broker), **options)
        partitions = {"posts.matched": 1}
        consumer.assign(
            [
                TopicPartition(name, p)
                for name, topic in self._names.items()
                for p in range(partitions.get(topic, self._settings.topics.partitions))
            ]
        )
        while not self._end.is_set():
            if self._anew.is_set():
                self._anew.clear()
                consumer.seek_to_beginning()
            try:
                found = consumer.poll(timeout_ms=200)
            except KafkaError:
                continue
            for part, records in found.items():
                for record in records:
                    self._take(self._names[part.topic], record.value)
        consumer.close()

    def _take(self, topic: str, value: bytes) -> None:
        if topic == "posts.rejected":
            self.rejected += 1
            reject = msgspec.json.decode(value, type=Reject)
            if reject.stage == "embed" and reject.reason == "stage_error":
                self.refused.add(msgspec.msgpack.decode(reject.raw, type=Post).id)
        elif topic == "alerts":
            alert = json.loads(value)
            self.alerts[alert["post"]["id"]].add(alert["alert_id"])
            said = Said(alert["status"], alert["level"], alert["query_id"], alert["score"])
            self.told[alert["alert_id"], alert["revision"]].add(said)
        else:
            for frame in decode_frames(value, MatchedFrame):
                for post_id in [p.id for p in frame.posts] + [r.id for r in frame.repeats]:
                    self.matched.setdefault(post_id, time.monotonic())
