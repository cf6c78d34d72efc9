"""The static student: a table of vectors, summed over a text's rows, and the bags of rows it learns from.

A bag is (rows of all texts end to end, where each text begins); `corpus.Bags.take` makes one.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse import csr_array

from training.corpus import Bags
from training.runs import Run

__all__ = ["Static", "join", "start_table", "with_dropout"]


class Static(torch.nn.Module):
    """Sum of piece vectors; a piece's weight is the length of its row."""

    def __init__(self, pieces: int, dim: int, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.table = torch.nn.Parameter(torch.randn(pieces, dim, generator=generator) * 0.05)

    def forward(self, pieces: np.ndarray, offsets: np.ndarray, keep: np.ndarray | None = None) -> torch.Tensor:
        weights = None if keep is None else torch.from_numpy(keep)
        sums = F.embedding_bag(
            torch.from_numpy(pieces),
            self.table,
            torch.from_numpy(offsets.astype(np.int32)),
            mode="sum",
            per_sample_weights=weights,
        )  # (n, dim)
        return F.normalize(sums, dim=-1)


def start_table(run: Run, bags: Bags, target: np.ndarray, is_bundle: bool) -> np.ndarray:
    """The rows to go on from. A bundle's axes are not the teacher's any more (publish evens them out), so its table
    goes through the linear map that brings its English vectors nearest to the targets. Directions that only rounding
    fills count as empty: few texts would else blow them up.
    """
    if not is_bundle:
        return run.table
    few = np.linspace(0, len(target) - 1, min(len(target), 60_000)).astype(int)
    pieces, offsets = bags.take(few)
    known = (pieces < len(run.table)).astype(np.float32)
    read = csr_array(
        (known, np.where(known, pieces, 0), np.append(offsets, len(pieces))), shape=(len(few), len(run.table))
    )
    vectors = read @ run.table
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    table = run.table @ np.linalg.lstsq(vectors, target[few], rcond=1e-5)[0]
    return table * np.linalg.norm(run.table) / np.linalg.norm(table)


def join(*bags: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Bags one after the other, as one."""
    begins = np.cumsum([0, *(len(pieces) for pieces, _ in bags[:-1])])
    return (
        np.concatenate([pieces for pieces, _ in bags]),
        np.concatenate([offsets + begin for (_, offsets), begin in zip(bags, begins, strict=True)]),
    )


def with_dropout(
    bag: tuple[np.ndarray, np.ndarray],
    rng: np.random.Generator,
    drop: float,
    groups_from: int = 0,
    drop_groups: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The bag with weight 0 for what is left out: each row with chance `drop`, and all of a text's rows from
    `groups_from` on with chance `drop_groups`. The first row of a text always stays.
    """
    rows, offsets = bag
    keep = rng.random(len(rows), dtype=np.float32) >= drop
    if drop_groups:
        lengths = np.diff(offsets, append=len(rows))
        keep &= ~np.repeat(rng.random(len(offsets)) < drop_groups, lengths) | (rows < groups_from)
    keep[offsets] = True
    return rows, offsets, keep.astype(np.float32)
