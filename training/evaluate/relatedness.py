"""Relatedness: Spearman's rank correlation between cosine and people's scores, beside the lexical-overlap baseline.

Source: Ousidhoum et al. 2024 (SemRel2024), section 5; the baseline is their Dice coefficient over the words of a pair.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from models.encoder import Encoder
from training.data import read_rows

_WORD = re.compile(r"\w+")


def lexical_overlap(first: str, second: str) -> float:
    """Dice: 2 · shared words / words of both, by set, lower case."""
    a, b = set(_WORD.findall(first.lower())), set(_WORD.findall(second.lower()))
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 0.0


def semrel(encoder: Encoder, root: Path, split: str = "dev") -> dict[str, dict[str, float]]:
    """By language: `spearman`, `overlap` (the baseline's Spearman) and `pairs`."""
    rows = defaultdict(list)
    for row in read_rows(root / "semrel2024" / "semrel2024.tsv.gz"):
        if row["split"] == split:
            rows[row["lang"]].append(row)
    result = {}
    for lang, group in sorted(rows.items()):
        left = encoder.encode([row["sentence1"] for row in group])
        right = encoder.encode([row["sentence2"] for row in group])
        gold = [float(row["score_0_1"]) for row in group]
        overlap = [lexical_overlap(row["sentence1"], row["sentence2"]) for row in group]
        result[lang] = {
            "spearman": float(spearmanr((left * right).sum(1), gold).statistic),
            "overlap": float(spearmanr(overlap, gold).statistic),
            "pairs": len(group),
        }
    return result


def summary(by_lang: dict[str, dict[str, float]]) -> dict[str, object]:
    """Mean over the languages, and those with ≥ 90 pairs where the baseline is better."""
    return {
        "mean": float(np.mean([figures["spearman"] for figures in by_lang.values()])),
        "mean_overlap": float(np.mean([figures["overlap"] for figures in by_lang.values()])),
        "languages": len(by_lang),
        "below_overlap": [
            lang for lang, f in by_lang.items() if f["pairs"] >= 90 and f["spearman"] <= f["overlap"]
        ],
    }
