"""The scenario latency.3: post → alert at a subscriber, and → its cluster, at shares of what the worker sustains.

Of clusters only posts count whose cluster had been told before they were written: others wait for a second post.
A source writes posts one by one, each when it is due, made at that moment (the clusterer's clock is theirs), with its
usual linger; a subscriber reads the alerts. Then what
a worker and the dashboard use when nothing comes, and at 60 posts a second. `ready`: seconds from a worker's start
until it says so.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence

import click
import msgspec
import numpy as np
from kafka import KafkaConsumer, TopicPartition

from streams.embedded.child import Child
from streams.ingest.lines import head_of, key_of
from streams.ingest.writer import open_writer
from tests.flow.scene import ALL, Deployment, Services, cpu_s, measured, renamed
from tests.waiting import wait_until

SHARES = (10, 50, 80)  # per cent of the sustained rate
RUN_S = 12.0
QUIET_S = 8.0


class Subscriber:
    """When each post was first alerted, and when its alert first named a cluster: seconds of `time.monotonic`."""

    def __init__(self, deployment: Deployment) -> None:
        self.alerted: dict[str, float] = {}
        self.placed: dict[str, tuple[str, float]] = {}
        self._told: dict[str, float] = {}  # clusters
        self._end = threading.Event()
        topic = deployment.settings.topics.name("alerts")
        self._consumer = KafkaConsumer(
            bootstrap_servers=deployment.settings.broker.bootstrap, enable_auto_commit=False, fetch_max_wait_ms=20
        )
        self._consumer.assign([TopicPartition(topic, p) for p in self._consumer.partitions_for_topic(topic)])
        self._consumer.seek_to_beginning()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._end.is_set():
            for records in self._consumer.poll(timeout_ms=50).values():
                now = time.monotonic()
                for record in records:
                    alert = msgspec.json.decode(record.value)
                    self.alerted.setdefault(alert["post"]["id"], now)
                    if cluster := alert.get("cluster_id"):
                        self._told.setdefault(cluster, now)
                        self.placed.setdefault(alert["post"]["id"], (cluster, now))
        self._consumer.close()

    def joined(self, written: dict[str, float]) -> dict[str, float]:
        """When each of these posts was placed in a cluster that had been told before it was written."""
        return {i: at for i, (cluster, at) in list(self.placed.items()) if self._told[cluster] < written.get(i, -1.0)}

    def stop(self) -> None:
        self._end.set()
        self._thread.join()


def pour(deployment: Deployment, lines: Sequence[bytes], rate: float) -> dict[str, float]:
    """Write posts, so many a second; returns when each was written."""
    written: dict[str, float] = {}
    began = time.monotonic()
    with open_writer(deployment.settings) as writer:
        for n, line in enumerate(lines):
            if (early := began + n / rate - time.monotonic()) > 0:
                time.sleep(early)
            post = msgspec.json.decode(line) | {"created_at": time.time()}
            written[post["id"]] = time.monotonic()
            writer.write(msgspec.json.encode(post), key=key_of(head_of(line)))
    return written


def _just_made(lines: Sequence[bytes]) -> list[bytes]:
    """The same posts as if the last of them had been made now."""
    posts = [msgspec.json.decode(line) for line in lines]
    later_s = time.time() - posts[-1]["created_at"]
    return [msgspec.json.encode(post | {"created_at": post["created_at"] + later_s}) for post in posts]


def quantiles(name: str, seen: dict[str, float], written: dict[str, float]) -> dict[str, float]:
    """p50, p95, p99 in ms of those that were seen."""
    waited = [1e3 * (seen[i] - at) for i, at in written.items() if i in seen]
    return {f"{name}_p{q}": float(np.quantile(waited, q / 100)) for q in (50, 95, 99)} if waited else {}


@contextlib.contextmanager
def worker(
    at: Services, lines: Sequence[bytes], encoder: str
) -> Iterator[tuple[Deployment, Subscriber, Child, float, float]]:
    """A warm one, with its rate over posts that wait, from the first it read to the last in a cluster (stages hold
    thousands of posts between them: a part of a short run would tell too much or too little), and when it was ready."""
    deployment = Deployment(at, encoder=encoder, keep_ids=True)
    began = time.monotonic()
    with deployment.workers([ALL]) as (child,):
        ready_s = time.monotonic() - began
        click.echo(f"  ready after {ready_s:.1f} s, {cpu_s(child.pid):.1f} s of CPU", err=True)
        deployment.write(_just_made(lines), 100)
        marks = measured(deployment, [child], deployment.through, 1, len(lines), deployment.begun)
        subscriber = Subscriber(deployment)
        try:
            rate = len(lines) / (marks[1].at - marks[0].at)
            yield deployment, subscriber, child, rate, ready_s
        finally:
            subscriber.stop()


def scenario(
    at: Services, lines: Sequence[bytes], words: Sequence[str] = (), profile: object = None
) -> dict[str, float]:
    """For the static preset and, in a tenth as many posts, the reader. words: one of the two."""
    found: dict[str, float] = {}
    for encoder, share_of in (("flood", 1), ("reader", 10)):
        if words and encoder not in words:
            continue
        some = lines[: len(lines) // 2 // share_of]
        with worker(at, some, encoder) as (deployment, subscriber, child, rate, ready_s):
            found |= {f"{encoder}.sustained": 1e6 / rate, f"{encoder}.ready": ready_s}
            next_line = len(some)
            for share in SHARES:
                mine = renamed(lines, next_line, int(rate * share / 100 * RUN_S))
                next_line += len(mine)
                before = deployment.through()
                written = pour(deployment, mine, rate * share / 100)
                wait_until(lambda: deployment.through() >= before + len(mine), deployment.counts)  # noqa: B023
                time.sleep(3.0)  # for placements of the last ones
                told = quantiles(f"at{share}_alert", subscriber.alerted, written)
                told |= quantiles(f"at{share}_cluster", subscriber.joined(written), written)
                click.echo(f"  {encoder} at {rate * share / 100:.0f} posts/s: " + _told(told), err=True)
                found |= {f"{encoder}.{name}": value for name, value in told.items()}
            with deployment.running("streams.cli", "dashboard", "--port", "0") as dashboard:
                wait_until(
                    lambda: "dashboard: http" in dashboard.last_words() or dashboard.ended(), dashboard.last_words
                )
                time.sleep(QUIET_S)  # it loads its encoder
                for name, per_s in (("idle", 0.0), ("at_60", 60.0)):
                    processes = {"cores": child.pid, "dashboard_cores": dashboard.pid}
                    used, began = {who: cpu_s(pid) for who, pid in processes.items()}, time.monotonic()
                    if per_s:
                        pour(deployment, renamed(lines, next_line, int(per_s * QUIET_S)), per_s)
                    else:
                        time.sleep(QUIET_S)
                    took_s = time.monotonic() - began
                    told = {f"{who}_{name}": (cpu_s(pid) - used[who]) / took_s for who, pid in processes.items()}
                    click.echo(f"  {encoder}: " + ", ".join(f"{k} {v:.3f}" for k, v in told.items()), err=True)
                    found |= {f"{encoder}.{k}": v for k, v in told.items()}
    return found


def _told(figures: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.0f} ms" for name, value in figures.items())
