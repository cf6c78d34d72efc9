"""Taking over: what serves, what happens to frames of another version, and to versions that cannot be loaded."""

import asyncio
import threading
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.clustering import ClusterConfig, Clusterer
from models.encoders.bundle import read_bundle, write_bundle
from models.encoders.load import load_encoder
from models.encoders.probes import PROBES, check_probes, probe_vectors
from models.encoders.registry import OWN, Registry
from models.errors import ConfigError, EncoderError, ServiceError, VersionMismatch
from models.queries import Query
from models.records import Frame, MatchedFrame, Origin, Post
from models.search import SearchIndex
from streams import metrics
from streams.config import load_settings
from streams.pipeline import stages
from streams.releases.release import Release
from streams.releases.serving import Serving, restate
from streams.releases.takeover import Takeover
from streams.releases.trial import alert_pairs, embed_canary, in_share, score_unseen
from streams.releases.versions import load_version, make_ready
from tests.releases.tiny import rotated_bundle, tiny_bundle, words_of
from tests.waiting import PATIENCE_S, until

TEXTS = [
    "We have had no drinking water for two days, please send water",
    "we are trapped on the roof",
    "lovely weather for football today",
    "please send doctors, people are hurt",
]
QUERIES = [
    Query(
        id=f"need.{category}",
        kind="need",
        category=category,
        label=category,
        sentences={"en": list(said)},
        threshold=0.3,
    )
    for category, said in {
        "water": ("we have no drinking water, send water please", "no water for days"),
        "rescue": ("we are trapped on the roof, help", "people trapped on a roof"),
        "doctors": ("send doctors please, people are hurt", "we need doctors"),
    }.items()
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Settings with a registry of three versions: v1, v2 of equal quality, v3 of another dimension."""
    folder = tmp_path_factory.mktemp("shop")
    registry = Registry(folder / "registry")
    words = words_of(TEXTS)
    tiny_bundle(folder / "own", seed=5, words=words)
    names = {}
    for name, write in {
        "v1": lambda p: tiny_bundle(p, seed=1, words=words),
        "v2": lambda p: rotated_bundle(p, folder / "v1"),
        "v3": lambda p: tiny_bundle(p, seed=3, words=words, dim=32),
    }.items():
        write(folder / name)
        names[name] = registry.publish(folder / name)
    chosen = load_settings(
        encoder={"ref": str(folder / "own"), "registry": str(folder / "registry")}, topics={"partitions": 4}
    )
    return chosen, names, folder


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("CRISIS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
async def takeover(shop):
    made = Takeover(shop[0], most_wait_s=0.05)
    yield made
    await made.stop()


def post(number: int, text: str) -> Post:
    return Post(id=f"p{number}", text=text, created_at=float(number), seen_at=float(number), lang="en")


def frame(number: int, partition: int = 0, texts=TEXTS) -> Frame:
    return Frame(Origin(partition, number), [post(number * 100 + i, t) for i, t in enumerate(texts)])


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
    takeover._tell = lambda trouble: (told.append(trouble), tell(trouble))
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


# -- vectors of different versions are never compared


@given(data=st.data(), texts=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_vectors_of_different_versions_are_never_compared(shop, readies, data, texts):
    """Whatever meets: the same version works, any other raises where it happens and changes nothing."""
    made, against = data.draw(st.sampled_from(readies)), data.draw(st.sampled_from(readies))
    embedded = stages.embed(frame(1, texts=texts), made.encoder)
    clusterer = Clusterer(ClusterConfig(), against.encoder.dim, against.encoder.version)
    index = SearchIndex(against.encoder.dim, against.encoder.version)
    before = clusterer.snapshot()
    matched = stages.match(embedded, made.matcher)
    if made.encoder.version == against.encoder.version:
        stages.match(embedded, against.matcher)
        clusterer.add(matched)
        index.add_frame(matched)
        assert index.search(made.encoder.encode([texts[0]])[0], encoder_version=made.encoder.version)
        return
    with pytest.raises(VersionMismatch, match=made.encoder.version):
        stages.match(embedded, against.matcher)
    with pytest.raises(VersionMismatch):
        clusterer.add(matched)
    assert clusterer.snapshot() == before
    index.add_frame(restate(matched, against.encoder))
    with pytest.raises(VersionMismatch):
        index.add_frame(matched)
    with pytest.raises(VersionMismatch):
        index.search(made.encoder.encode([texts[0]])[0], encoder_version=made.encoder.version)
    assert len(index) == len(texts)
    if made.encoder.dim != against.encoder.dim:
        forged = msgspec.structs.replace(embedded, encoder_version=against.encoder.version)
        with pytest.raises(VersionMismatch, match="dim|shape"):
            stages.match(forged, against.matcher)
    anew = restate(embedded, against.encoder)
    assert stages.match(anew, against.matcher).encoder_version == against.encoder.version
    clusterer.add(restate(matched, against.encoder))


@pytest.fixture(scope="module")
def readies(shop, tmp_path_factory):
    chosen, names, _ = shop
    cache = tmp_path_factory.mktemp("cache")
    return [make_ready(chosen, load_version(chosen, n, cache), QUERIES) for n in (OWN, *names.values())]


def test_a_restated_frame_is_what_the_other_version_would_have_made_and_keeps_its_matches(readies):
    _, v1, _, v3 = readies
    matched = stages.match(stages.embed(frame(1), v1.encoder), v1.matcher)
    anew = restate(matched, v3.encoder)
    assert anew.vectors == stages.embed(frame(1), v3.encoder).vectors
    assert (anew.matches, anew.posts, anew.origin, anew.dim) == (matched.matches, matched.posts, matched.origin, 32)
    assert isinstance(anew, MatchedFrame)


def test_a_rotated_version_gives_the_same_alerts(readies):
    _, v1, v2, _ = readies
    one = stages.match(stages.embed(frame(1), v1.encoder), v1.matcher)
    two = stages.match(stages.embed(frame(1), v2.encoder), v2.matcher)
    assert alert_pairs(one) == alert_pairs(two) != set()


# -- on trial


class Broken:
    """An encoder that fails on some texts, one way or the other."""

    def __init__(self, encoder, how):
        self.version, self.dim, self._encoder, self._how = "b" * 12, encoder.dim, encoder, how

    def encode(self, texts):
        vectors = self._encoder.encode(texts)
        if any("roof" in t for t in texts):
            if self._how == "raises":
                raise RuntimeError("CUDA error: an illegal memory access was encountered")
            vectors = np.full_like(vectors, np.nan)
        return vectors


@pytest.mark.parametrize("how", ["raises", "nan"])
def test_a_canary_that_fails_costs_no_post(readies, how):
    current = readies[1]
    staged = readies[2]
    staged = replace(staged, encoder=Broken(staged.encoder, how))
    frames = [frame(1), frame(2, texts=TEXTS[2:])]
    embedded, errors = embed_canary(frames, staged, current)
    assert errors == [4, 0]
    assert [f.encoder_version for f in embedded] == [current.encoder.version, staged.encoder.version]
    assert [f.posts for f in embedded] == [f.posts for f in frames]


def test_the_shadow_counts_what_it_would_alert_beside_the_current_version(readies, shop):
    _, v1, v2, _ = readies
    matched = stages.match(stages.embed(frame(1), v1.encoder), v1.matcher)
    counts = score_unseen(matched, v2)
    assert counts["shadow:posts"] == counts["shadow:posts:en"] == counts["beside:posts:en"] == 4
    assert counts["shadow:alerts:en"] == counts["beside:alerts:en"] > 0
    assert (counts["shadow:gained"], counts["shadow:lost"]) == (0, 0)
    assert counts["shadow:both"] == len(alert_pairs(matched))
    assert counts["shadow:encode_us"] > 0
    broken = replace(v2, encoder=Broken(v2.encoder, "raises"))
    assert score_unseen(matched, broken)["shadow:errors"] == 4


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_the_shadows_share_is_the_share_asked_for(share):
    taken = sum(in_share(Origin(p, n), share) for p in range(4) for n in range(2500))
    assert taken == pytest.approx(10_000 * share, abs=200 * (0 < share < 1))


# -- what a version must prove before it serves


def test_probes_hold_an_encoder_to_what_it_promised(shop, tmp_path):
    _, _, folder = shop
    v1, v2, v3 = (load_encoder(folder / n) for n in ("v1", "v2", "v3"))
    stored = probe_vectors(v1)
    check_probes(v1, stored)
    with pytest.raises(EncoderError, match="does not compute here what it did"):
        check_probes(v2, stored)
    with pytest.raises(EncoderError, match="probe values"):
        check_probes(v3, stored)
    with pytest.raises(EncoderError, match="not unit rows"):
        check_probes(Broken(v1, "nan"))
    assert len(PROBES) >= 5


def test_a_version_whose_probes_do_not_fit_is_not_loaded(shop, tmp_path):
    _, _, folder = shop
    stored = probe_vectors(load_encoder(folder / "v2"))
    tiny_bundle(tmp_path / "wrong", seed=1, words=words_of(TEXTS), evaluation={"probes": stored})
    with pytest.raises(EncoderError, match="does not compute here"):
        load_version(load_settings(encoder={"ref": str(tmp_path / "wrong")}), OWN)


def test_a_bundle_that_breaks_its_library_is_told_as_one_that_cannot_be_used(tmp_path):
    tiny_bundle(tmp_path / "odd")
    manifest = read_bundle(tmp_path / "odd").manifest
    write_bundle(tmp_path / "odd", manifest, {"model.safetensors": b"not safetensors", "tokenizer.json": b"{}"})
    with pytest.raises(EncoderError, match="version own cannot be used: SafetensorError"):
        load_version(load_settings(encoder={"ref": str(tmp_path / "odd")}), OWN)


def test_a_version_without_a_registry_to_fetch_it_from_says_what_to_set(shop):
    with pytest.raises(ConfigError, match="CRISIS_ENCODER__REGISTRY"):
        load_version(load_settings(), "f" * 12)
