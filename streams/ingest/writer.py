"""Packs posts into NDJSON frames and writes them to posts.raw; says when they are safely on the broker.

kafka-python, not aiokafka: the sources are half threads (files, standard input) and half event loops, and
kafka-python's producer takes records from either without blocking and sends from a thread of its own, so a slow source
never starves the connection. It is idempotent with acks=all by default (nothing lost or doubled by its retries) and
costs 11 µs a record (measured); with 100 posts in a record that is nothing.

A post's create, update and delete go to the same partition (by its key), so they are worked off in that order; hence
one frame is being filled per partition. `then` callbacks run once a line *and all lines before it* are acknowledged:
that is when a source may move its cursor.
"""

from __future__ import annotations

import asyncio
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError

from models.errors import ServiceError
from streams.broker.connect import reach, threaded_options
from streams.config import Settings
from streams.config.sections import WriterConfig
from streams.ingest.lines import oversize_marker

__all__ = ["FrameWriter", "Then", "open_writer"]

Then = Callable[[ServiceError | None], None]  # called from the producer's thread: be quick, do not write


@dataclass
class Counts:
    """What a writer has done. read = lines given to it, sent = lines the broker acknowledged."""

    read: int = 0
    sent: int = 0
    frames: int = 0
    oversized: int = 0


@dataclass
class _Frame:
    """The lines being packed for one partition, or on their way."""

    partition: int
    first: int  # sequence number of its first line
    due: float  # monotonic seconds
    lines: list[bytes] = field(default_factory=list)
    size: int = 0
    done: bool = False


