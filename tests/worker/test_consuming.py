"""Records reach a stream as Faust gives them, without a task each where nothing has to wait, and in company."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.errors import IllegalStateError
from intervaltree import IntervalTree
from mode import Service

from streams.worker import consuming
from streams.worker.consuming import first_of, go_back


class Plain(Service):
    """What the consumer is, of all that matters here."""


async def gives(log: list, wait: asyncio.Event | None = None, error: Exception | None = None) -> str:
    log.append("begun")
    try:
        if wait is not None:
            await wait.wait()
    except asyncio.CancelledError:
        log.append("cancelled")
        raise
    if error is not None:
        raise error
    log.append("given")
    return "done"


def never(*_: object) -> None:
    raise AssertionError("raced")


async def test_what_need_not_wait_is_given_without_a_race():
    log: list[str] = []
    first = gives(log)
    found = await first_of(never, first, asyncio.Event().wait())
    assert (found.done, found.results, found.stopped) == ([first], ["done"], False)
    assert log == ["begun", "given"]


async def test_what_must_wait_is_given_when_it_may():
    log: list[str] = []
    room = asyncio.Event()
    waiting = asyncio.create_task(first_of(Plain().wait_first, gives(log, room), asyncio.Event().wait()))
    while not log:
        await asyncio.sleep(0)
    assert log == ["begun"] and not waiting.done()
    room.set()
    assert (await waiting).results == ["done"]
    assert log == ["begun", "given"], "begun once"


async def test_the_end_of_the_flow_ends_what_waits():
    log: list[str] = []
    ended = asyncio.Event()
    waiting = asyncio.create_task(first_of(Plain().wait_first, gives(log, asyncio.Event()), ended.wait()))
    while not log:
        await asyncio.sleep(0)
    ended.set()
    assert (await waiting).results == [True]
    while len(log) < 2:
        await asyncio.sleep(0)
    assert log == ["begun", "cancelled"]


@pytest.mark.parametrize("waits", [False, True])
async def test_its_error_is_raised(waits):
    log: list[str] = []
    room = asyncio.Event() if waits else None
    if room is not None:
        asyncio.get_running_loop().call_soon(room.set)
    with pytest.raises(ValueError, match="no"):
        await first_of(Plain().wait_first, gives(log, room, ValueError("no")), asyncio.Event().wait())


async def test_a_cancellation_reaches_what_waits():
    log: list[str] = []
    waiting = asyncio.create_task(first_of(Plain().wait_first, gives(log, asyncio.Event()), asyncio.Event().wait()))
    while not log:
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    while len(log) < 2:
        await asyncio.sleep(0)
    assert log == ["begun", "cancelled"]


async def test_what_was_fetched_and_not_committed_is_fetched_again(broker, tmp_path):
    topic, options = tmp_path.name, {"bootstrap_servers": broker}
    never, begun = (TopicPartition(f"{topic}.{name}", 0) for name in ("never", "begun"))
    async with AIOKafkaProducer(**options) as producer:
        for n in range(4):
            for place in (never, begun):
                await producer.send_and_wait(place.topic, b"%d" % n, partition=0)
    async with AIOKafkaConsumer(
        group_id=topic, enable_auto_commit=False, auto_offset_reset="earliest", **options
    ) as consumer:
        consumer.assign([never, begun])
        await consumer.commit({begun: 2})
        while min([await consumer.position(place) for place in (never, begun)]) < 4:
            await consumer.getmany(timeout_ms=1_000)
        assert await go_back(consumer) == {never: None, begun: 2}
        assert [(await consumer.getone(place)).offset for place in (never, begun)] == [0, 2]


@pytest.mark.kafka
async def test_where_nothing_was_committed_and_the_first_records_are_gone_the_oldest_kept_is_fetched(
    apache_kafka, tmp_path
):
    place, options = TopicPartition(tmp_path.name, 0), {"bootstrap_servers": apache_kafka}
    async with AIOKafkaProducer(**options) as producer:
        for n in range(4):
            await producer.send_and_wait(place.topic, b"%d" % n, partition=0)
    admin = AIOKafkaAdminClient(**options)
    await admin.start()
    try:
        await admin.delete_records({place: RecordsToDelete(3)})
    finally:
        await admin.close()
    async with AIOKafkaConsumer(
        group_id=place.topic, enable_auto_commit=False, auto_offset_reset="earliest", **options
    ) as consumer:
        consumer.assign([place])
        assert await go_back(consumer) == {place: None}
        assert (await consumer.getone(place)).offset == 3


@pytest.mark.kafka
async def test_the_first_record_comes_at_once_and_those_behind_it_together(apache_kafka, tmp_path, monkeypatch):
    monkeypatch.setattr(consuming, "COMPANY", (consuming.COMPANY[0], 60_000))
    place, options = TopicPartition(tmp_path.name, 0), {"bootstrap_servers": apache_kafka}
    async with (
        AIOKafkaProducer(**options) as producer,
        AIOKafkaConsumer(enable_auto_commit=False, auto_offset_reset="earliest", **options) as consumer,
    ):
        consumer.assign([place])
        thread = object.__new__(consuming._Thread)
        thread.consumer, thread.fetched = SimpleNamespace(flow_active=True), {}

        async def come() -> list[int]:
            while not (records := await thread._fetch_records(consumer, [place], timeout=1.0)):
                pass
            return [len(record.value) for record in records[place]]

        await producer.send_and_wait(place.topic, b"first", partition=0)
        assert await come() == [5]
        waiting = asyncio.create_task(come())
        for size in (2, 3, consuming.COMPANY[0]):
            await producer.send_and_wait(place.topic, b"." * size, partition=0)
        assert await waiting == [2, 3, consuming.COMPANY[0]]


@pytest.mark.parametrize(
    "committed, fetched, position, stands",
    [
        (None, None, 0, 0),
        (None, None, 200, 200),  # a log that begins there, and has nothing
        (5, None, None, 5),  # it looks for where the log begins
        (5, 8, 9, 5),  # in hand: 5, 6 and 7, and behind them a mark
        (8, 8, 9, 9),
        (9, 8, 9, 9),
        (100, None, 3, 100),  # of a topic that was made anew: more than it has
    ],
)
def test_it_stands_where_it_committed_until_all_that_came_is_and_then_where_the_fetcher_is(
    committed, fetched, position, stands
):
    place = TopicPartition("posts.raw", 0)
    ours = SimpleNamespace(tps={place}, state_value=lambda _: SimpleNamespace(_position=position))
    consumer = object.__new__(consuming.Consumer)
    consumer._committed_offset = {} if committed is None else {place: committed}
    consumer._thread = SimpleNamespace(fetched={} if fetched is None else {place: fetched})
    state = SimpleNamespace(subscription=SimpleNamespace(assignment=ours))
    consumer._thread._ensure_consumer = lambda: SimpleNamespace(_subscription=state)
    assert consumer.stands() == {place: stands}
    state.subscription = None
    assert consumer.stands() == {}, "nothing was given to it yet"


async def test_after_a_second_without_records_the_next_comes_at_once_again():
    found: list[dict] = []

    async def fetched_records(*_: object, **__: object) -> dict:
        return found.pop()

    fetcher = SimpleNamespace(
        _closed=False, _subscriptions=SimpleNamespace(fetch_context=nullcontext), fetched_records=fetched_records
    )
    consumer = SimpleNamespace(_closed=False, _fetcher=fetcher)
    thread = object.__new__(consuming._Thread)
    thread.consumer, thread.fetched = SimpleNamespace(flow_active=True), {}
    for records, asked in (({}, consuming.AT_ONCE), ({"place": []}, consuming.COMPANY), ({}, consuming.AT_ONCE)):
        found.append(records)
        assert await thread._fetch_records(consumer, []) == records
        assert (fetcher._fetch_min_bytes, fetcher._fetch_max_wait_ms) == asked


@pytest.mark.parametrize("moved", ["begun", "done"])
async def test_where_the_partitions_move_meanwhile_nothing_is_told_as_done(moved):
    place, sought = TopicPartition("posts.raw", 0), []
    before = SimpleNamespace(assignment=object())
    state = SimpleNamespace(subscription=before, reassignment_in_progress=False)

    async def committed(_: TopicPartition) -> int:
        if moved == "begun":
            state.reassignment_in_progress = True
        else:
            state.subscription = SimpleNamespace(assignment=object())
        return 3

    consumer = SimpleNamespace(
        _subscription=state, assignment=lambda: {place}, committed=committed, seek=lambda *to: sought.append(to)
    )
    with pytest.raises(IllegalStateError):
        await go_back(consumer)
    assert not sought


async def test_a_broker_that_does_not_say_where_the_group_goes_on_is_an_error(monkeypatch):
    monkeypatch.setattr(consuming, "ANSWER_S", 0.01)
    consumer = SimpleNamespace(
        _subscription=SimpleNamespace(subscription=None, reassignment_in_progress=True),
        assignment=lambda: {TopicPartition("posts.raw", 0)},
        committed=lambda _: asyncio.Event().wait(),
    )
    with pytest.raises(TimeoutError):
        await go_back(consumer)


@pytest.mark.parametrize("committed, acked, new", [(1, [6, 8], 7), (1, [1, 2], 3), (1, [], None), (3, [6], None)])
def test_a_gap_behind_the_first_offset_of_all_keeps_no_later_one_from_being_committed(committed, acked, new):
    place = TopicPartition("posts.raw", 0)
    consumer = object.__new__(consuming.Consumer)
    consumer._committed_offset, consumer._acked = {place: committed}, {place: acked}
    consumer._acked_index, consumer._gap = {place: set(acked)}, {place: IntervalTree()}
    assert consumer._new_offset(place) == new
