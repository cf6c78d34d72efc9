"""Which vectors, settings and snapshots the clusterer takes, and how it moves to another encoder."""

from __future__ import annotations

import numpy as np
import pytest

from models.clustering import ClusterConfig, Clusterer
from models.errors import ConfigError, CrisisError, EncoderError, VersionMismatch
from models.records import Deletion, MatchedFrame
from tests.models.clustering_lab import DIM, SMALL, frame, plain, post, run, tiny, topic_stream


def test_vectors_of_another_encoder_or_shape_are_refused_before_anything_changes():
    clusterer, _ = tiny(3)
    before = clusterer.snapshot()
    good = frame(50, [post(9)], np.eye(DIM)[[0]])
    for bad, error in (
        (frame(50, [post(9)], np.eye(DIM)[[0]], version="v2"), VersionMismatch),
        (frame(50, [post(9)], np.eye(8)[[0]]), VersionMismatch),
        (frame(50, [post(9)], np.full((1, DIM), np.nan)), EncoderError),
        (MatchedFrame(good.origin, good.posts, encoder_version="v1", dim=DIM, vectors=good.vectors[:-2]), EncoderError),
    ):
        with pytest.raises(error):
            clusterer.add(bad)
        assert clusterer.snapshot() == before
    clusterer.add(good)
    assert clusterer.cluster_of("p9") == clusterer.cluster_of("p0")


@pytest.mark.parametrize("data", [b"", b"\x80", b"{}", b"not a snapshot at all"])
def test_a_broken_snapshot_is_refused_with_a_reason(data):
    with pytest.raises(CrisisError, match="snapshot"):
        Clusterer.restore(data, SMALL)


@pytest.mark.parametrize("field, value", [("t_attach", 1.0), ("t_merge", 0.0), ("ttl_s", -1.0), ("half_life_s", 0.0)])
def test_a_config_out_of_range_is_refused(field, value):
    with pytest.raises(ConfigError, match=field):
        ClusterConfig(**{field: value})


@pytest.mark.parametrize("lexical", [0.0, 0.3])
def test_clusters_keep_their_ids_over_a_change_of_encoder(lexical):
    posts, vectors, topic = topic_stream(1_200, live=10, births=10_000)
    config = plain(t_attach=0.6, t_merge=0.5, examples_kept=8, lexical=lexical)
    half = 600
    clusterer, _ = run(posts[:half], vectors[:half], range(0, half, 25), config)
    clusterer.settle()
    before = {t: clusterer.cluster_of(posts[i].id) for i, t in enumerate(topic[:half])}
    turn, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((48, 32)))  # an encoder as good, other axes
    by_text = {p.text: x for p, x in zip(posts, vectors.astype(np.float32) @ turn.T, strict=True)}
    clusterer.rebase("v2", 48, lambda texts: np.array([by_text[t] for t in texts]))
    with pytest.raises(VersionMismatch):
        clusterer.add(frame(half, posts[half:], vectors[half:]))
    restored = Clusterer.restore(clusterer.snapshot(), config)
    for one in (clusterer, restored):
        one.add(frame(half, posts[half:], np.array([by_text[p.text] for p in posts[half:]]), version="v2"))
        one.add(frame(half + 1, [], [], deletions=[Deletion("p3", 1.0)]))
        one.settle()
        after = {t: one.cluster_of(posts[half + i].id) for i, t in enumerate(topic[half:])}
        assert after == before
    assert restored.snapshot() == clusterer.snapshot()


def test_words_keep_apart_what_an_encoder_cannot():
    texts = ["flood in riverton", "flood in marisol", "quake in riverton"] * 5
    posts, vectors = [post(i, 1.0, text=t) for i, t in enumerate(texts)], np.tile(np.eye(DIM)[0], (15, 1))
    alike, _ = run(posts, vectors, config=plain(t_attach=0.7, t_merge=0.65))
    apart, _ = run(posts, vectors, config=plain(t_attach=0.7, t_merge=0.65, lexical=0.5))
    for clusterer, clusters in ((alike, 1), (apart, 3)):
        clusterer.settle()
        assert len({clusterer.cluster_of(p.id) for p in posts}) == clusters


def test_the_share_of_words_cannot_change_under_a_snapshot():
    clusterer, _ = tiny(3)
    for change in (
        lambda: Clusterer.restore(clusterer.snapshot(), plain(lexical=0.5)),
        lambda: clusterer.rebase("v2", DIM, lambda texts: np.eye(DIM)[: len(texts)], plain(lexical=0.5)),
    ):
        with pytest.raises(ConfigError, match="lexical"):
            change()


def test_an_encoder_that_answers_in_another_shape_changes_nothing():
    clusterer, _ = tiny(3)
    before = clusterer.snapshot()
    with pytest.raises(VersionMismatch):
        clusterer.rebase("v2", 8, lambda texts: np.zeros((len(texts), 9)))
    assert clusterer.snapshot() == before and clusterer.encoder_version == "v1"
