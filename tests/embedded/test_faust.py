"""Faust with its default settings: it declares its leader topic and changelog itself, and recovers from the latter."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from tests.waiting import PATIENCE_S, until

READY = "Worker ready"  # from here on it ends in order when it is asked to
APP = Path(__file__).with_name("faust_app.py")


@contextlib.asynccontextmanager
async def worker(prefix: str, broker: str, data: Path):
    data.mkdir()
    args = [sys.executable, "-W", "ignore", APP, prefix, broker, data, "worker", "--without-web", "-l", "info"]
    with (data / "log").open("wb") as log:
        program = await asyncio.create_subprocess_exec(*args, stdout=log, stderr=log, cwd=APP.parents[2])
    try:
        await until(lambda: READY in (data / "log").read_text() or program.returncode is not None)
        yield
        program.send_signal(signal.SIGTERM)
        assert await program.wait() == 0, (data / "log").read_text()
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()


async def say(broker: str, prefix: str, *words: bytes) -> None:
    async with AIOKafkaProducer(bootstrap_servers=broker) as producer:
        for word in words:
            await producer.send_and_wait(f"{prefix}words", word, key=word)


async def hear(broker: str, prefix: str, **last: int) -> dict[str, list[int]]:
    """The counts of each word that were said loud, from the start, until each word's has come to `last`."""
    counts: dict[str, list[int]] = {word: [] for word in last}
    heard = AIOKafkaConsumer(
        f"{prefix}loud", bootstrap_servers=broker, enable_auto_commit=False, auto_offset_reset="earliest"
    )
    async with heard as consumer:
        while any(max(counts[word], default=0) < n for word, n in last.items()):
            word, n = (await consumer.getone()).value.decode().split()
            counts[word].append(int(n))
    return counts


def waits() -> Iterator[float]:
    """Seconds given to one start after another, each twice the last: PATIENCE_S in all."""
    patience_s = PATIENCE_S / 2**6
    while patience_s < PATIENCE_S:
        yield patience_s
        patience_s *= 2


async def test_an_app_counts_in_a_table_that_survives_a_restart(broker, admin, name, tmp_path):
    prefix = f"{name}-"
    two = {"num_partitions": 2, "replication_factor": 1}
    admin.create_topics({f"{prefix}words": two, f"{prefix}loud": two}, wait_for_metadata=True)
    async with worker(prefix, broker, tmp_path / "first"):
        await say(broker, prefix, b"water", b"food", b"water")
        assert await hear(broker, prefix, FOOD=1, WATER=2) == {"FOOD": [1], "WATER": [1, 2]}
    await say(broker, prefix, b"water")
    heard: dict[str, list[int]] = {}
    for patience_s in waits():  # a worker of bare Faust may stay paused after its recovery: it is started again, as
        async with worker(prefix, broker, tmp_path / f"for {patience_s:g} s"):  # what watches ours does
            with contextlib.suppress(TimeoutError):
                heard = await asyncio.wait_for(hear(broker, prefix, FOOD=1, WATER=3), patience_s)
                break
    # The table comes back from its changelog: no count begins anew, though a word may have been read once more.
    assert heard["WATER"] == list(range(1, len(heard["WATER"]) + 1)) and len(heard["WATER"]) >= 3
    assert heard["FOOD"] == list(range(1, len(heard["FOOD"]) + 1)) and heard["FOOD"]
