"""Clusters move to another encoder between two frames, keep their ids, and are never compared across versions."""

import asyncio

import pytest

from models.clustering import ClusterConfig, Clusterer
from models.encoders.load import load_encoder
from models.records import MatchedFrame, Origin, Post
from streams.pipeline.clusters import ClusterStage
from streams.pipeline.frames import pack_vectors
from streams.releases import clusters
from streams.releases.clusters import ClusterVersion, rebase, sample_texts
from tests.releases.tiny import rotated_bundle, tiny_bundle

HAPPENINGS = [f"bridge{n} street{n} flooded{n} cars{n} stuck{n}" for n in range(12)]
WORDS = sorted({w for h in HAPPENINGS for w in h.split()} | {f"detail{i}" for i in range(20)})


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoders")
    tiny_bundle(folder / "v1", words=WORDS)
    rotated_bundle(folder / "v2", folder / "v1")
    tiny_bundle(folder / "v3", seed=9, words=WORDS, dim=48)
    return [load_encoder(folder / name) for name in ("v1", "v2", "v3")]


def frame(number: int, encoder) -> MatchedFrame:
    posts = [
        Post(
            id=f"p{number}-{i}",
            text=f"{h} detail{(number * 3 + i) % 20}",
            created_at=float(number),
            seen_at=float(number),
        )
        for i, h in enumerate(HAPPENINGS)
    ]
    vectors = encoder.encode([p.text for p in posts])
    return MatchedFrame(
        origin=Origin(0, number),
        posts=posts,
        encoder_version=encoder.version,
        dim=encoder.dim,
        vectors=pack_vectors(vectors),
    )


async def inline(thread, work, *args):
    await asyncio.sleep(0)
    return work(*args)


def homes(clusterer: Clusterer) -> dict[str, str]:
    return {post: clusterer.cluster_of(post) for post in clusterer.live_clusters.memory.placed}


