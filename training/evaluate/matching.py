"""Sentence matching: does a sentence find its own translation among all the others, in both directions?

Source: Lamsal, Read, Karunasekera 2024, equations 3 and 4, table 4 (there on TED2020, here on FLORES-200 and other sets
that are for tests only). Beside it the measures of Nishimwe, Sagot, Bawden 2024 from a language to English: average
pairwise cosine distance, xSIM and, with hard negatives of the English side, xSIM++.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.progress import track

from models.encoders.protocol import Encoder
from training.files import read_aligned, read_rows
from training.metrics import HardNegative, bootstrap, pairwise_cosine_distance, xsim

__all__ = [
    "PAPER_LANGUAGES",
    "aligned_set",
    "by_script",
    "flores_matching",
    "match_all",
    "matching_accuracy",
    "summary",
]

# The languages of the paper's table 4 that FLORES-200 as stored has; fr-ca and pt-br have no set of their own.
PAPER_LANGUAGES = (
    "sq ar hy bg ca zh zh-Hant hr cs da nl et fi fr gl ka de el gu he hi hu id it ja ko ckb lv lt mk ms mr mn my nb fa"
    " pl pt ro ru sr sk sl es sv th tr uk ur vi"
).split()


def own_found(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) bool each: is the nearest row of `right` to a row of `left` its own, and the reverse? Both (n, d), unit
    rows.

    We differ from equation 3 in ties: the first of equals is taken, so that an encoder blind to everything scores 1 /
    n.
    """
    scores = left @ right.T  # (n, n)
    own = np.arange(len(scores))
    return scores.argmax(1) == own, scores.argmax(0) == own


def matching_accuracy(left: np.ndarray, right: np.ndarray) -> tuple[float, float]:
    """Share of rows of `left` whose nearest row of `right` is their own, and the reverse. Both (n, d), unit rows."""
    there, back = own_found(left, right)
    return float(there.mean()), float(back.mean())


def aligned_set(root: Path, name: str) -> dict[str, list[str]]:
    """By language the lines of a set that is never trained on, line i of all saying the same, "" where one is missing.

    name: "flores200 devtest", "flores200 dev(sib)", "ntrex128" or "tico19 test".
    """
    folder, _, split = name.partition(" ")
    texts = read_aligned(root / folder)
    texts.pop("my-Zawgyi", None)  # what `clean` turns into the Burmese that is there as well
    if split:
        chosen = [i for i, row in enumerate(read_rows(root / folder / "meta.tsv.gz")) if row["split"] == split]
        texts = {lang: [lines[i] for i in chosen] for lang, lines in texts.items()}
    return texts


def flores_matching(
    encoder: Encoder, root: Path, split: str = "devtest", langs: Collection[str] = ()
) -> dict[str, float]:
    """Accuracy by language against English, the mean of both directions. split: "devtest" or "dev(sib)".

    langs: those alone, as far as they are there; empty: all.
    """
    texts = aligned_set(root, f"flores200 {split}")
    english = encoder.encode(texts["en"])
    return {
        lang: float(np.mean(matching_accuracy(english, encoder.encode(lines))))
        for lang, lines in sorted(texts.items())
        if lang != "en" and (not langs or lang in langs)
    }


def match_all(
    encoder: Encoder,
    texts: Mapping[str, Sequence[str]],
    seed: int,
    negatives: Sequence[HardNegative] = (),
    title: str = "",
) -> dict[str, dict]:
    """By language: both directions and their mean with its interval over sentences, cosine distance, xSIM, xSIM++.

    texts: line-aligned, with "en"; lines empty on either side are left out. xSIM++ only where `negatives` of the
    English lines are given.
    """
    english = encoder.encode(list(texts["en"]))
    wrong, kinds = encoder.encode([n.text for n in negatives]), [n.kind for n in negatives]
    figures = {}
    for lang in track(sorted(set(texts) - {"en"}), description=title or "matching"):
        rows = [i for i, (a, b) in enumerate(zip(texts["en"], texts[lang], strict=True)) if a.strip() and b.strip()]
        other, own = encoder.encode([texts[lang][i] for i in rows]), english[rows]
        there, back = own_found(own, other)
        both = (there.astype(float) + back) / 2  # (n,)
        low, high = bootstrap(lambda drawn, both=both: both[drawn].mean(), len(rows), seed)
        figures[lang] = {
            "en_to_xx": float(there.mean()),
            "xx_to_en": float(back.mean()),
            "matching": float(both.mean()),
            "low": low,
            "high": high,
            "cosine_distance": pairwise_cosine_distance(other, own),
            "xsim": xsim(other, own).error,
            "sentences": len(rows),
            "script": script_of(texts[lang]),
        }
        if negatives:
            present = set(rows)
            kept = [j for j, negative in enumerate(negatives) if negative.of in present]
            found = xsim(other, own, wrong[kept], [kinds[j] for j in kept])
            figures[lang] |= {"xsim++": found.error, "xsim++_by_kind": found.by_kind}
    return figures


def script_of(lines: Sequence[str]) -> str:
    """The script most letters of the lines are in, by its ISO 15924 code: "Latn", "Arab", "Hani" …"""
    from fontTools import unicodedata  # the tables of Unicode's Scripts.txt; the standard library has none

    counts = Counter(unicodedata.script(letter) for line in lines[:200] for letter in line if letter.isalpha())
    counts.pop("Zyyy", None)  # shared by scripts
    return counts.most_common(1)[0][0] if counts else "Zyyy"


def by_script(figures: Mapping[str, Mapping]) -> dict[str, dict[str, float]]:
    """Mean over the languages of each script, and how many there are."""
    groups = defaultdict(list)
    for found in figures.values():
        groups[found["script"]].append(found["matching"])
    return {
        script: {"matching": float(np.mean(found)), "languages": len(found)} for script, found in sorted(groups.items())
    }


def summary(accuracy: Mapping[str, float]) -> dict[str, float]:
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
