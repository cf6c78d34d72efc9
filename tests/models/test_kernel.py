"""The kernel's short cuts, over several tiles of clusters, are held to products of everything with everything."""

from __future__ import annotations

import numpy as np
import pytest

from models.clusters import means
from models.clusters.kernel import Kernel, to_grid
from models.clusters.near import Near

ATTACH, MERGE, DENSE, WORDS = 0.4, 0.3, 24, 64


class Everything(Kernel):
    """The same clusters, each post compared with all of them exactly, and before a merge all with all."""

    def place(self, rows):
        slots = []
        for row in rows:
            live = np.flatnonzero(self.counts[: self.size] > 0)
            live = live[np.argsort(self.born[live])]  # of equals the oldest
            alike = (self.sums[live] @ row) / self.counts[live]
            best = int(alike.argmax()) if len(live) else -1
            self._reserve(self.size + 1)
            slot = int(live[best]) if len(live) and alike[best] >= self.t_attach else self._open()
            self.sums[slot] += row
            self.counts[slot] += 1
            slots.append(slot)
        return slots

    def _pairs(self, noted, threshold):
        live = np.flatnonzero(self.counts[: self.size] > 0)
        for slot in live.tolist():
            others = live[live != slot]
            yield np.full(len(others), slot), others, self.sums[others] @ self.sums[slot]

    def merge(self, full=True):
        self._near, self._nearest = Near([0]), Near([0])  # there is something to compare
        return super().merge(full)


def posts(rng, n, topics):
    """Rows near a few hundred topics: a dense half and a few words of many."""
    vectors = np.zeros((n, DENSE + WORDS))
    which = rng.integers(0, len(topics), n)
    vectors[:, :DENSE] = topics[which] + 0.6 * rng.standard_normal((n, DENSE))
    for i, topic in enumerate(which):
        words = (topic * 7 + rng.integers(0, 5, 3)) % WORDS
        vectors[i, DENSE + words] = rng.choice([-3.0, 3.0], 3)
    return to_grid(vectors)


@pytest.mark.parametrize(
    "few, many", [(30, 1 / 32), (30, 0), (300, 1 / 32), (2_000, 1 / 32)]
)  # blocks in float32: few, some, all
@pytest.mark.parametrize("dense", [DENSE, DENSE + WORDS])
@pytest.mark.parametrize("seed", range(3))
def test_it_places_and_merges_as_if_everything_was_compared_with_everything(seed, dense, few, many, monkeypatch):
    for name, value in {"TILE": 64, "FEW": few, "MANY": many}.items():
        monkeypatch.setattr(means, name, value)
    rng = np.random.default_rng(seed)
    topics = rng.standard_normal((300, DENSE))
    quick, slow = (kind(DENSE + WORDS, ATTACH, MERGE, dense) for kind in (Kernel, Everything))
    widest = again = 0
    for turn in range(36):
        rows = posts(rng, 50, topics)
        size, founded = quick.size, quick.founded
        assert quick.place(rows) == slow.place(rows)
        again += quick.founded - founded > quick.size - size
        widest = max(widest, quick.size)
        for slot in rng.integers(0, quick.size, 3).tolist():
            if quick.counts[slot] > 0:
                row = None if rng.random() < 0.5 else quick.mean(slot) * 0
                assert quick.remove(slot, row) == slow.remove(slot, row)
        for slot in rng.integers(0, quick.size, 2).tolist():
            quick.drop(slot)
            slow.drop(slot)
        if turn % 3 == 0:
            assert quick.merge(turn % 9 == 0) == slow.merge(turn % 9 == 0)
        if turn % 20 == 10:
            assert quick.compact() == slow.compact()
        if turn % 20 == 15:
            for kernel in (quick, slow):
                k = kernel.size
                kernel.load(kernel.sums[:k].copy(), kernel.counts[:k].copy(), set(kernel.dirty), set(kernel.fresh))
        np.testing.assert_array_equal(quick.counts[: quick.size], slow.counts[: slow.size])
    assert widest > 4 * 64 and again  # more than one tile, and slots were used again


@pytest.mark.parametrize("seed", range(3))
def test_the_likely_cluster_is_the_nearest_of_those_named_that_a_full_merge_could_join(seed):
    rng = np.random.default_rng(seed)
    topics, found = rng.standard_normal((40, DENSE)), 0
    kernel = Kernel(DENSE + WORDS, ATTACH, MERGE, DENSE)
    for turn in range(12):
        kernel.place(posts(rng, 30, topics))
        kernel.merge(full=turn % 4 == 0)
        live = np.flatnonzero(kernel.counts[: kernel.size] > 0)
        means = kernel.sums[live] / kernel.counts[live][:, None]
        alike = means @ means.T
        named = rng.random(kernel.size) < 0.5
        asked = rng.choice(live, len(live) // 2, replace=False).tolist()
        expected = {}
        for slot in asked:
            row = np.where(named[live] & (live != slot), alike[live == slot][0], -1.0)
            if row.max() >= MERGE:
                expected[slot] = int(live[row.argmax()])
        assert kernel.likely(asked, named) == expected
        found += len(expected)
    assert found > 10


def test_after_a_change_of_encoder_a_cluster_is_compared_with_all_once_a_post_touches_it():
    kernel = Kernel(2, 0.9, 0.8)
    sums = to_grid(np.array([[1.0, 0.0], [1.0, 0.01], [0.0, 1.0]]))
    kernel.load(sums, np.ones(3), set(), set(), strange={0, 1, 2})
    assert kernel.merge() == []  # a new encoder alone joins no clusters
    assert kernel.place(to_grid(np.array([[0.0, 1.0]]))) == [2] and kernel.merge() == []
    assert kernel.place(to_grid(np.array([[1.0, 0.02]]))) == [1] and kernel.merge() == [(1, 0)]


def test_pairs_follow_what_was_absorbed_and_what_moved():
    near = Near()
    near.add(np.array([3, 3, 2]), np.array([1, 0, 0]))
    near.absorb(3, 2)
    assert [side.tolist() for side in near.pairs(4)] == [[2, 2], [0, 1]]
    near.move(np.array([0, -1, 1, -1]))
    assert [side.tolist() for side in near.pairs(2)] == [[1], [0]]
    near.open.add(1)
    near.clear()
    assert not near.open and not near.pairs(2)[0].size
