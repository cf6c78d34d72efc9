"""Taking over: what serves, and what happens to versions that cannot be loaded."""

import asyncio
import threading
import time

import numpy as np
import pytest

from models.encoders.load import load_encoder
from models.encoders.registry import OWN
from models.errors import ServiceError
from streams import metrics
from streams.pipeline import stages
from streams.releases import takeover as takeover_module
from streams.releases.release import Release
from streams.releases.serving import Serving
from streams.releases.takeover import Takeover
from streams.releases.versions import load_version, make_ready
from tests.releases.shop import QUERIES, TEXTS, frame
from tests.waiting import PATIENCE_S, until

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
async def takeover(shop):
    made = Takeover(shop[0], most_wait_s=0.05)
    yield made
    await made.stop()


def test_sentences_that_people_added_are_encoded_once_on_a_machine(shop, monkeypatch):
    chosen, names, _ = shop
    made = make_ready(chosen, load_version(chosen, names["v1"]), QUERIES)
    fresh = load_version(chosen, names["v1"])
    read: list[str] = []
    encode = fresh.encoder.encode
    monkeypatch.setattr(fresh.encoder, "encode", lambda texts: (read.extend(texts), encode(texts))[1], raising=False)
    again = make_ready(chosen, fresh, QUERIES)
    assert not {text for query in QUERIES for _, text in query.texts()} & set(read)
    vectors = made.encoder.encode(TEXTS)
    assert np.allclose(again.matcher.scores(vectors), made.matcher.scores(vectors), atol=1e-6)


async def became(takeover: Takeover, done) -> Serving:
    return await takeover.until(done)


async def test_a_worker_starts_with_its_own_encoder_where_nothing_was_released(takeover, shop):
    await takeover.start(Release(), QUERIES)
    assert takeover.serving.current.name == OWN
    assert takeover.serving.current.encoder.version == load_encoder(shop[2] / "own").version


async def test_a_new_current_version_takes_over_and_the_old_one_finishes_its_frames(takeover, shop):
    _, names, _ = shop
    release = Release().use(names["v1"], time.time())
    await takeover.start(release, QUERIES)
    begun = stages.embed(frame(1), takeover.serving.current.encoder)
    await takeover.apply(release.use(names["v2"], time.time()))
    serving = await became(takeover, lambda s: s.current.name == names["v2"])
    assert serving.of(begun).name == names["v1"]
    assert stages.match(begun, serving.of(begun).matcher).encoder_version == begun.encoder_version
    assert serving.for_partition(0).name == names["v2"]
    shown = [s.labels for m in metrics.encoder.collect() for s in m.samples]
    assert shown == [{"version": serving.current.encoder.version, "registry_version": names["v2"]}]


async def test_while_a_version_is_loaded_the_current_one_goes_on_serving(shop):
    chosen, names, _ = shop
    loop, begun, may = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def load_when_told(settings, name):
        if name == names["v2"]:
            loop.call_soon_threadsafe(begun.set)
            assert may.wait(PATIENCE_S)
        return load_version(settings, name)

    takeover = Takeover(chosen, load=load_when_told)
    release = Release().use(names["v1"], 0.0)
    await takeover.start(release, QUERIES)
    await takeover.apply(release.use(names["v2"], 0.0))
    await begun.wait()
    assert takeover.serving.for_partition(0).name == names["v1"]
    may.set()
    await became(takeover, lambda s: s.current.name == names["v2"])
    await takeover.stop()


async def test_a_restarted_worker_loads_the_version_before_too_if_the_change_is_young(takeover, shop):
    _, names, _ = shop
    release = Release().use(names["v1"], time.time()).use(names["v2"], time.time())
    await takeover.start(release, QUERIES)
    assert takeover.serving.current.name == names["v2"]
    assert {r.name for r in takeover.serving.others} == {names["v1"]}


async def test_a_version_nobody_wants_is_let_go_after_a_while(shop):
    at = [0.0]
    takeover = Takeover(shop[0], clock=lambda: at[0], keep_s=0.2)
    _, names, _ = shop
    await takeover.start(Release().use(names["v1"], 0.0), QUERIES)
    await takeover.apply(takeover.release.use(names["v2"], 0.0))
    await became(takeover, lambda s: s.current.name == names["v2"] and s.others)
    at[0] = 1000.0
    await became(takeover, lambda s: not s.others)
    await takeover.stop()


