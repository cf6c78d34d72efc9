"""Clusters in two levels, offline: what it costs in quality that workers place posts beside each other.

A window of posts is dealt to the workers in runs. Each places its own against the clusters as they were when the window
began, and what it makes of them itself; it sees nothing of the others. One merger adds up what all of them made, and
joins clusters by the same two merges as always. (deploy/scaling.md has the figures, and what a deployment would need.)

python -m training.evaluate_clusters tweets-t workers=4 window=500
"""

from __future__ import annotations

import numpy as np

from models.clustering import ClusterConfig, Clusterer
from models.clusters.kernel import Kernel
from models.clusters.means import Said, bar_of

__all__ = ["TwoLevels"]


class TwoLevels(Clusterer):
    """A clusterer whose every window of `settle_every_posts` is dealt to workers. With one worker it is the other."""

    def __init__(self, config: ClusterConfig, dim: int, encoder_version: str, workers: int) -> None:
        super().__init__(config, dim, encoder_version)
        live = self.live_clusters
        live.kernel = Divided(live.lexicon.width, config.t_attach, config.t_merge, live.lexicon.dim)
        live.kernel.workers = workers
        self._applying.block = config.settle_every_posts


class Divided(Kernel):
    """Sums of the live clusters, and workers that place posts against them."""

    workers = 1

    def place(self, rows: np.ndarray) -> list[int]:
        """As `Kernel.place`, each run of the rows by a worker of its own."""
        self._reserve(self.size + len(rows))
        self._rounded.bring_up(self.sums, self.counts)
        said = Said.of(rows[:, self.dense :])
        _, near, about = self._rounded.near(rows, said, self.size, self.t_merge)
        join = np.unique(near[about >= bar_of(self.t_attach)])
        join = join[np.argsort(self.born[join])]
        placed = [slot for run in np.array_split(rows, self.workers) for slot in self._placed(run, join)]
        self._gain(np.array(placed, np.int64), rows, said)
        for noted in (self._near, self._nearest):  # what two workers founded may be near, and neither knows
            noted.open.update(placed)
        return placed

    def _placed(self, rows: np.ndarray, join: np.ndarray) -> list[int]:
        """By one worker. join: (k,) slots that some post of the window may join, the oldest first."""
        width, slots, placed = len(join), join.tolist(), []
        sums, counts = np.zeros((width + len(rows), self.dim)), np.ones(width + len(rows))
        sums[:width], counts[:width] = self.sums[join], self.counts[join]
        for row in rows:
            sims = (sums[:width] @ row) / counts[:width]
            column = int(sims.argmax()) if width else 0
            if width and sims[column] >= self.t_attach:
                counts[column] += 1
            else:
                column = width
                slots.append(self._open())
                width += 1
            sums[column] += row
            placed.append(slots[column])
        return placed
