"""The faults: what each does, and what is promised of it beyond the usual.

Usual: nothing lost, no alert twice in effect, through again within 30 s of the end of the fault, no hand needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import redis
from kafka.admin import KafkaAdminClient
from kafka.errors import TopicAlreadyExistsError

from models.errors import ServiceError
from streams.broker.topics import AGENTS
from streams.ingest.writer import open_writer
from tests.chaos.machines import frozen, killed
from tests.chaos.scene import Scene
from tests.chaos.subject import PILL
from tests.waiting import wait_until

MORE_THAN_A_PIPE = 100  # alerts of a kilobyte and more; a pipe holds 64
CRISIS = [sys.executable, "-m", "streams.cli"]


@dataclass(frozen=True)
class Fault:
    """`happen` returns when the fault is over."""

    name: str
    happen: Callable[[Scene], object]
    promised: str = "usual"
    agents: tuple[str, ...] = ("", "")  # of the workers it needs


def each_kind(number: int) -> Callable[[Scene], None]:
    def happen(scene: Scene) -> None:
        for worker in list(scene.workers):
            before = worker.starts
            worker.signal(number)
            wait_until(lambda: worker.starts > before, worker.last_words)  # noqa: B023

    return happen


def added_and_removed(scene: Scene) -> None:
    for worker in [scene.start_worker(), scene.start_worker()]:
        wait_until(lambda: "ready: encoder" in worker.last_words(1000), worker.last_words)  # noqa: B023
        scene.some_more()
        scene.stop_worker(worker)


def broker_away(seconds: float) -> Callable[[Scene], None]:
    def happen(scene: Scene) -> None:
        killed(scene.kafka)
        time.sleep(seconds)
        scene.kafka.start()

    return happen


def broker_frozen(seconds: float) -> Callable[[Scene], None]:
    def happen(scene: Scene) -> None:
        with frozen(scene.kafka):
            time.sleep(seconds)

    return happen


def drained(scene: Scene) -> None:
    """Nothing is under way: what a topic or a broker takes along when it goes was read before."""
    scene.traffic.flow(False)
    scene.through()


def broker_empty(scene: Scene) -> None:
    """It comes back with nothing of what it held; then the runbook's "Starting over", by hand."""
    drained(scene)
    killed(scene.kafka)
    scene.kafka.format()
    scene.kafka.start()
    for worker in scene.workers:
        worker.signal(signal.SIGTERM)
    subprocess.run(CRISIS + ["topics", "--reset-view"], env={**os.environ, **scene.env}, check=True)
    scene.witness.begin_anew()
    before = len(scene.traffic.lines)
    scene.traffic.flow(True)
    wait_until(lambda: len(scene.traffic.lines) > before)  # else nothing is there whose way could be timed


def topic_missing(scene: Scene) -> None:
    """Somebody deletes a topic between two stages while posts come; `crisis topics` makes it again, by hand."""
    drained(scene)
    with administrator(scene) as admin:
        admin.delete_topics([scene.settings.topics.name("posts.clean")])
        scene.traffic.flow(True)
        time.sleep(15.0)
    subprocess.run(CRISIS + ["topics"], env={**os.environ, **scene.env}, check=True)


