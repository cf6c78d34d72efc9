"""One Apache Kafka node (KRaft) for the tests, its jars fetched once from Maven Central.

`CRISIS_TEST_BROKER=host:port` names a broker to use instead; it should be one node with the settings in PROPERTIES.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from streams.embedded.child import Child
from tests.services.jars import jars
from tests.waiting import PATIENCE_S, wait_until

STARTED = "Kafka Server started"
JVM = [
    "-Xms64m",
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # quick to start rather than quick
    "-Dorg.slf4j.simpleLogger.logFile=System.out",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
]
# Beside Kafka's defaults: one node, no waiting, and limits that let a test see expiry and compaction happen.
PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
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
    """Ports nobody listens on now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


class Node:
    """A broker of our own that can be stopped and started again, on its port and with its records."""

    def __init__(self, folder: Path) -> None:
        self._java = ["java", *JVM, "-cp", f"{jars()}/*"]
        self.folder = folder
        port, self._controller = free_ports(2)
        self.bootstrap = f"127.0.0.1:{port}"
        self._config = folder / "server.properties"
        self._config.write_text(PROPERTIES.format(port=port, controller=self._controller, folder=folder))
        self.child: Child | None = None

    def format(self) -> None:
        """Begin with nothing."""
        shutil.rmtree(self.folder / "logs", ignore_errors=True)
        args = ["kafka.tools.StorageTool", "format", "-t", "crisisStreamsTests0000", "-c", self._config]
        done = subprocess.run([*self._java, *args], capture_output=True, text=True, timeout=PATIENCE_S)
        if done.returncode:
            raise RuntimeError(f"kafka.tools.StorageTool: {done.stdout}\n{done.stderr}")

    def start(self) -> None:
        """Return when it is ready."""
        self.child = Child([*self._java, "kafka.Kafka", self._config], self.folder / "kafka.log")
        _await_started(self.child)

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
    with tempfile.TemporaryDirectory(prefix="crisis-kafka-", ignore_cleanup_errors=True) as folder:
        node = Node(Path(folder))
        try:
            node.format()
            node.start()
            yield node.bootstrap
        finally:
            node.stop()


def _await_started(child: Child) -> None:
    """Kafka says so in its log; its port is open long before."""

    def said() -> bool:
        return STARTED in child.log.read_text("utf-8", "replace")

    wait_until(lambda: said() or child.ended(), lambda: child.last_words(40))
    if not said():
        raise RuntimeError(f"Apache Kafka did not start:\n{child.last_words(40)}")