async def test_a_version_that_cannot_be_loaded_changes_nothing_is_told_and_tried_again(shop):
    chosen, names, _ = shop
    tries = []

    def away_at_first(settings, name):
        tries.append(name)
        if name == names["v2"] and tries.count(name) < 4:
            raise ServiceError("the registry is away")
        return load_version(settings, name)

    takeover = Takeover(chosen, load=away_at_first, most_wait_s=0.05)
    failures = metrics.takeover_failures._value.get()
    release = Release().use(names["v1"], 0.0)
    await takeover.start(release, QUERIES)
    switched = asyncio.ensure_future(became(takeover, lambda s: s.current.name == names["v2"]))
    told = []
    tell = takeover._tell
    takeover._tell = lambda trouble, *about: (told.append(trouble), tell(trouble, *about))
    await takeover.apply(release.use(names["v2"], 0.0))
    await switched
    assert len(told) == 3
    assert told[0].startswith(f"keeps {names['v1']}: cannot load {names['v2']}: the registry is away (try 1, next in ")
    assert metrics.takeover_failures._value.get() == failures + 3
    await until(lambda: not takeover.trouble)
    assert metrics.takeover_trouble._value.get() == 0
    await takeover.stop()


async def test_another_release_ends_the_waiting_for_one_that_cannot_be_loaded(shop):
    chosen, names, _ = shop
    takeover = Takeover(chosen, most_wait_s=3600.0)
    release = Release().use(names["v1"], 0.0)
    await takeover.start(release, QUERIES)
    release = release.use("0" * 12, 0.0)
    await takeover.apply(release)
    await until(lambda: takeover.trouble)
    assert takeover.serving.current.name == names["v1"]
    await takeover.apply(release.use(names["v2"], 0.0))
    await became(takeover, lambda s: s.current.name == names["v2"])
    await takeover.stop()


async def test_at_the_start_a_version_that_is_gone_gives_way_to_the_one_before_and_then_the_own(shop):
    chosen, names, _ = shop
    for earlier, expected in (((names["v1"],), names["v1"]), (("1" * 12,), OWN)):
        takeover = Takeover(chosen, most_wait_s=0.05)
        await takeover.start(Release(1, current="0" * 12, earlier=earlier), QUERIES)
        assert takeover.serving.current.name == expected
        assert "cannot load 0000" in takeover.trouble
        await takeover.stop()


async def test_changed_queries_reach_every_loaded_version(takeover, shop):
    _, names, _ = shop
    release = Release().use(names["v1"], time.time()).stage(names["v2"], time.time(), canary=0.5)
    await takeover.start(release, QUERIES[:2])
    await became(takeover, lambda s: s.canary is not None)
    await takeover.set_queries(QUERIES[:3])
    serving = takeover.serving
    assert len(serving.current.queries) == len(serving.canary.queries) == 3


async def test_queries_that_cannot_be_taken_in_are_told_and_leave_those_of_before_in_use(takeover, shop, monkeypatch):
    _, names, _ = shop
    release = Release().use(names["v1"], time.time()).stage(names["v2"], time.time(), canary=0.5)
    await takeover.start(release, QUERIES[:2])
    await became(takeover, lambda s: s.canary is not None)
    made = []

    def fails_at_the_second(settings, loaded, queries):
        made.append(loaded.name)
        if len(made) == 2:
            raise RuntimeError("the encoder is out of memory")
        return make_ready(settings, loaded, queries)

    monkeypatch.setattr(takeover_module, "make_ready", fails_at_the_second)
    with pytest.raises(RuntimeError):
        await takeover.set_queries(QUERIES[:3])
    assert "queries" in takeover.trouble and "out of memory" in takeover.trouble
    await takeover.set_labels([])  # whatever switches next
    assert len(takeover.serving.current.queries) == len(takeover.serving.canary.queries) == 2
    await takeover.set_queries(QUERIES[:3])
    assert len(takeover.serving.current.queries) == len(takeover.serving.canary.queries) == 3
    assert takeover.trouble == ""


async def test_a_canary_serves_its_partitions_and_a_shadow_none(takeover, shop):
    _, names, _ = shop
    release = Release().use(names["v1"], 0.0).stage(names["v2"], 0.0, shadow=0.5, canary=0.25)
    await takeover.start(release, QUERIES)
    serving = await became(takeover, lambda s: s.canary is not None)
    assert [serving.for_partition(p).name for p in range(4)] == [names["v2"], *[names["v1"]] * 3]
    await takeover.apply(release.rollback(0.0).stage(names["v3"], 0.0, shadow=0.5))
    serving = await became(takeover, lambda s: s.shadow and s.shadow.name == names["v3"])
    assert {serving.for_partition(p).name for p in range(4)} == {names["v1"]}
    assert serving.canary is None
