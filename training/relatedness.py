"""Relatedness scores from people's comparisons: best–worst scaling and its split-half reliability.

People see four sentence pairs and say which is most and which is least related; a pair's score is the share of times it
was chosen as most minus the share as least. Source: Ousidhoum et al. 2024 (SemRel2024), section 3; Kiritchenko and
Mohammad 2017. The lexical-overlap baseline is `training.evaluate.relatedness.lexical_overlap`.

    python -m training.relatedness annotations.tsv     # columns: item1 item2 item3 item4 best worst
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from models.errors import ConfigError
from training.files import DataError, read_lines
from training.jobs import read_config, run
from training.metrics import spearman

__all__ = ["Config", "main"]


class Judgements(Struct, frozen=True, eq=False):
    """Best–worst judgements of 4-tuples; one row a judgement, several may be of the same tuple."""

    items: list[str]  # the names of what was judged
    tuples: np.ndarray  # (n, 4) int, places in `items`
    best: np.ndarray  # (n,) int, a place in `items`: most related
    worst: np.ndarray  # (n,) int: least related


def best_worst_scores(judgements: Judgements) -> np.ndarray:
    """(items,) float in [-1, 1]: share of an item's appearances where it was best, minus where it was worst; nan where
    it never appeared."""
    size = len(judgements.items)
    seen = np.bincount(judgements.tuples.ravel(), minlength=size)
    net = np.bincount(judgements.best, minlength=size) - np.bincount(judgements.worst, minlength=size)
    return np.where(seen > 0, net / np.maximum(seen, 1), np.nan)


def to_unit(scores: np.ndarray) -> np.ndarray:
    """Scores moved from [-1, 1] to [0, 1], as the SemRel sets are published."""
    return (scores + 1) / 2


def split_half_reliability(judgements: Judgements, seed: int, repeats: int = 1000) -> float:
    """Mean Spearman correlation of the scores that two random halves of the judgements give.

    Judgements of one tuple are dealt to both halves in turn, as the authors' scripts do, so that each half has seen
    every tuple that was judged twice; with single judgements the tuples themselves are halved.
    """
    rng = np.random.default_rng(seed)
    tuple_of = np.unique(np.sort(judgements.tuples, axis=1), axis=0, return_inverse=True)[1].ravel()
    correlations = []
    for _ in range(repeats):
        order = rng.permutation(len(tuple_of))
        order = order[np.argsort(tuple_of[order], kind="stable")]  # by tuple, at random within it
        first = np.zeros(len(order), bool)
        # One coin per tuple decides which half begins: odd counts favour neither.
        position = np.arange(len(order)) - np.searchsorted(tuple_of[order], tuple_of[order])
        coins = rng.integers(0, 2, tuple_of.max() + 1)
        first[order] = (position + coins[tuple_of[order]]) % 2 == 0
        halves = [best_worst_scores(_part(judgements, part)) for part in (first, ~first)]
        both = ~np.isnan(halves[0]) & ~np.isnan(halves[1])
        correlations.append(spearman(halves[0][both], halves[1][both]))
    return float(np.nanmean(correlations))


def read_judgements(path: Path) -> Judgements:
    """From a TSV with the header item1 item2 item3 item4 best worst. Raises DataError naming the line at fault."""
    columns = ["item1", "item2", "item3", "item4", "best", "worst"]
    rows = [line.split("\t") for line in read_lines(path)]
    if not rows or rows[0] != columns:
        raise DataError(f"{path}, line 1: the header must be {' '.join(columns)}, tab-separated")
    place: dict[str, int] = {}
    judged = []
    for number, row in enumerate(rows[1:], 2):
        if len(row) != 6 or len(set(row[:4])) != 4:
            raise DataError(f"{path}, line {number}: wanted four different items, best and worst; got {row}")
        if row[4] not in row[:4] or row[5] not in row[:4] or row[4] == row[5]:
            raise DataError(f"{path}, line {number}: best {row[4]!r} and worst {row[5]!r} must be two of its items")
        judged.append([place.setdefault(item, len(place)) for item in row])
    if not judged:
        raise DataError(f"{path} holds no judgement")
    table = np.array(judged)
    return Judgements(list(place), table[:, :4], table[:, 4], table[:, 5])


def _part(judgements: Judgements, chosen: np.ndarray) -> Judgements:
    return Judgements(judgements.items, judgements.tuples[chosen], judgements.best[chosen], judgements.worst[chosen])


class Config(Struct, frozen=True):
    """The judgements, and the halves they are parted into."""

    judgements: str  # the TSV; scores go to stdout, the reliability to stderr
    seed: int = 1  # of the halves


def main(config: Config) -> None:
    judgements = read_judgements(Path(config.judgements))
    for item, score in zip(judgements.items, to_unit(best_worst_scores(judgements)), strict=True):
        print(f"{item}\t{score:.4f}")
    print(f"# split-half reliability {split_half_reliability(judgements, config.seed):.3f}", file=sys.stderr)


def read_words(words: Sequence[str]) -> Config:
    """`FILE key=value …` as a config. Raises ConfigError."""
    if "=" in words[0] or words[0].startswith("-"):
        raise ConfigError("name the judgements first: python -m training.relatedness FILE")
    return read_config({words[0]: Config(words[0])}, words)


if __name__ == "__main__":
    run(main, {"FILE": Config("FILE")}, read=read_words)