class FrameWriter:
    """`write` lines, `flush`, `close`; a context manager. Safe to share between threads.

    client: further KafkaProducer options (TLS, SASL). Raises ServiceError if the broker cannot be reached or refuses.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        config: WriterConfig = WriterConfig(),  # noqa: B008 (frozen)
        *,
        client: Mapping[str, Any] | None = None,
    ) -> None:
        self.config, self.topic, self.counts = config, topic, Counts()
        self.error: ServiceError | None = None
        options: dict[str, Any] = {
            "bootstrap_servers": bootstrap.split(","),
            "bootstrap_timeout_ms": 10_000,
            "max_block_ms": 10_000,
        } | dict(client or {})
        where = ",".join(options["bootstrap_servers"])
        try:
            reach(options["bootstrap_servers"])
            self._producer = KafkaProducer(
                **options,
                client_id="crisis-ingest",
                allow_auto_create_topics=False,
                delivery_timeout_ms=int(config.delivery_timeout_s * 1000),
                request_timeout_ms=int(min(30.0, config.delivery_timeout_s / 2) * 1000),
                compression_type=None if config.compression == "none" else config.compression,
                max_request_size=config.line_bytes + config.frame_bytes + 65_536,
            )
        except (KafkaError, OSError, ValueError) as error:
            raise ServiceError(f"no Kafka broker at {where} ({error}): see `crisis doctor`") from error
        try:
            self._partitions = sorted(self._producer.partitions_for(topic) or ())
        except KafkaError:  # it waited for the topic to appear
            self._partitions = []
        if not self._partitions:
            self._producer.close(timeout=1)
            raise ServiceError(f"the broker at {where} has no topic {topic!r}: run `crisis topics` first")
        self._sending = threading.RLock()  # held while a frame is handed over: keeps a partition's frames in order
        self._changed = threading.Condition()  # guards all below
        self._open: dict[int, _Frame] = {}
        self._unacknowledged: dict[int, deque[_Frame]] = {p: deque() for p in self._partitions}
        self._in_flight = 0
        self._waiting: deque[tuple[int, Then]] = deque()
        self._told_of_failure: list[Then] = []
        self._closed = False
        self._lingerer = threading.Thread(target=self._linger, name="frame-linger", daemon=True)
        self._lingerer.start()

    # -- writing -------------------------------------------------------------------------------------------------

    def write(self, line: bytes, *, key: str | None = None, then: Then | None = None) -> None:
        """Add one line (one JSON post, no newline inside). Waits while too many frames are unacknowledged.

        key: the post's id; without one the lines go round robin. then: see the module. Raises ServiceError once
        the broker failed.
        """
        line = line.strip()
        if b"\n" in line:
            raise ValueError("a line may hold no newline: encode the post as one line of JSON")
        if len(line) > self.config.line_bytes:
            line = oversize_marker(line, len(line))
        full = False
        with self._changed:
            partition = self._partition_of(key)
        while line and self._would_overflow(partition, len(line)):
            self._send(partition)
        with self._changed:
            if self.error is not None:
                raise self.error
            if self._closed:
                raise ValueError("the writer is closed")
            if line:
                full = self._add(line, partition)
            if then is not None:
                self._waiting.append((self.counts.read - 1, then))
        if full:
            self._send(partition)
        if then is not None:
            self._settle()  # a blank line waits for nothing but the lines before it

    @property
    def crowded(self) -> bool:
        """Whether the next full frame would have to wait for the broker."""
        return self._in_flight >= self.config.frames_in_flight

    async def put(self, line: bytes, *, key: str | None = None, then: Then | None = None) -> None:
        """`write` from an event loop: waits in a thread where `write` would wait."""
        if self.crowded:
            await asyncio.to_thread(self.write, line, key=key, then=then)
        else:
            self.write(line, key=key, then=then)

    def when_failed(self, then: Then) -> None:
        """Call `then` with the error once the broker failed: one who only waits for requests would never hear of it."""
        with self._changed:
            if self.error is None:
                self._told_of_failure.append(then)
                return
        then(self.error)

    def flush(self) -> None:
        """Send what is packed and wait until all of it is acknowledged. Raises ServiceError if any was not."""
        for partition in self._partitions:
            self._send(partition)
        with self._changed:
            self._changed.wait_for(lambda: self.error is not None or not any(self._unacknowledged.values()))
            if self.error is not None:
                raise self.error

    def close(self) -> None:
        """Flush and stop. The connection is closed even where the flush fails."""
        try:
            if not self._closed and self.error is None:
                self.flush()
        finally:
            with self._changed:
                self._closed = True
                self._changed.notify_all()
            self._lingerer.join()
            self._producer.close(timeout=5)

    def __enter__(self) -> FrameWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- packing -------------------------------------------------------------------------------------------------

    def _partition_of(self, key: str | None) -> int:
        if key is None:  # whole frames round robin, so that a slow source still fills them
            place = self.counts.read // self.config.frame_posts
        else:
            place = zlib.crc32(key.encode(errors="replace"))
        return self._partitions[place % len(self._partitions)]

    def _would_overflow(self, partition: int, line_bytes: int) -> bool:
        with self._changed:
            frame = self._open.get(partition)
            return frame is not None and self.error is None and frame.size + line_bytes > self.config.frame_bytes

    def _add(self, line: bytes, partition: int) -> bool:
        """Put the line into the partition's frame; True if that is full now."""
        frame = self._open.get(partition)
        if frame is None:
            frame = _Frame(partition, self.counts.read, time.monotonic() + self.config.linger_s)
            self._open[partition] = frame
            self._unacknowledged[partition].append(frame)
            self._changed.notify_all()
        frame.lines.append(line)
        frame.size += len(line) + 1
        self.counts.read += 1
        self.counts.oversized += line.startswith(b'{"oversize":')
        return len(frame.lines) >= self.config.frame_posts or frame.size >= self.config.frame_bytes

    def _send(self, partition: int) -> None:
        with self._sending:
            with self._changed:
                self._changed.wait_for(lambda: self.error is not None or self._in_flight < self.config.frames_in_flight)
                frame = self._open.pop(partition, None)
                if frame is None or self.error is not None:
                    return
                self._in_flight += 1
                self.counts.frames += 1
            try:
                sent = self._producer.send(self.topic, value=b"\n".join(frame.lines), partition=partition)
            except (KafkaError, ValueError) as error:
                self._fail(error)
                return
            sent.add_callback(lambda _: self._acknowledge(frame))
            sent.add_errback(self._fail)

    def _linger(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                first_due = min((frame.due for frame in self._open.values()), default=None)
                now = time.monotonic()
                if first_due is None or first_due > now:
                    self._changed.wait(None if first_due is None else first_due - now)
                    continue
                due = [partition for partition, frame in self._open.items() if frame.due <= now]
            for partition in due:
                self._send(partition)

    # -- acknowledgement (in the producer's thread) -----------------------------------------------------------------

    def _acknowledge(self, frame: _Frame) -> None:
        with self._changed:
            self._in_flight -= 1
            self.counts.sent += len(frame.lines)
            frame.done, frame.lines = True, []
            line_of = self._unacknowledged[frame.partition]
            while line_of and line_of[0].done:
                line_of.popleft()
            self._changed.notify_all()
        self._settle()

    def _settle(self) -> None:
        with self._changed:
            oldest = min((frames[0].first for frames in self._unacknowledged.values() if frames), default=None)
            ready = []
            while self._waiting and (oldest is None or self._waiting[0][0] < oldest):
                ready.append(self._waiting.popleft()[1])
        for then in ready:
            then(None)

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            if self.error is None:
                self.error = ServiceError(
                    f"the broker did not take a frame for {self.topic} ({type(error).__name__}: {error}): start the "
                    "source again, it goes on from its cursor"
                )
            failed, waiting = self.error, [then for _, then in self._waiting] + self._told_of_failure
            self._waiting.clear()
            self._told_of_failure.clear()
            self._changed.notify_all()
        for then in waiting:
            then(failed)


def open_writer(settings: Settings) -> FrameWriter:
    """A writer to posts.raw with the connection, TLS and SASL settings of `settings`."""
    options = threaded_options(settings.broker)
    bootstrap = ",".join(options["bootstrap_servers"])
    return FrameWriter(bootstrap, settings.topics.name("posts.raw"), settings.ingest.writer, client=options)
