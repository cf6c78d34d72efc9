"""Training pairs as arrays: every distinct text once, as pieces, with the place of its English teacher vector."""

from __future__ import annotations

import hashlib
import io
import unicodedata
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from msgspec import Struct
from rich.progress import track

from models.encoders import consonants, leet, letter_ngrams
from models.encoders.static import Reader
from training.data import Pairs, unique_texts
from training.jobs import cache_dir, write_atomically

__all__ = [
    "Bags",
    "Corpus",
    "SOURCE_WEIGHT",
    "capped",
    "language_weights",
    "pair_weights",
    "to_bags",
    "without_accents",
]

# How often a pair of a source is drawn against one of plain prose (1): for every job that draws from them. Words and
# names less often: they outnumber sentences and teach no context. So too the strings of programs, half of all pairs
# (1.3 of 2.7 million): at 1.0, with debian-apps at 0.3, they were .39 of what distillation drew, so they are .09.
SOURCE_WEIGHT = {
    "tatoeba-train": 2.0,
    "tico19-dev": 3.0,
    "afriqa": 2.0,
    "cmu-haitian-medical": 3.0,
    "nusax": 2.0,
    "disaster-messages": 30.0,  # 3,387 pairs, the nearest to what is read at work
    "software-l10n": 0.05,
    "debian-apps": 0.05,
    "humanitarian-l10n": 0.3,  # of programs for aid work: their words, if not their sentences, are ours
    "osm-presets": 0.1,
    "emoji-cldr": 0.3,
    "freedict": 0.3,
}


class Bags(Struct, frozen=True):
    """Texts as pieces, one after another: text i is `pieces[starts[i] : starts[i + 1]]`."""

    pieces: np.ndarray  # (total,) int32
    starts: np.ndarray  # (n + 1,) int64

    def take(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The pieces of the texts at `index`, end to end, and where each begins: what an embedding bag reads."""
        lengths = self.starts[index + 1] - self.starts[index]
        offsets = np.cumsum(lengths) - lengths
        places = np.arange(lengths.sum()) + np.repeat(self.starts[index] - offsets, lengths)
        return self.pieces[places], offsets


def to_bags(reader: Reader, texts: list[str]) -> Bags:
    """Clean and split every text. From the cache where the same texts were split by the same tokenizer before."""
    key = hashlib.sha256(reader.tokenizer.to_str().encode())
    key.update(repr((reader.cleaning, reader.reading)).encode())
    for module in (leet, letter_ngrams, consonants):  # what they make of a text decides the rows
        key.update(Path(module.__file__).read_bytes())
    for text in texts:
        key.update(text.encode("utf-8", "surrogatepass") + b"\x1e")
    path = cache_dir() / "bags" / f"{key.hexdigest()[:24]}.npz"
    if not path.exists():
        parts, starts, total = [], [np.zeros(1, np.int64)], 0
        for start in track(range(0, len(texts), 20_000), description="splitting texts"):
            pieces, begins = reader.features(texts[start : start + 20_000])
            parts.append(pieces)
            starts.append(begins[1:] + total)
            total += len(pieces)
        buffer = io.BytesIO()
        np.savez(buffer, pieces=np.concatenate(parts), starts=np.concatenate(starts))
        write_atomically(path, buffer.getvalue())
    stored = np.load(path)
    return Bags(stored["pieces"], stored["starts"])


def without_accents(text: str) -> str:
    """The text as typed without marks on Latin letters: "dlo potab lekòl" → "dlo potab lekol"; other scripts keep
    theirs, where marks are vowels."""
    if text.isascii():
        return text
    kept: list[str] = []
    for char in unicodedata.normalize("NFD", text):
        if not (unicodedata.combining(char) and kept and kept[-1].isascii()):
            kept.append(char)
    return unicodedata.normalize("NFC", "".join(kept))


def pair_weights(
    lang: list[str], source: list[str], temperature: float, source_weight: Mapping[str, float] = SOURCE_WEIGHT
) -> np.ndarray:
    """(n,) Chance of each pair: `language_weights` of the weights of their sources, 1 where one has none."""
    sources, source_id = unique_texts(source)
    return language_weights(lang, np.array([source_weight.get(name, 1.0) for name in sources])[source_id], temperature)


def language_weights(lang: list[str], weight: np.ndarray, temperature: float) -> np.ndarray:
    """(n,) Chance of each row: its language's share is its (weighted) size ** temperature, within it by weight.

    Thin languages are seen more often than their data alone would have it (temperature < 1).
    """
    _, lang_id = unique_texts(lang)
    size = np.bincount(lang_id, weights=weight)
    chance = weight * (size ** (temperature - 1))[lang_id]
    return chance / chance.sum()


class Corpus(Struct, frozen=True):
    """What both kinds of student learn from. Pair i says `english[english_id[i]]` and `texts[text_id[i]]`."""

    english: list[str]
    texts: list[str]
    english_id: np.ndarray  # (pairs,)
    text_id: np.ndarray  # (pairs,)
    chance: np.ndarray  # (pairs,) of being drawn, sums to 1
    target: np.ndarray  # (len(english), dim) float32, unit rows: the teacher's vectors on their widest axes
    data_hash: str
    pairs_by_language: dict[str, int]
    own: np.ndarray | None = None  # (len(texts), dim): the same of the texts themselves, where they are followed
    both: bool = False  # follow the English vector as well as the own one
    taught_hash: str = ""  # of the teacher's vectors as kept: one trained again at the same place is another

    def goals(self, pairs: np.ndarray) -> np.ndarray:
        """(n, dim): what the text of each pair is taught; of both vectors the mean, which asks for as much of each:
        1 − s·(a + b)/2 is the mean of 1 − s·a and 1 − s·b, and squared distances differ from theirs by a constant.
        """
        english = self.target[self.english_id[pairs]]
        if self.own is None:
            return english
        own = self.own[self.text_id[pairs]]
        return (own + english) / 2 if self.both else own


def capped(pairs: Pairs, cap: int, seed: int) -> np.ndarray:
    """Places of the pairs kept: at most `cap` of each language and source, chosen by the seed."""
    _, group = unique_texts([f"{lang}\t{source}" for lang, source in zip(pairs.lang, pairs.source, strict=True)])
    order = np.random.default_rng(seed).permutation(len(group))
    order = order[np.argsort(group[order], kind="stable")]
    _, first, counts = np.unique(group[order], return_index=True, return_counts=True)
    rank = np.arange(len(order)) - np.repeat(first, counts)
    return np.sort(order[rank < cap])