async def play(moving: ClusterVersion, clusterer: Clusterer, plan: list[tuple[object, object]]) -> None:
    """plan: (the version that made the frame, the version that is current) of each frame."""
    for number, (made_by, current) in enumerate(plan, start=clusterer.counters.posts // len(HAPPENINGS)):
        await moving.follow(ClusterStage(clusterer, {}), current, ClusterConfig())
        clusterer.add_all(await moving.bring([frame(number, made_by)]))
        await asyncio.sleep(0)


async def test_texts_that_cannot_be_read_end_nothing_and_are_read_again(encoders, monkeypatch):
    v1, v2, _ = encoders
    monkeypatch.setattr(clusters, "AGAIN_S", 0.0)
    fails = iter([MemoryError("too many texts")])

    async def now_and_then(thread, work, *args):
        if thread == "encode" and (error := next(fails, None)):
            raise error
        return await inline(thread, work, *args)

    clusterer = Clusterer(ClusterConfig(), v1.dim, v1.version)
    moving = ClusterVersion(now_and_then)
    moving.begin(v1)
    await play(moving, clusterer, [(v1, v1)] * 4 + [(v1, v2)] * 20)
    assert clusterer.encoder_version == v2.version and next(fails, None) is None


async def test_ids_go_on_over_a_swap_and_back_and_equal_a_run_without_one(encoders):
    v1, v2, _ = encoders
    plain, swapped = (Clusterer(ClusterConfig(), v1.dim, v1.version) for _ in range(2))
    for clusterer, plan in (
        (plain, [(v1, v1)] * 40),
        (swapped, [(v1, v1)] * 12 + [(v1, v2), (v2, v2), (v1, v2)] * 4 + [(v2, v1), (v1, v1)] * 8),
    ):
        moving = ClusterVersion(inline)
        moving.begin(v1)
        await play(moving, clusterer, plan)
        clusterer.settle()
    assert len(set(homes(plain).values())) == len(HAPPENINGS)
    assert homes(swapped) == homes(plain)


async def test_the_stream_goes_on_with_the_old_version_until_all_is_read(encoders):
    v1, v2, _ = encoders
    clusterer, moving, gate = Clusterer(ClusterConfig(), v1.dim, v1.version), ClusterVersion(inline), asyncio.Event()
    moving.begin(v1)
    await play(moving, clusterer, [(v1, v1)] * 5)

    async def slow(thread, work, *args):
        if thread == "encode" and args and isinstance(args[0], list):
            await gate.wait()
        return work(*args)

    moving._compute = slow
    await play(moving, clusterer, [(v2, v2)] * 5)
    assert clusterer.encoder_version == v1.version
    assert clusterer.counters.posts == 10 * len(HAPPENINGS)
    gate.set()
    await asyncio.sleep(0.01)
    await play(moving, clusterer, [(v2, v2)])
    assert clusterer.encoder_version == v2.version


async def test_a_version_of_another_dimension_takes_over_too(encoders):
    v1, _, v3 = encoders
    clusterer, moving = Clusterer(ClusterConfig(), v1.dim, v1.version), ClusterVersion(inline)
    moving.begin(v1)
    await play(moving, clusterer, [(v1, v1)] * 12)
    before = homes(clusterer)
    await play(moving, clusterer, [(v3, v3)] * 12)
    assert clusterer.dim == v3.dim
    after = homes(clusterer)
    assert {p: after[p] for p in before} == before


async def test_a_release_that_changes_twice_while_texts_are_read_ends_at_the_last(encoders):
    v1, v2, v3 = encoders
    clusterer, moving = Clusterer(ClusterConfig(), v1.dim, v1.version), ClusterVersion(inline)
    moving.begin(v1)
    await play(moving, clusterer, [(v1, v1)] * 4 + [(v2, v2), (v3, v3), (v3, v3), (v3, v3)])
    await asyncio.sleep(0.01)
    await play(moving, clusterer, [(v3, v3)])
    assert clusterer.encoder_version == v3.version


def test_a_rebase_encodes_only_what_was_not_read_before(encoders):
    v1, v2, _ = encoders
    clusterer = Clusterer(ClusterConfig(), v1.dim, v1.version)
    clusterer.add(frame(0, v1))
    texts = sample_texts(clusterer)
    known = dict(zip(texts[:-1], v2.encode(texts[:-1]), strict=True))

    class Counting:
        version, dim, cleaning, seen = v2.version, v2.dim, v2.cleaning, []

        def encode(self, texts):
            self.seen += texts
            return v2.encode(texts)

    counting = Counting()
    rebase(clusterer, counting, known)
    assert counting.seen == texts[-1:]
    assert clusterer.encoder_version == v2.version


async def test_the_thresholds_change_with_the_encoder_and_go_back_with_it(encoders):
    v1, v2, _ = encoders
    old, new = ClusterConfig(), ClusterConfig(t_attach=0.6, t_merge=0.5)
    stage, moving = ClusterStage.new(old, v1.dim, v1.version), ClusterVersion(inline)
    moving.begin(v1)
    for current, config in ((v1, old), (v2, new), (v1, old)):
        stage.add_all(await moving.bring([frame(stage.clusterer.counters.posts, v1)]))
        for _ in range(100):  # the sample texts are read beside the stream
            await moving.follow(stage, current, config)
            await asyncio.sleep(0)
        assert (stage.clusterer.encoder_version, stage.clusterer.config) == (current.version, config)


async def test_a_version_with_the_same_vectors_and_other_thresholds_changes_the_thresholds(encoders):
    """Thresholds measured anew for an encoder are a version of their own: its vectors are the old ones."""
    v1 = encoders[0]
    stage, moving = ClusterStage.new(ClusterConfig(), v1.dim, v1.version), ClusterVersion(inline)
    moving.begin(v1)
    for number in range(3):
        stage.add_all([frame(number, v1)])
    before = homes(stage.clusterer)
    await moving.follow(stage, v1, ClusterConfig(t_attach=0.6, t_merge=0.5))
    assert stage.clusterer.config.t_attach == 0.6 and stage.clusterer.live_clusters.kernel is not None
    assert homes(stage.clusterer) == before
