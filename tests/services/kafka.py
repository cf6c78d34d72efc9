"""One Apache Kafka node (KRaft) for the tests, its jars fetched once from Maven Central.

`CRISIS_TEST_BROKER=host:port` names a broker to use instead; it should be one node with the settings in PROPERTIES,
open to all as in LISTENERS. Where tests run in several processes they share one (`kafka_for_all`): each names its
topics and groups by itself.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from streams.embedded.child import Child
from tests.services.jars import jars
from tests.waiting import PATIENCE_S, wait_until

FOR_ALL = "CRISIS_TESTS_KAFKA"  # in the environment of the processes that share one: "host:port log"
STARTED = "Kafka Server started"
LOG = "kafka.log"
FAILED = "could not be started here"
JVM = [
    "-Xms64m",
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # quick to start rather than quick
    "-Dorg.slf4j.simpleLogger.logFile=System.out",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
]
# Who may come in, and how: everybody.
LISTENERS = """
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
"""
# Beside Kafka's defaults: one node, no waiting, and limits that let a test see expiry and compaction happen.
PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
log.dirs={folder}/logs
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=500
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
log.cleaner.backoff.ms=200
log.cleaner.dedupe.buffer.size=10485760
"""


def free_ports(n: int) -> list[int]:
    """Ports nobody listens on now, below those that systems give to whoever asks for any, as other processes do all the
    time. Each process of a test run has a thousand to itself."""
    first = 12_000 + 1_000 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    found: list[int] = []
    for port in random.SystemRandom().sample(range(first, first + 1_000), 1_000):
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == n:
            return found
    raise OSError(f"no {n} ports are free from {first} on")


class Node:
    """A broker of our own that can be stopped and started again, on its port and with its records."""

    def __init__(self, folder: Path, listeners: str = LISTENERS, format_with: Sequence[str] = ()) -> None:
        """listeners: lines of its properties that may name {port}, {controller} and {more}, ports of this machine."""
        self._java = ["java", *JVM, "-cp", f"{jars()}/*"]
        self.folder, self._format_with = folder, format_with
        port, controller, more = free_ports(3)
        self.bootstrap, self.more = f"127.0.0.1:{port}", f"127.0.0.1:{more}"
        self._config = folder / "server.properties"
        told = listeners + PROPERTIES
        for name, value in {"port": port, "controller": controller, "more": more, "folder": folder}.items():
            told = told.replace(f"{{{name}}}", str(value))
        self._config.write_text(told)
        self.child: Child | None = None

    def format(self) -> None:
        """Begin with nothing."""
        shutil.rmtree(self.folder / "logs", ignore_errors=True)
        args = ["kafka.tools.StorageTool", "format", "-t", "crisisStreamsTests0000", "-c", self._config]
        done = subprocess.run(
            [*self._java, *args, *self._format_with], capture_output=True, text=True, timeout=PATIENCE_S
        )
        if done.returncode:
            raise RuntimeError(f"kafka.tools.StorageTool: {done.stdout}\n{done.stderr}")

    def start(self) -> None:
        """Return when it is ready."""
        self.child = Child([*self._java, "kafka.Kafka", self._config], self.folder / LOG)
        _await_started(self.child.log, self.child.ended)

    def stop(self) -> None:
        """End it in order."""
        if self.child is not None:
            self.child.stop()
            self.child = None


@contextlib.contextmanager
def running_kafka() -> Iterator[str]:
    """The address of a broker that is ready. Raises Missing."""
    if given := os.environ.get("CRISIS_TEST_BROKER"):
        yield given
        return
    if shared := os.environ.get(FOR_ALL):
        bootstrap, _, log = shared.partition(" ")
        _await_started(Path(log))
        yield bootstrap
        return
    with _folder() as folder:
        node = Node(folder)
        try:
            node.format()
            node.start()
            yield node.bootstrap
        finally:
            node.stop()


@contextlib.contextmanager
def kafka_for_all() -> Iterator[None]:
    """One broker for the processes that we start from now on; it comes up while they do. Raises Missing."""
    with _folder() as folder:
        node = Node(folder)
        log = folder / LOG

        def begin() -> None:
            try:
                node.format()
                node.start()
            except Exception:  # told by those who wait for it
                with log.open("a") as told:
                    told.write(f"{FAILED}\n{traceback.format_exc()}")

        beginning = threading.Thread(target=begin, name="kafka", daemon=True)
        beginning.start()
        os.environ[FOR_ALL] = f"{node.bootstrap} {log}"
        try:
            yield
        finally:
            del os.environ[FOR_ALL]
            beginning.join()
            node.stop()


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="crisis-kafka-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _await_started(log: Path, ended: Callable[[], bool] = lambda: False) -> None:
    """Kafka says so in its log; its port is open long before."""

    def said() -> str:
        return log.read_text("utf-8", "replace") if log.exists() else ""

    wait_until(lambda: STARTED in said() or FAILED in said() or ended(), lambda: said()[-4000:])
    if STARTED not in said():
        raise RuntimeError(f"Apache Kafka did not start:\n{said()[-4000:]}")
