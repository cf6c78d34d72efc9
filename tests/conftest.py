"""Fixtures every test may use. A test is marked (kafka, redis, browser, data) by the fixtures it asks for.

Where a service is missing the test is skipped and says what to install; with CRISIS_REQUIRE_SERVICES=1 it fails.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec
import pytest
import redis
from hypothesis import settings

from models.errors import ServiceError
from streams.embedded.redis import EmbeddedRedis, find_redis_server
from tests.services.broker import run_broker_in_thread
from tests.services.kafka import kafka_for_all, running_kafka
from tests.services.needs import Missing, lacking
from tests.services.redis import running_redis
from tests.services.sockets import close_what_clients_leave

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from models.encoders.bundle import Bundle
    from models.encoders.protocol import Encoder

# `make test` runs three of us side by side: pools as wide as the machine would only be in the others' way. Before
# anything imports numpy or torch.
if os.environ.get("PYTEST_XDIST_WORKER"):
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# What is not about the encoder is tested with the static one: it starts at once and reads a hundred times as fast.
os.environ.setdefault("CRISIS_ENCODER__REF", "flood")

# A shell starts what it runs in the background deaf to Ctrl-C, and so would be every process that a test starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run, and no time limit for one: a busy machine must not fail a law.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

WAITING = ("e2e", "chaos")  # folders of tests that wait for workers, brokers and their time limits

MARKED_BY_FIXTURE = {
    "apache_kafka": "kafka",
    "live_broker": "kafka",
    "redis_url": "redis",
    "browser": "browser",
    "data_dir": "data",
}


def pytest_configure(config: pytest.Config) -> None:
    """Of several processes the first starts Apache Kafka for all, while they collect; what is missing each tells."""
    close_what_clients_leave()
    first_of_several = config.getoption("numprocesses", None) and not os.environ.get("PYTEST_XDIST_WORKER")
    if first_of_several and not os.environ.get("CRISIS_TEST_BROKER"):
        with contextlib.suppress(Missing), contextlib.ExitStack() as stack:
            stack.enter_context(kafka_for_all())
            config.add_cleanup(stack.pop_all().close)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported stays: the garbage collection looks neither for it meanwhile nor through it ever again.

    A tenth of all CPU was that: a second each time, torch and transformers being two million objects.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        atexit.register(gc.unfreeze)  # else nanobind tells of leaks at the end


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    spread(items)
    for item in items:
        for fixture, mark in MARKED_BY_FIXTURE.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(mark)


def spread(items: list[pytest.Item]) -> None:
    """Files that wait evenly among those that compute, from the first on and with none in the last quarter: of three
    processes that take the next file one waits and two compute, where by the alphabet all waited at the same time.
    """
    files = list(dict.fromkeys(item.path for item in items))
    waiting = [file for file in files if file.parent.name in WAITING]
    computing = [file for file in files if file.parent.name not in WAITING]
    apart = 0.75 * len(computing) / max(len(waiting), 1)
    place = {file: float(n) for n, file in enumerate(computing)} | {file: n * apart for n, file in enumerate(waiting)}
    items.sort(key=lambda item: place[item.path])  # stable: within a file as it was


@pytest.fixture(autouse=True)
def vectors_of_its_own(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invented encoders share names: what one test keeps of them no other may read."""
    file = tmp_path_factory.getbasetemp() / uuid4().hex / "vectors.sqlite"
    monkeypatch.setattr("streams.releases.versions.vector_file", lambda: file)


@pytest.fixture(scope="session", autouse=True)
def one_flood_encoder() -> Iterator[None]:
    """The static encoder that is shipped, .7 s of CPU to make, is made once a process: it holds nothing that changes
    but caches. Its bundle is read and verified as often as it is asked for.
    """
    from models.encoders import load  # it imports numpy

    really: Callable[[Bundle], Encoder] = load._made
    known: dict[bytes, Encoder] = {}

    def made(bundle: Bundle) -> Encoder:
        if bundle.path != load.FLOOD:
            return really(bundle)
        key = msgspec.msgpack.encode(bundle.manifest)
        if key not in known:
            known[key] = really(bundle)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load, "_made", made)
        yield


@contextlib.contextmanager
def needed(service: contextlib.AbstractContextManager) -> Iterator:
    """The service, or a skip (a failure where services are required)."""
    with contextlib.ExitStack() as stack:
        try:
            running = stack.enter_context(service)
        except Missing as missing:
            lacking(missing)
        yield running


@pytest.fixture(scope="session")
def embedded_broker() -> Iterator[str]:
    """host:port of the embedded broker."""
    with run_broker_in_thread() as broker:
        yield broker.bootstrap


@pytest.fixture(scope="session")
def apache_kafka() -> Iterator[str]:
    """host:port of an Apache Kafka: CRISIS_TEST_BROKER where set, else one of our own."""
    with needed(running_kafka()) as bootstrap:
        yield bootstrap


@pytest.fixture(
    scope="session",
    params=["embedded_broker", pytest.param("apache_kafka", marks=pytest.mark.kafka)],
    ids=["embedded", "apache"],
)
def broker(request: pytest.FixtureRequest) -> str:
    """host:port of each broker in turn: what holds for one must hold for the other."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def live_broker(request: pytest.FixtureRequest) -> str:
    """host:port of the broker that pipelines run on: Apache Kafka; the embedded one where it cannot be had."""
    required = os.environ.get("CRISIS_REQUIRE_SERVICES") or os.environ.get("CRISIS_TEST_BROKER")
    can = required or (shutil.which("java") and shutil.which("mvn"))
    return request.getfixturevalue("apache_kafka" if can else "embedded_broker")


@pytest.fixture(scope="session")
def _redis_server() -> Iterator[str]:
    with needed(running_redis()) as url:
        yield url


@pytest.fixture
def redis_url(_redis_server: str) -> str:
    """URL of a real Redis, empty at the start of each test."""
    return _flushed(_redis_server)


@pytest.fixture(scope="session")
def _embedded_redis_server() -> Iterator[str]:
    try:
        found = find_redis_server()
    except ServiceError as error:
        lacking(error)
    with EmbeddedRedis(server=found) as server:
        yield server.url


@pytest.fixture
def embedded_redis_url(_embedded_redis_server: str) -> str:
    """URL of the Redis the demo uses, empty at the start of each test."""
    return _flushed(_embedded_redis_server)


def _flushed(url: str) -> str:
    with redis.Redis.from_url(url) as client:
        client.flushall()
    return url


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium, driven by Playwright's sync API, for modules without async tests.

    Not for the session: as long as it runs, that API keeps an event loop in this thread and no async test can run.
    """
    from tests.services.chromium import running_browser

    with needed(running_browser()) as started:
        yield started


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The research data sets: CRISIS_DATA, or ../shared/data beside the checkout."""
    given = os.environ.get("CRISIS_DATA")
    folder = Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        what = f"the research data sets, not found at {folder}: set CRISIS_DATA to their folder"
        lacking(what, None if given else False)  # beside a clone they may be absent; a wrong CRISIS_DATA is a mistake
    return folder
