"""Clusters move to another encoder between two frames, keep their ids, and are never compared across versions."""

import asyncio

import pytest

from models.clustering import ClusterConfig, Clusterer
from models.encoder import load_encoder
from models.records import MatchedFrame, Origin, Post
from streams.frames import pack_vectors
from streams.home import Home, rebase, sample_texts
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
        Post(id=f"p{number}-{i}", text=f"{h} detail{(number * 3 + i) % 20}", created_at=float(number), seen_at=float(number))
        for i, h in enumerate(HAPPENINGS)
    ]
    vectors = encoder.encode([p.text for p in posts])
    return MatchedFrame(origin=Origin(0, number), posts=posts, encoder_version=encoder.version, dim=encoder.dim,
                        vectors=pack_vectors(vectors))  # fmt: skip


async def inline(thread, work, *args):
    await asyncio.sleep(0)
    return work(*args)


def homes(clusterer: Clusterer) -> dict[str, str]:
    return {post: clusterer.cluster_of(post) for post in clusterer.book.memory.placed}


async def play(home: Home, clusterer: Clusterer, plan: list[tuple[object, object]]) -> None:
    """plan: (the version that made the frame, the version that is current) of each frame."""
    for number, (made_by, current) in enumerate(plan, start=clusterer.counters.posts // len(HAPPENINGS)):
        await home.follow(clusterer, current)
        clusterer.add(await home.bring(frame(number, made_by)))
        await asyncio.sleep(0)


async def test_ids_go_on_over_a_swap_and_back_and_equal_a_run_without_one(encoders):
    v1, v2, _ = encoders
    plain, swapped = (Clusterer(ClusterConfig(), v1.dim, v1.version) for _ in range(2))
    for clusterer, plan in (
        (plain, [(v1, v1)] * 40),
        (swapped, [(v1, v1)] * 12 + [(v1, v2), (v2, v2), (v1, v2)] * 4 + [(v2, v1), (v1, v1)] * 8),
    ):
        home = Home(inline)
        home.settle(v1)
        await play(home, clusterer, plan)
        clusterer.settle()
    assert len(set(homes(plain).values())) == len(HAPPENINGS)
    assert homes(swapped) == homes(plain)


async def test_the_stream_goes_on_with_the_old_version_until_all_is_read(encoders):
    v1, v2, _ = encoders
    clusterer, home, gate = Clusterer(ClusterConfig(), v1.dim, v1.version), Home(inline), asyncio.Event()
    home.settle(v1)
    await play(home, clusterer, [(v1, v1)] * 5)

    async def slow(thread, work, *args):
        if thread == "encode" and args and isinstance(args[0], list):
            await gate.wait()
        return work(*args)

    home._compute = slow
    await play(home, clusterer, [(v2, v2)] * 5)
    assert clusterer.encoder_version == v1.version
    assert clusterer.counters.posts == 10 * len(HAPPENINGS)
    gate.set()
    await asyncio.sleep(0.01)
    await play(home, clusterer, [(v2, v2)])
    assert clusterer.encoder_version == v2.version


async def test_a_version_of_another_dimension_takes_over_too(encoders):
    v1, _, v3 = encoders
    clusterer, home = Clusterer(ClusterConfig(), v1.dim, v1.version), Home(inline)
    home.settle(v1)
    await play(home, clusterer, [(v1, v1)] * 12)
    before = homes(clusterer)
    await play(home, clusterer, [(v3, v3)] * 12)
    assert clusterer.dim == v3.dim
    after = homes(clusterer)
    assert {p: after[p] for p in before} == before


async def test_a_release_that_changes_twice_while_texts_are_read_ends_at_the_last(encoders):
    v1, v2, v3 = encoders
    clusterer, home = Clusterer(ClusterConfig(), v1.dim, v1.version), Home(inline)
    home.settle(v1)
    await play(home, clusterer, [(v1, v1)] * 4 + [(v2, v2), (v3, v3), (v3, v3), (v3, v3)])
    await asyncio.sleep(0.01)
    await play(home, clusterer, [(v3, v3)])
    assert clusterer.encoder_version == v3.version


def test_a_rebase_encodes_only_what_was_not_read_before(encoders):
    v1, v2, _ = encoders
    clusterer = Clusterer(ClusterConfig(), v1.dim, v1.version)
    clusterer.add(frame(0, v1))
    texts = sample_texts(clusterer)
    known = dict(zip(texts[:-1], v2.encode(texts[:-1]), strict=True))

    class Counting:
        version, dim, seen = v2.version, v2.dim, []

        def encode(self, texts):
            self.seen += texts
            return v2.encode(texts)

    counting = Counting()
    rebase(clusterer, counting, known)
    assert counting.seen == texts[-1:]
    assert clusterer.encoder_version == v2.version
