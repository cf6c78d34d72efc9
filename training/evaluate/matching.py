"""Sentence matching: does a sentence find its own translation among all the others, in both directions?

Source: Lamsal, Read, Karunasekera 2024, equations 3 and 4, table 4 (there on TED2020, here on FLORES-200).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from models.encoder import Encoder
from training.data import read_aligned, read_rows

# The languages of the paper's table 4 that FLORES-200 as stored has; fr-ca and pt-br have no set of their own.
PAPER_LANGUAGES = (
    "sq ar hy bg ca zh zh-Hant hr cs da nl et fi fr gl ka de el gu he hi hu id it ja ko ckb lv lt mk ms mr mn my nb fa"
    " pl pt ro ru sr sk sl es sv th tr uk ur vi"
).split()


def matching_accuracy(left: np.ndarray, right: np.ndarray) -> tuple[float, float]:
    """Share of rows of `left` whose nearest row of `right` is their own, and the reverse. Both (n, d), unit rows."""
    scores = left @ right.T  # (n, n)
    own = np.arange(len(scores))
    return float((scores.argmax(1) == own).mean()), float((scores.argmax(0) == own).mean())


def flores_matching(encoder: Encoder, root: Path, split: str = "devtest") -> dict[str, float]:
    """Accuracy by language against English, the mean of both directions. split: "devtest" or "dev(sib)"."""
    texts = read_aligned(root / "flores200")
    chosen = [i for i, row in enumerate(read_rows(root / "flores200" / "meta.tsv.gz")) if row["split"] == split]
    english = encoder.encode([texts["en"][i] for i in chosen])
    return {
        lang: float(np.mean(matching_accuracy(english, encoder.encode([lines[i] for i in chosen]))))
        for lang, lines in sorted(texts.items())
        if lang != "en"
    }


def summary(accuracy: dict[str, float]) -> dict[str, float]:
    """Means over all languages, the paper's, and the best fifteen; and the lowest of the paper's."""
    paper = {lang: accuracy[lang] for lang in PAPER_LANGUAGES if lang in accuracy}
    return {
        "mean_all": float(np.mean(list(accuracy.values()))),
        "languages_all": len(accuracy),
        "mean_paper": float(np.mean(list(paper.values()))),
        "languages_paper": len(paper),
        "mean_best_15": float(np.mean(sorted(paper.values())[-15:])),
        "lowest_paper": min(paper.values()),
        "below_0.45": sum(value < 0.45 for value in paper.values()),
    }
