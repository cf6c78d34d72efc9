r"""Relatedness: Spearman's rank correlation between cosine and people's scores, beside the lexical-overlap baseline.

Source: Ousidhoum et al. 2024 (SemRel2024), section 5; the baseline is their Dice coefficient over the words of a pair.
Their script's words are runs of `\w`, which in Python holds no vowel signs: of Hindi, Marathi, Telugu or Punjabi it
compares single letters. Beside it stands the same over whole words.
How people's scores come about (best–worst scaling) and how reliable they are: `training.relatedness`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from models.encoders.protocol import Encoder
from training.files import read_rows
from training.metrics import bootstrap, spearman

__all__ = [
    "MTEB_LANGUAGES",
    "PAPER_LANGUAGES",
    "Pairs",
    "SETS",
    "mean_of",
    "relatedness",
    "scored_pairs",
    "semrel",
    "summary",
]

_WORD = re.compile(r"\w+")
SETS = {"SemRel2024 dev": ("semrel2024", "score_0_1", "dev"), "STS-B test": ("stsb-multi", "score_0_5", "test")}

# SemRel's with a test split in Ousidhoum et al., table 5; the dev split has Punjabi beside them.
PAPER_LANGUAGES = "af am ar arq ary en es ha hi id mr rw te".split()
MTEB_LANGUAGES = [lang for lang in PAPER_LANGUAGES if lang != "es"]  # whose test scores are public

Pairs = Mapping[str, Sequence[tuple[str, str, float]]]  # by language: two texts and the score people gave them


def lexical_overlap(first: str, second: str) -> float:
    """Dice: 2 · shared words / words of both, by set, lower case."""
    a, b = set(_WORD.findall(first.lower())), set(_WORD.findall(second.lower()))
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 0.0


def whole_word_overlap(first: str, second: str) -> float:
    """Dice over whole words: letters, digits and the marks on them, apostrophes inside; by set, lower case."""
    a, b = _whole_words(first), _whole_words(second)
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 0.0


def _whole_words(text: str) -> set[str]:
    spaced = "".join(char if char.isalnum() or _is_inside(char) else " " for char in text.lower())
    return {word for found in spaced.split() if (word := found.strip("'’"))}


def _is_inside(char: str) -> bool:
    return char in "'’\u200c\u200d" or unicodedata.category(char)[0] == "M"


def scored_pairs(root: Path, name: str) -> Pairs:
    """One of SETS: SemRel2024 dev (14 languages) or STS-B test (11, all but English translated by machine)."""
    folder, score, split = SETS[name]
    rows = defaultdict(list)
    for row in read_rows(root / folder / f"{folder.replace('-', '_')}.tsv.gz"):
        if row["split"] == split:
            rows[row["lang"]].append((row["sentence1"], row["sentence2"], float(row[score])))
    return rows


def relatedness(encoder: Encoder, rows: Pairs, seed: int) -> dict[str, dict[str, float]]:
    """By language: `spearman` with its interval over pairs, `overlap` (the baseline's Spearman), `overlap_words` (the
    same of whole words) and `pairs`."""
    result = {}
    for lang, group in sorted(rows.items()):
        first, second = (encoder.encode([row[side] for row in group]) for side in (0, 1))
        gold = np.array([row[2] for row in group])
        cosines = np.einsum("nd,nd->n", first, second)
        overlap = np.array([lexical_overlap(row[0], row[1]) for row in group])
        low, high = bootstrap(lambda drawn, c=cosines, g=gold: spearman(c[drawn], g[drawn]), len(group), seed)
        result[lang] = {
            "spearman": spearman(cosines, gold),
            "low": low,
            "high": high,
            "overlap": spearman(overlap, gold),
            "overlap_words": spearman(np.array([whole_word_overlap(row[0], row[1]) for row in group]), gold),
            "pairs": len(group),
        }
    return result


def semrel(encoder: Encoder, root: Path) -> dict[str, dict[str, float]]:
    """Of SemRel2024 dev, as `relatedness` gives it."""
    return relatedness(encoder, scored_pairs(root, "SemRel2024 dev"), seed=1)


def summary(by_lang: Mapping[str, Mapping[str, float]]) -> dict[str, object]:
    """Mean over the languages, over the paper's (None where one of those is not there), and the languages with ≥ 90
    pairs where the baseline is better."""
    return {
        "mean": float(np.mean([figures["spearman"] for figures in by_lang.values()])),
        "mean_paper": mean_of(by_lang, PAPER_LANGUAGES),
        "mean_overlap": float(np.mean([figures["overlap"] for figures in by_lang.values()])),
        "mean_overlap_words": float(np.mean([figures["overlap_words"] for figures in by_lang.values()])),
        "languages": len(by_lang),
        "below_overlap": [lang for lang, f in by_lang.items() if f["pairs"] >= 90 and f["spearman"] <= f["overlap"]],
    }


def mean_of(by_lang: Mapping[str, Mapping[str, float]], langs: Sequence[str]) -> float | None:
    """Mean Spearman of these languages, None where one is not there."""
    return float(np.mean([by_lang[lang]["spearman"] for lang in langs])) if set(langs) <= set(by_lang) else None
