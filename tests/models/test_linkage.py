"""Average linkage: the merges of a loop that looks at every pair of clusters each time."""

import numpy as np
import pytest

from models.clusters.kernel import to_grid
from models.clusters.linkage import Linkage

THRESHOLD = 0.35


def every_pair(sums, counts, born):
    """(lives on, absorbed), the most similar pair first, of equals the oldest; the heavier lives on, then the older."""
    sums, counts, live, joined = sums.copy(), counts.copy(), list(range(len(counts))), []
    while True:
        live.sort(key=lambda slot: born[slot])
        pairs = [(i, j) for at, i in enumerate(live) for j in live[at + 1 :]]
        alike = [float(sums[i] @ sums[j]) / (counts[i] * counts[j]) for i, j in pairs]
        if not pairs or max(alike) < THRESHOLD:
            return joined
        i, j = pairs[int(np.argmax(alike))]
        if counts[j] > counts[i]:
            i, j = j, i
        joined.append((i, j))
        sums[i] += sums[j]
        counts[i] += counts[j]
        live.remove(j)


@pytest.mark.parametrize("seed", range(6))
def test_it_joins_what_a_loop_over_every_pair_joins_and_in_that_order(seed):
    rng = np.random.default_rng(seed)
    topics = rng.standard_normal((8, 12))
    rows = to_grid(topics[rng.integers(0, 8, 40)] + 0.7 * rng.standard_normal((40, 12)))
    counts = rng.integers(1, 4, 40).astype(float)
    sums, born = rows * counts[:, None], rng.permutation(40)
    expected = every_pair(sums, counts, born)

    def pairs():
        slots, others = np.triu_indices(40, 1)
        yield slots, others, np.einsum("ij,ij->i", sums[slots], sums[others])

    linkage = Linkage(sums, counts, born, pairs(), THRESHOLD)

    def absorb(i, j):
        sums[i] += sums[j]

    assert len(expected) > 10 and linkage.join(absorb) == expected
