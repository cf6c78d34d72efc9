"""What the robust job learns from: texts with their languages, noised versions, and texts that say otherwise."""

from __future__ import annotations

from random import Random

import numpy as np
from msgspec import Struct
from rich.progress import track

from models.encoders.protocol import Encoder
from training.corpus import SOURCE_WEIGHT, language_weights
from training.data import Pairs
from training.metrics import hard_negatives
from training.noise import kinds_of, noise

__all__ = ["HardNegatives", "Text", "noised", "sample_texts", "targets_of", "texts_of"]


class Text(Struct, frozen=True):
    text: str
    lang: str
    english: str = ""  # the same in English, where that is what it is taught
    weight: float = 1.0  # how often it is drawn, against 1 of plain prose: see corpus.SOURCE_WEIGHT


def texts_of(pairs: Pairs, with_english: bool) -> list[Text]:
    """Both sides of every pair, each text of a language once, in order; of several sources the one drawn most counts.

    with_english: a text keeps what it is in English, and is there once for each that it has.
    """
    weights: dict[tuple[str, str, str], float] = {}
    for english, text, lang, source in zip(pairs.english, pairs.text, pairs.lang, pairs.source, strict=True):
        weight = SOURCE_WEIGHT.get(source, 1.0)
        for row in ((text, lang, english if with_english else ""), (english, "en", "")):
            weights[row] = max(weight, weights.get(row, 0.0))
    return [Text(*row, weights[row]) for row in sorted(weights)]


def sample_texts(texts: list[Text], size: int, temperature: float, seed: int, english: float = 0.0) -> list[Text]:
    """At most `size` texts (0 = all, whatever they weigh), drawn by `corpus.language_weights`; English, where `english`
    is not 0, in that share.
    """
    if not size or size >= len(texts):
        return texts
    rng = np.random.default_rng(seed)
    weight = language_weights([t.lang for t in texts], np.array([t.weight for t in texts]), temperature)
    is_english = np.array([t.lang == "en" for t in texts])
    if english and is_english.any():
        weight[is_english] *= weight[~is_english].sum() * english / (1 - english) / weight[is_english].sum()
    # The keys u ** (1 / w) of Efraimidis and Spirakis: the largest are a weighted sample without replacement.
    chosen = np.argpartition(-np.log(rng.random(len(texts))) / weight, size)[:size]
    return [texts[i] for i in np.sort(chosen)]


def noised(texts: list[Text], rate: float, seed: int) -> list[str]:
    """One noised version of each, in the manner of its language. A text's own seed: adding one changes no other."""
    return [
        noise(t.text, Random(f"{seed} {t.text}"), rate, t.lang, kinds_of(t.lang))
        for t in track(texts, description="noise", disable=len(texts) < 5_000)
    ]


class HardNegatives:
    """Texts that say something else than an English text in almost its words, by the text's place."""

    def __init__(self, texts: list[Text], per_kind: int, seed: int) -> None:
        """per_kind: of each kind, at most; 0 = none are made."""
        english = np.array([i for i, text in enumerate(texts) if text.lang == "en"], np.int64)
        made = hard_negatives([texts[i].text for i in english], seed, per_kind) if per_kind else []
        self.texts = [negative.text for negative in made]
        of = english[[negative.of for negative in made]] if made else np.zeros(0, np.int64)  # rises
        self._starts = np.searchsorted(of, np.arange(len(texts) + 1))

    def draw(self, index: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """(places in `index` of texts that have any, one of each text's, as a place in `texts`)."""
        first, count = self._starts[index], self._starts[index + 1] - self._starts[index]
        rows = np.flatnonzero(count)
        return rows, first[rows] + rng.integers(0, count[rows])


def targets_of(teacher: Encoder, texts: list[Text], which: str) -> np.ndarray:
    """(n, d) float32: the teacher's vector of each text ("own"), of what it is in English ("english"; a text without a
    pair keeps its own), or the mean of the two ("both")."""
    own = None if which == "english" else teacher.encode([t.text for t in texts])
    english = None if which == "own" else teacher.encode([t.english or t.text for t in texts])
    return own if english is None else english if own is None else (own + english) / 2  # type: ignore[return-value]
