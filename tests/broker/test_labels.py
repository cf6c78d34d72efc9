"""The labels topic, and a worker's take-over that follows it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import msgspec
import pytest

from models.encoders.registry import OWN
from models.errors import LabelError, ServiceError
from models.feedback.records import Label, in_place_of
from models.queries import Query
from streams.broker import compacted
from streams.broker.labels import apply_records, follow_labels, publish_labels, read_labels
from streams.broker.topics import make_topics, topic_configs
from streams.config import load_settings
from streams.releases.release import Release
from streams.releases.takeover import Takeover
from tests.outputs.topics import fresh_prefix
from tests.waiting import PATIENCE_S, until

WATER = Query("need.water", "need", "water", "Water", {"en": ["We need drinking water", "Our taps are dry"]})


def said(number, verdict="right", by="Ada"):
    return Label(f"x:1/{number}", "need.water", verdict, by, float(number), f"no water in house {number}", "en")


@pytest.fixture
def settings(embedded_broker):
    made = load_settings(broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix()})
    make_topics(made)
    return made


def test_labels_are_kept_masked_and_the_later_word_replaces_the_earlier(settings):
    first, second = said(1), said(2)
    publish_labels(settings, [first, msgspec.structs.replace(second, text="call +977 98 4123 4567")])
    publish_labels(settings, [msgspec.structs.replace(first, verdict="wrong", by="Bo")])
    found = read_labels(settings)
    assert [(x.verdict, x.by) for x in found.values()] == [("right", "Ada"), ("wrong", "Bo")]
    assert found[second.key].text == "call [phone]"
    publish_labels(settings, [], [first.key])
    assert list(read_labels(settings)) == [second.key]


def test_what_a_label_replaced_is_kept_with_it_and_stands_again_where_it_is_written_back(settings):
    first = said(1)
    second = in_place_of(msgspec.structs.replace(first, verdict="none", by="Mallory"), first)
    publish_labels(settings, [first])
    publish_labels(settings, [second])
    assert read_labels(settings) == {first.key: second}
    publish_labels(settings, [first], [second.key])
    assert read_labels(settings) == {first.key: first}


def test_what_is_no_label_is_neither_written_nor_believed(settings):
    with pytest.raises(LabelError, match="need"):
        publish_labels(settings, [msgspec.structs.replace(said(1), query_id="water")])
    assert read_labels(settings) == {}
    wrong_key = SimpleNamespace(key=b"other need.water", value=msgspec.json.encode(said(1)))
    labels: dict = {}
    assert not apply_records(labels, [wrong_key, SimpleNamespace(key=None, value=b"{}")])
    assert labels == {}


def test_the_topic_is_compacted_and_forgets_what_was_taken_back_within_the_hour(settings):
    made = topic_configs(settings)[settings.topics.name("labels")]
    assert made["num_partitions"] == 1
    assert made["configs"] == {"cleanup.policy": "compact", "max.compaction.lag.ms": "3600000"}


def test_without_the_topic_one_is_told_to_make_it(embedded_broker):
    bare = load_settings(broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix()})
    with pytest.raises(ServiceError, match="crisis topics"):
        read_labels(bare)


async def test_a_worker_learns_from_a_label_while_it_runs_and_forgets_what_is_taken_back(settings):
    takeover = Takeover(settings)
    publish = asyncio.to_thread

    async def heard(labels):
        await takeover.set_labels(list(labels.values()))

    await publish(publish_labels, settings, [said(n) for n in range(3)])
    try:
        async with follow_labels(settings, heard) as labels:
            await takeover.start(Release(), [WATER], list(labels.values()))
            taught = await takeover.until(lambda s: s.current.matcher.feedback is not None)
            assert taught.current.name == OWN
            assert taught.current.matcher.feedback.corrections["need.water"].labels == 3
            await publish(publish_labels, settings, [said(9, "wrong")])
            await takeover.until(lambda s: s.current.matcher.feedback.corrections["need.water"].labels == 4)
            await takeover.set_queries([WATER, msgspec.structs.replace(WATER, label="Clean water")][1:])
            assert takeover.serving.current.matcher.feedback.corrections["need.water"].labels == 4
            await publish(publish_labels, settings, [], list(await publish(read_labels, settings)))
            await takeover.until(lambda s: s.current.matcher.feedback is None)
    finally:
        await takeover.stop()


@pytest.mark.parametrize("wrong", [ServiceError("not now"), RuntimeError("not now"), MemoryError("not now")])
async def test_a_change_that_cannot_be_taken_in_is_tried_again_until_it_is_though_nothing_else_comes(
    settings, monkeypatch, caplog, wrong
):
    monkeypatch.setattr(compacted, "LONGEST_S", 0.0)
    told: asyncio.Queue[int] = asyncio.Queue()
    tries = 2 * compacted.TRIES

    async def heard(labels):
        if told.qsize() < tries:
            told.put_nowait(len(labels))
            raise wrong
        told.put_nowait(-len(labels))

    publish = asyncio.to_thread
    async with asyncio.timeout(PATIENCE_S), follow_labels(settings, heard) as labels:
        await publish(publish_labels, settings, [said(1)])
        await until(lambda: told.qsize() > tries)
        assert list(labels) == [said(1).key]  # what was read stands there from the first moment
    assert [told.get_nowait() for _ in range(tries + 1)] == [*[1] * tries, -1]
    assert f"a change was not taken ({wrong!r})" in caplog.text


async def test_while_a_change_cannot_be_taken_in_a_later_one_is_heard_at_once_and_what_is_newest_is_taken(settings):
    told: asyncio.Queue[int] = asyncio.Queue()

    async def heard(labels):
        told.put_nowait(len(labels))
        if len(labels) == 1:
            raise RuntimeError("not now")

    publish = asyncio.to_thread
    async with asyncio.timeout(PATIENCE_S), follow_labels(settings, heard):
        await publish(publish_labels, settings, [said(1)])
        assert await told.get() == 1
        await publish(publish_labels, settings, [said(2)])
        found = [await told.get()]
        while found[-1] == 1:
            found.append(await told.get())
    assert found[-1] == 2 and told.empty()
