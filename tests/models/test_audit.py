"""The audit finds clusters that were planted as parts of one, and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from models.audit import AuditConfig, propose_merges
from models.clustering import ClusterConfig, Clusterer
from models.clusters.cluster import Cluster, Rates
from models.records import MatchedFrame, Origin, Post
from streams.commands.replay import replay_file
from streams.config import load_settings

DIM = 256
DEMO = Path(__file__).parents[2] / "streams" / "data" / "demo.jsonl"
T_MERGE = 0.5  # parts of one lie at about .45, happenings near 0


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def planted(seed: int = 0) -> tuple[list[Cluster], np.ndarray, list[set[str]]]:
    """Ten happenings; three of them were split in two or three parts, the other seven stand alone."""
    rng = np.random.default_rng(seed)
    centres = unit(rng.standard_normal((10, DIM)))
    parts = {0: 2, 1: 3, 2: 2}
    clusters, means, groups = [], [], []
    for happening, centre in enumerate(centres):
        group = set()
        for part in range(parts.get(happening, 1)):
            posts = 10 + 7 * part + happening
            clusters.append(Cluster(f"c{happening}{part}", Rates(0.0), 0.0, 0.0, 0, 0.0, posts=posts))
            means.append(0.8 * unit(centre + 0.04 * rng.standard_normal(DIM)))
            group.add(clusters[-1].id)
        if len(group) > 1:
            groups.append(group)
    return clusters, np.array(means, np.float32), groups


@pytest.mark.parametrize("seed", range(5))
def test_planted_parts_are_proposed_and_clusters_that_stand_alone_are_not(seed):
    clusters, means, groups = planted(seed)
    proposals = propose_merges(clusters, means, T_MERGE)
    assert sorted(map(sorted, groups)) == sorted(sorted(p.cluster_ids) for p in proposals)
    sizes = {c.id: c.posts for c in clusters}
    for proposal in proposals:
        assert proposal.posts == sum(sizes[i] for i in proposal.cluster_ids)
        assert [sizes[i] for i in proposal.cluster_ids] == sorted(
            (sizes[i] for i in proposal.cluster_ids), reverse=True
        )
        assert 0.4 < proposal.similarity <= 0.64


def test_the_order_of_the_clusters_does_not_matter():
    clusters, means, _ = planted()
    turn = np.random.default_rng(3).permutation(len(clusters))
    assert propose_merges([clusters[i] for i in turn], means[turn], T_MERGE) == propose_merges(clusters, means, T_MERGE)


def test_unrelated_small_or_few_clusters_give_no_proposal():
    clusters, means, _ = planted()
    assert propose_merges(clusters, means, T_MERGE, AuditConfig(share_of_merge=1.2)) == []
    assert propose_merges(clusters, means, T_MERGE, AuditConfig(least_posts=1_000)) == []
    assert propose_merges([], np.zeros((0, DIM)), T_MERGE) == []
    assert propose_merges(clusters[:2], means[:2], T_MERGE) == []


def test_it_reads_a_clusterer_as_it_stands():
    rng = np.random.default_rng(0)
    centres = unit(rng.standard_normal((6, DIM)))
    twin = unit(centres[0] + 0.04 * rng.standard_normal(DIM))  # near the first, but beyond its thresholds
    vectors = np.concatenate([np.repeat(centres, 5, axis=0), np.repeat(twin[None], 5, axis=0)]).astype("<f2")
    posts = [Post(f"p{i}", "water", 1.0, 1.0) for i in range(len(vectors))]
    clusterer = Clusterer(ClusterConfig(t_attach=0.95, t_merge=0.95, lexical=0.0), DIM, "v1")
    clusterer.add(MatchedFrame(Origin(0, 0), posts, encoder_version="v1", dim=DIM, vectors=vectors.tobytes()))
    clusterer.settle()
    (proposal,) = propose_merges(*clusterer.means(), clusterer.config.t_merge)
    assert set(proposal.cluster_ids) == {clusterer.cluster_of("p0"), clusterer.cluster_of("p30")}
    assert proposal.posts == 10


def test_with_the_shipped_thresholds_there_is_something_left_to_propose():
    """What reaches t_merge is merged already: an audit that asks for more than that proposes nothing, ever."""
    clusterer = replay_file(load_settings(), DEMO, 1_795_200_000.0, version="own").clusters.clusterer
    proposals = propose_merges(*clusterer.means(), clusterer.config.t_merge)
    assert proposals and all(p.similarity < clusterer.config.t_merge for p in proposals)