def too_few_partitions(scene: Scene) -> None:
    """A topic was made by somebody else, with one partition where posts come in four; mended by hand."""
    drained(scene)
    name = scene.settings.topics.name("posts.clean")
    with administrator(scene) as admin:
        admin.delete_topics([name])
        wait_until(lambda: name not in admin.list_topics())
        with contextlib.suppress(TopicAlreadyExistsError):  # the broker itself was faster, for a worker: one partition
            admin.create_topics({name: {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
        scene.traffic.flow(True)
        time.sleep(15.0)
    subprocess.run(CRISIS + ["topics"], env={**os.environ, **scene.env}, check=True)


@contextlib.contextmanager
def administrator(scene: Scene) -> Iterator[KafkaAdminClient]:
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=scene.kafka.bootstrap)) as admin:
        yield admin


def unreachable_at_start(scene: Scene) -> None:
    """Workers begin while broker and Redis are away."""
    killed(scene.kafka)
    scene.redis.stop()
    for worker in scene.workers:
        worker.signal(signal.SIGKILL)
    time.sleep(15.0)
    scene.redis.start()
    scene.kafka.start()


def broker_disk_full(scene: Scene) -> None:
    """No file of the broker may grow any more; it gives up; then there is room again."""
    size = max(p.stat().st_size for p in (scene.kafka.folder / "logs").rglob("*.log"))
    java = subprocess.run(["pgrep", "-g", str(scene.kafka.child.pid), "java"], capture_output=True, text=True)
    subprocess.run(["prlimit", f"--pid={java.stdout.split()[0]}", f"--fsize={size}:{size}"], check=True)
    scene.until_said(live=False)
    killed(scene.kafka)
    scene.kafka.start()


def redis_away(seconds: float, empty: bool = False) -> Callable[[Scene], None]:
    def happen(scene: Scene) -> None:
        killed(scene.redis)
        if empty:
            scene.redis.empty()
        time.sleep(seconds)
        scene.redis.start()

    return happen


def redis_frozen(seconds: float) -> Callable[[Scene], None]:
    def happen(scene: Scene) -> None:
        with frozen(scene.redis):
            time.sleep(seconds)

    return happen


def redis_full(seconds: float) -> Callable[[Scene], None]:
    def happen(scene: Scene) -> None:
        with redis.Redis.from_url(scene.redis.url) as client:
            client.config_set("maxmemory", 1)
            time.sleep(seconds)
            client.config_set("maxmemory", 0)

    return happen


def redis_disk_full(scene: Scene) -> None:
    """Redis cannot save: it refuses every write (MISCONF)."""
    with redis.Redis.from_url(scene.redis.url) as client:
        client.config_set("save", "1 1")
        blocked = scene.redis.folder / "data" / "dump.rdb"
        blocked.unlink(missing_ok=True)
        blocked.mkdir()
        (blocked / "full").touch()  # a folder that cannot be replaced, in the place of the file
        time.sleep(25.0)
        client.config_set("save", "")
        client.config_set("stop-writes-on-bgsave-error", "no")
        scene.some_more()
        client.config_set("stop-writes-on-bgsave-error", "yes")
        (blocked / "full").unlink()
        blocked.rmdir()
        client.bgsave()


def encoder(misbehave: str, seconds: float) -> Callable[[Scene], None]:
    def happen(scene: Scene) -> None:
        with scene.told_to(misbehave):
            time.sleep(seconds)

    return happen


def poison(scene: Scene) -> None:
    refused = scene.witness.rejected
    pill = f'{{"id": "pill-{time.time()}", "text": "{PILL}"}}'.encode()
    # A broker that came back empty may give a new producer the number of one that still sends, and find the records of
    # both out of order: the source ends, saying so, and is started again.
    for _ in range(3):
        with contextlib.suppress(ServiceError), open_writer(scene.settings) as writer:
            writer.write(pill)
            break
    wait_until(lambda: scene.witness.rejected > refused)


def clock_jumps(scene: Scene) -> None:
    for offset in (3600, -3600, 86_400):
        with scene.told_to("clock", str(offset)):
            scene.some_more()


def pauses(times: int, pause_s: float = 2.0) -> Callable[[Scene], None]:
    def happen(scene: Scene) -> None:
        chance = random.Random(13)
        for _ in range(times):
            with frozen(chance.choice(scene.workers)):
                time.sleep(pause_s)
            time.sleep(0.4)

    return happen


def dashboard_frozen(seconds: float) -> Callable[[Scene], None]:
    def happen(scene: Scene) -> None:
        with frozen(scene.dashboard):
            time.sleep(seconds)

    return happen


def slow_consumer(scene: Scene) -> None:
    """Somebody follows the alerts and does not read what he is given; then he does, and has them all."""
    args = [*CRISIS, "alerts", "--follow", "--format", "json"]
    with subprocess.Popen(args, env={**os.environ, **scene.env}, stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        first = json.loads(reader.stdout.readline())["post"]["id"]  # from here on he is told of all
        begun = set(scene.witness.alerts) | {first}
        wait_until(lambda: len(scene.witness.alerts) >= len(begun) + MORE_THAN_A_PIPE, lambda: scene.witness.rejected)
        left = set(scene.witness.alerts) - begun
        while left:
            left.discard(json.loads(reader.stdout.readline())["post"]["id"])
        reader.terminate()


FULL = (
    Fault("workers added and removed", added_and_removed),
    Fault("broker stopped for 30 s", broker_away(30)),
    Fault("broker frozen for 20 s", broker_frozen(20)),
    Fault("broker and Redis unreachable when workers start", unreachable_at_start),
    Fault("broker's disk full", broker_disk_full),
    Fault("broker restarted empty", broker_empty, "usual; by hand: `crisis topics --reset-view` and workers anew"),
    Fault("a topic missing for 15 s", topic_missing, "usual; by hand: `crisis topics`"),
    Fault("a topic with too few partitions for 15 s", too_few_partitions, "usual; by hand: `crisis topics`"),
    Fault("Redis stopped for 60 s", redis_away(60)),
    Fault("Redis restarted empty", redis_away(2, empty=True), "usual; the page's list and counters begin anew"),
    Fault("Redis out of memory for 30 s", redis_full(30)),
    Fault("Redis frozen for 60 s", redis_frozen(60)),
    Fault("Redis's disk full for 25 s", redis_disk_full),
    Fault("encoder raises for 10 s", encoder("raise", 10)),
    Fault("encoder hangs for 90 s", encoder("hang", 90)),
    Fault("a record that ends workers", poison, "refused unread after two workers; all others usual"),
    Fault("clocks of the workers jump by hours", clock_jumps),
    Fault("dashboard frozen for 20 s", dashboard_frozen(20)),
    Fault("a follower of alerts that does not read", slow_consumer),
    Fault("100 pauses of 2 s", pauses(100)),
    *(
        Fault(f"{word} of each kind of worker, one after the other", each_kind(number), agents=AGENTS)
        for word, number in (("kill -9", signal.SIGKILL), ("SIGTERM", signal.SIGTERM))
    ),
)
